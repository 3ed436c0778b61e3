"""
Rare classes: weights, thresholds and calibration
=================================================

One row in nineteen belongs to the rare class. Class weights find it more often, but make its probability too high. This
example shows the effect and two remedies: calibration, or a threshold instead of weights.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import CalibratedClassifierCV, calibration_curve
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss, recall_score
from sklearn.model_selection import train_test_split

from abcgbm import ABCBoostClassifier

X, y = make_classification(
    12000,
    12,
    n_informative=6,
    n_classes=3,
    weights=[0.9, 0.06, 0.04],
    class_sep=0.6,
    flip_y=0.04,
    random_state=0,
)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
balanced = ABCBoostClassifier(class_weight="balanced")
models = {
    "no weights": ABCBoostClassifier(),
    "balanced": balanced,
    "balanced, calibrated": CalibratedClassifierCV(balanced, method="isotonic", cv=3),
}
proba = {name: model.fit(X_train, y_train).predict_proba(X_test) for name, model in models.items()}

rare = 2
print(f"fraction of the rare class in the test rows: {np.mean(y_test == rare):.3f}")
print(f"{'':24}{'log loss':>9}{'mean probability':>18}{'recall':>8}")
for name, p in proba.items():
    recall = recall_score(y_test, p.argmax(axis=1), labels=[rare], average=None)[0]
    print(f"{name:24}{log_loss(y_test, p):9.3f}{p[:, rare].mean():18.3f}{recall:8.3f}")

# %%
# **Calibration.** Of the rows with a predicted probability near 0.3, three in ten should belong to the class. Below the
# diagonal, probabilities are too high, as those of the balanced model; above it they are too low, as those of the model
# without weights here. Calibration moves the balanced model close to the diagonal.

figure, ax = plt.subplots(figsize=(6.5, 4.6), layout="constrained")
ax.plot([0, 1], [0, 1], color="grey", lw=0.8)
for name, p in proba.items():
    observed, predicted = calibration_curve(
        y_test == rare, p[:, rare], n_bins=12, strategy="quantile"
    )
    ax.plot(predicted, observed, "o-", ms=4, label=name)
ax.set(xlabel="predicted probability of the rare class", ylabel="observed fraction")
ax.set(xlim=(0, 0.45), ylim=(0, 0.45))
ax.legend()
plt.show()

# %%
# **Thresholds.** Each threshold on the probability of the rare class gives one point of these curves. The curves of the
# three models differ little: a threshold achieves what weights do. So train without weights, and choose the threshold
# from the costs of the errors.

figure, ax = plt.subplots(figsize=(6.5, 4.6), layout="constrained")
for name, p in proba.items():
    order = np.argsort(-p[:, rare])
    hits = (y_test == rare)[order].cumsum()
    n_predicted = np.arange(1, len(hits) + 1)
    ax.plot(hits / hits[-1], hits / n_predicted, label=name)
ax.set(xlabel="recall of the rare class", ylabel="precision")
ax.set(xlim=(0, 1), ylim=(0, 1))
ax.legend()
plt.show()
