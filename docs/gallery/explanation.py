"""
What tells one of ten classes
=============================

``explain`` returns exact Shapley values for each class: what every feature adds to its score, row by row. With
handwritten digits the features are pixels, so that the explanation is a picture.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from abcgbm import ABCBoostClassifier
from abcgbm.plotting import plot_calibration, plot_confusion

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
model = ABCBoostClassifier().fit(X_train, y_train)
found = model.explain(X_test)
print(found, f"accuracy {model.score(X_test, y_test):.3f}")

total = found.base_values + found.values.sum(axis=1)
print("sums are the scores:", abs(total - model.decision_function(X_test)).max() < 1e-9)

# %%
# **One row, two classes.** The row of which the model was least sure, and its two best classes: red pixels speak for
# the class, blue ones against it. The values of a class sum to its score.

proba = model.predict_proba(X_test)
row = np.sort(proba)[:, -1].argmin()
first, second = proba[row].argsort()[::-1][:2]
most = abs(found.values[row]).max()
figure, axes = plt.subplots(1, 3, figsize=(9, 3.3), layout="constrained")
axes[0].imshow(X_test[row].reshape(8, 8), cmap="gray_r")
axes[0].set_title(f"a {y_test[row]}")
for ax, label in zip(axes[1:], (first, second), strict=True):
    shown = found.values[row, :, label].reshape(8, 8)
    image = ax.imshow(shown, cmap="RdBu_r", vmin=-most, vmax=most)
    ax.set_title(f"{label}: probability {proba[row, label]:.2f}")
figure.colorbar(image, ax=axes, label="adds to the score", shrink=0.8)
for ax in axes:
    ax.set_axis_off()
plt.show()

# %%
# **Which classes are taken for which**, and whether the probabilities are true.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
plot_confusion(model, X_test, y_test, ax=left)
plot_calibration(model, X_test, y_test, ax=right)
plt.show()

# %%
# **All rows, all classes.** Pixel by pixel the mean size of what it adds: where the model looks to tell a class.

size = abs(found.values).mean(axis=0)
figure, axes = plt.subplots(2, 5, figsize=(9, 4), layout="constrained")
for label, ax in enumerate(axes.flat):
    ax.imshow(size[:, label].reshape(8, 8), cmap="magma", vmin=0, vmax=size.max())
    ax.set_title(label)
    ax.set_axis_off()
plt.show()
