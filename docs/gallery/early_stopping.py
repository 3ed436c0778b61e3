"""
Stop in time, and go on after a power cut
=========================================

Validation says when to stop; a checkpoint makes sure that a training which was broken off ends in the same model, byte
for byte.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from abcgbm import ABCBoostClassifier
from abcgbm.plotting import plot_losses

X, y = make_classification(
    3000, 20, n_informative=10, n_classes=6, class_sep=0.8, flip_y=0.1, random_state=0
)
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)
rows = {"X_val": X_val, "y_val": y_val}

models = {
    rate: ABCBoostClassifier(learning_rate=rate).fit(X_train, y_train, **rows)
    for rate in (0.3, 0.1, 0.04)
}
for rate, model in models.items():
    loss = model.validation_loss_[model.best_iter_] / len(y_val)
    print(f"rate {rate:4}: best step {model.best_iter_:4} of {model.n_iter_:4}, loss {loss:.3f}")

# %%
# A smaller rate takes more steps and comes lower; the dot is the step whose model is kept.

figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
named = {f"learning_rate={rate}": model for rate, model in models.items()}
plot_losses(named, kinds=["validation"], ax=ax)
plt.show()

# %%
# **Broken off, and gone on with.** A callback plays the power cut. ``resume_from`` goes on from the file; what comes
# out is the model of a training that nobody broke off.


def power_cut(report):
    if report.step == 60:
        raise SystemExit("no power")


with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "training.abcgbm"
    setting = {"learning_rate": 0.1, "checkpoint": path}
    try:
        ABCBoostClassifier(**setting, callbacks=power_cut).fit(X_train, y_train, **rows)
    except SystemExit as error:
        print(f"{error}; the checkpoint has {path.stat().st_size // 1024} kB")
    resumed = ABCBoostClassifier(**setting).fit(X_train, y_train, **rows, resume_from=path)

print("the same model:", resumed.model_ == models[0.1].model_)
print("the same record:", resumed.history_ == models[0.1].history_)
