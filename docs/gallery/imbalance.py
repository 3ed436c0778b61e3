"""
Rare classes: weights, thresholds, calibration
==============================================

A class of one row in nineteen. Weights find it more often, and make its probability too high; that can be seen, and
mended.
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
print(f"{np.mean(y_test == rare):.3f} of the test rows are of the rare class")
print(f"{'':24}{'log loss':>9}{'mean probability':>18}{'found':>7}")
for name, p in proba.items():
    found = recall_score(y_test, p.argmax(axis=1), labels=[rare], average=None)[0]
    print(f"{name:24}{log_loss(y_test, p):9.3f}{p[:, rare].mean():18.3f}{found:7.3f}")

# %%
# **Are the probabilities true?** Of the rows to which a model gives a probability near 0.3, three in ten should be of
# the class. Below the diagonal a model promises too much, as the balanced one does; above it too little, as the one
# without weights does here. Calibration brings the balanced one near the diagonal.

figure, ax = plt.subplots(figsize=(6.5, 4.6), layout="constrained")
ax.plot([0, 1], [0, 1], color="grey", lw=0.8)
for name, p in proba.items():
    true, said = calibration_curve(y_test == rare, p[:, rare], n_bins=12, strategy="quantile")
    ax.plot(said, true, "o-", ms=4, label=name)
ax.set(xlabel="probability of the rare class", ylabel="share of it among these rows")
ax.set(xlim=(0, 0.45), ylim=(0, 0.45))
ax.legend()
plt.show()

# %%
# **A threshold does what weights do.** Whoever calls a row rare when its probability is above a threshold may choose
# any point of these curves; the models differ little in which points there are. So: no weights, true probabilities,
# and a threshold that says what an error costs.

figure, ax = plt.subplots(figsize=(6.5, 4.6), layout="constrained")
for name, p in proba.items():
    order = np.argsort(-p[:, rare])
    hits = (y_test == rare)[order].cumsum()
    called = np.arange(1, len(hits) + 1)
    ax.plot(hits / hits[-1], hits / called, label=name)
ax.set(xlabel="share of the rare class that is found", ylabel="share of calls that are right")
ax.set(xlim=(0, 1), ylim=(0, 1))
ax.legend()
plt.show()
