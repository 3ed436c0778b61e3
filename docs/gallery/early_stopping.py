"""
Early stopping, and resuming after a crash
==========================================

Validation rows choose the number of iterations. A checkpoint lets an interrupted training resume, with the same result
as an uninterrupted one, byte for byte.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from abcgbm import ABCBoostClassifier, Checkpoint
from abcgbm.plotting import plot_losses

X, y = make_classification(
    3000, 20, n_informative=10, n_classes=6, class_sep=0.8, flip_y=0.1, random_state=0
)
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)
validation = {"X_val": X_val, "y_val": y_val}

models = {
    rate: ABCBoostClassifier(learning_rate=rate).fit(X_train, y_train, **validation)
    for rate in (0.3, 0.1, 0.04)
}
for rate, model in models.items():
    loss = model.validation_loss_[model.best_iteration_]
    print(
        f"learning rate {rate:4}: best iteration {model.best_iteration_:4} of {model.n_iter_:4}, "
        f"validation loss {loss:.3f}"
    )

# %%
# A smaller learning rate takes more iterations and reaches a lower loss. The dots mark the best iterations.

figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
named = {f"learning_rate={rate}": model for rate, model in models.items()}
plot_losses(named, kinds=["validation"], ax=ax)
plt.show()

# %%
# **Resuming.** Here a callback simulates a crash after 60 iterations. ``resume_from`` continues from the checkpoint.


def crash(report):
    if report.iteration == 60:
        raise SystemExit("crashed")


with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "training.abcgbm"
    try:
        model = ABCBoostClassifier(learning_rate=0.1, callbacks=[Checkpoint(path), crash])
        model.fit(X_train, y_train, **validation)
    except SystemExit as error:
        print(f"{error}; the checkpoint has {path.stat().st_size // 1024} kB")
    model = ABCBoostClassifier(learning_rate=0.1, callbacks=Checkpoint(path))
    resumed = model.fit(X_train, y_train, **validation, resume_from=path)

print("same model:", resumed.model_ == models[0.1].model_)
print("same history:", resumed.history_ == models[0.1].history_)
