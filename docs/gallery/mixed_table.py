"""
Strings, categories and gaps as they come
=========================================

A data frame with columns of strings, of numbers and of truth values, with missing values in all of them, goes into
``fit`` as it is. Here is what the model makes of it.
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
wet = rng.random(60) < 0.4  # a village in a wet valley: nobody tells the model
X = pd.DataFrame(
    {
        "soil": rng.choice(["clay", "loam", "sand"], n),
        "slope": rng.gamma(2.0, 8.0, n),
        "village": rng.choice(villages, n),
        "north": rng.random(n) < 0.5,
    }
)
in_wet = wet[X["village"].str.removeprefix("village ").astype(int)]
y = np.select(
    [in_wet & (X["soil"] != "sand"), X["slope"] > 20, X["soil"] == "sand"],
    ["alder", "fir", "pine"],
    "oak",
)
y = np.where(rng.random(n) < 0.05, "oak", y)
for column in X:  # a tenth of everything is unknown
    X[column] = X[column].mask(rng.random(n) < 0.1)
print(X.head(4).to_string())

X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
model = ABCBoostClassifier(early_stopping=True).fit(X_train, y_train)
print(f"accuracy {model.score(X_test, y_test):.3f} after {model.best_iter_} steps")

# %%
# Categories were found by their types. The model remembers names and levels: columns may come in another order,
# and a village that it has not seen is a missing value.

new = pd.DataFrame({"north": [True], "village": ["Atlantis"], "slope": [30.0], "soil": ["sand"]})
proba = model.predict_proba(new)[0]
print({str(label): round(float(p), 3) for label, p in zip(model.classes_, proba, strict=True)})

# %%
# **What a class is known by**, its share in the gain of all splits. Fir is the slope, alder the village:

figure, ax = plt.subplots(figsize=(8, 3.4), layout="constrained")
plot_class_importances(model, ax=ax)
plt.show()

# %%
# **What the model has learned of the villages**: the mean of the Shapley values of "village" for alder. Wet ones,
# which no column names, stand apart; so do the rows whose village is missing, in the middle.

found = model.explain(X_test)
column, alder = X.columns.get_loc("village"), list(model.classes_).index("alder")
village = X_test["village"].fillna("missing").to_numpy()
names = [*villages, "missing"]
mean = np.array([found.values[village == name, column, alder].mean() for name in names])
kind = np.array([*np.where(wet, "wet", "dry"), "missing"])

figure, ax = plt.subplots(figsize=(9, 3.6), layout="constrained")
order = mean.argsort()
for which, colour in (("dry", "tab:olive"), ("wet", "tab:blue"), ("missing", "black")):
    at = np.flatnonzero(kind[order] == which)
    ax.bar(at, mean[order][at], color=colour, label=which)
ax.set(xlabel="villages, sorted", ylabel="adds to the score of alder", xticks=[])
ax.legend(frameon=False)
plt.show()
