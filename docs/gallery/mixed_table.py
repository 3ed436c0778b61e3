"""
A data frame with strings and missing values
============================================

A data frame with string, numeric and boolean columns, all with missing values, is passed to ``fit`` without
preprocessing. The example then shows what the model learned about a column of 60 categories.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from abcgbm import ABCBoostClassifier
from abcgbm.plotting import plot_class_importances

rng = np.random.default_rng(0)
n = 6000
villages = np.array([f"village {number}" for number in range(60)])
is_wet = rng.random(60) < 0.4  # whether a village is in a wet valley: not a feature
X = pd.DataFrame(
    {
        "soil": rng.choice(["clay", "loam", "sand"], n),
        "slope": rng.gamma(2.0, 8.0, n),
        "village": rng.choice(villages, n),
        "north": rng.random(n) < 0.5,
    }
)
in_wet_valley = is_wet[X["village"].str.removeprefix("village ").astype(int)]
y = np.select(
    [in_wet_valley & (X["soil"] != "sand"), X["slope"] > 20, X["soil"] == "sand"],
    ["alder", "fir", "pine"],
    "oak",
)
y = np.where(rng.random(n) < 0.05, "oak", y)
for column in X:  # a tenth of all values is missing
    X[column] = X[column].mask(rng.random(n) < 0.1)
print(X.head(4).to_string())

X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
model = ABCBoostClassifier(early_stopping=True).fit(X_train, y_train)
print(f"accuracy {model.score(X_test, y_test):.3f} after {model.best_iteration_} iterations")

# %%
# String columns are categorical by their type. The model stores column names and categories: the columns of a new table
# may be in any order, and an unknown village is treated as a missing value.

new = pd.DataFrame({"north": [True], "village": ["Atlantis"], "slope": [30.0], "soil": ["sand"]})
proba = model.predict_proba(new)[0]
print({str(label): round(float(p), 3) for label, p in zip(model.classes_, proba, strict=True)})

# %%
# **Importances by class**: the share of each feature in the gain of a class. Fir depends on the slope, alder on the
# village.

figure, ax = plt.subplots(figsize=(8, 3.4), layout="constrained")
plot_class_importances(model, ax=ax)
plt.show()

# %%
# **What the model learned about the villages**: the mean Shapley value of "village" for alder. Wet and dry villages are
# separated, although no column contains this information. Rows with a missing village are in the middle.

explanation = model.explain(X_test)
column, alder = X.columns.get_loc("village"), list(model.classes_).index("alder")
village = X_test["village"].fillna("missing").to_numpy()
names = [*villages, "missing"]
mean = np.array([explanation.values[village == name, column, alder].mean() for name in names])
kind = np.array([*np.where(is_wet, "wet", "dry"), "missing"])

figure, ax = plt.subplots(figsize=(9, 3.6), layout="constrained")
order = mean.argsort()
for value, color in (("dry", "tab:olive"), ("wet", "tab:blue"), ("missing", "black")):
    position = np.flatnonzero(kind[order] == value)
    ax.bar(position, mean[order][position], color=color, label=value)
ax.set(xlabel="villages, sorted", ylabel="contribution to the score of alder", xticks=[])
ax.legend(frameon=False)
plt.show()
