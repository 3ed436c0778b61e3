"""
Which pixels identify a digit
=============================

``explain`` computes exact Shapley values for each class: the contribution of every feature to its score, row by row.
The features of handwritten digits are pixels, so the explanation of a prediction is an image.
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
explanation = model.explain(X_test)
print(explanation, f"accuracy {model.score(X_test, y_test):.3f}")

total = explanation.base_values + explanation.values.sum(axis=1)
print("contributions sum to the scores:", np.allclose(total, model.decision_function(X_test)))

# %%
# **One row, two classes.** The row with the least certain prediction, and its two most probable classes. Red pixels
# raise the score of the class, blue pixels lower it.

proba = model.predict_proba(X_test)
row = np.sort(proba)[:, -1].argmin()
first, second = proba[row].argsort()[::-1][:2]
limit = abs(explanation.values[row]).max()
figure, axes = plt.subplots(1, 3, figsize=(9, 3.3), layout="constrained")
axes[0].imshow(X_test[row].reshape(8, 8), cmap="gray_r")
axes[0].set_title(f"true class: {y_test[row]}")
for ax, label in zip(axes[1:], (first, second), strict=True):
    pixels = explanation.values[row, :, label].reshape(8, 8)
    image = ax.imshow(pixels, cmap="RdBu_r", vmin=-limit, vmax=limit)
    ax.set_title(f"class {label}: probability {proba[row, label]:.2f}")
figure.colorbar(image, ax=axes, label="contribution to the score", shrink=0.8)
for ax in axes:
    ax.set_axis_off()
plt.show()

# %%
# **All test rows**: the confusion matrix, and the calibration of the probabilities.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
plot_confusion(model, X_test, y_test, ax=left)
plot_calibration(model, X_test, y_test, ax=right)
plt.show()

# %%
# **All rows, all classes.** The mean absolute contribution of each pixel shows where the model looks for a class.

importance = abs(explanation.values).mean(axis=0)
figure, axes = plt.subplots(2, 5, figsize=(9, 4), layout="constrained")
for label, ax in enumerate(axes.flat):
    ax.imshow(importance[:, label].reshape(8, 8), cmap="magma", vmin=0, vmax=importance.max())
    ax.set_title(label)
    ax.set_axis_off()
plt.show()
