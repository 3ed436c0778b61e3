"""
MART and ABC-MART: three ways to compare them
=============================================

The paper compares the two algorithms by the minimum of their test curves. Since this minimum is chosen on the test
rows, it is optimistic for both. This example adds two other figures: the test error after the last iteration, and at
an iteration chosen without the test rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from abcgbm import ABCBoostClassifier
from abcgbm.plotting import plot_base_classes, plot_class_losses, plot_errors, plot_losses

X, y = load_digits(return_X_y=True)
half = len(X) // 2
X_train, y_train, X_test, y_test = X[:half], y[:half], X[half:], y[half:]
algorithms = {"MART": "mart", "ABC-MART": "abc-mart"}
params = {"max_leaf_nodes": 10, "learning_rate": 0.1, "max_iter": 300}

models = {
    name: ABCBoostClassifier.paper(algorithm, **params).fit(X_train, y_train)
    for name, algorithm in algorithms.items()
}
errors = {
    name: np.array([(labels != y_test).sum() for labels in model.staged_predict(X_test)])
    for name, model in models.items()
}

# %%
# To choose an iteration without the test rows, fit on nine tenths of the training rows and take the iteration with the
# lowest loss on the last tenth. The errors are those of the fit on all training rows after this iteration.

n_fit = half - half // 10
chosen = {}
for name, algorithm in algorithms.items():
    validated = ABCBoostClassifier.paper(algorithm, **params, early_stopping=False)
    validated.fit(X_train[:n_fit], y_train[:n_fit], X_val=X_train[n_fit:], y_val=y_train[n_fit:])
    chosen[name] = validated.validation_loss_[1:].argmin() + 1

rows = {
    "minimum of the test curve": [curve.min() for curve in errors.values()],
    "after the last iteration": [curve[-1] for curve in errors.values()],
    "at the validated iteration": [errors[name][chosen[name] - 1] for name in algorithms],
}
print(f"{'errors on ' + str(len(y_test)) + ' test rows':30}{'MART':>8}{'ABC-MART':>10}")
for title, (mart, abc) in rows.items():
    print(f"{title:30}{mart:8}{abc:10}")

# %%
# Left: training loss. Right: test errors; dots mark the minima, bars the validated iterations. With this few test rows,
# a difference of a dozen errors is weak evidence. :doc:`The paper's experiments </paper>` are larger.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
plot_losses(models, ax=left)
plot_errors(models, X_test, y_test, ax=right)
for line in [line for line in right.lines if line.get_label() in algorithms]:
    iteration = chosen[line.get_label()]
    right.plot(
        iteration, line.get_ydata()[iteration - 1], "|", color=line.get_color(), ms=26, mew=3
    )
right.set(ylim=(0.065, 0.145))
plt.show()

# %%
# ABC-MART chooses the class with the largest training loss as the base class of the next iteration. Above: the base
# class of each iteration. Below: the share of three classes in the training loss.

model = models["ABC-MART"]
figure, (above, below) = plt.subplots(2, 1, figsize=(10, 6.5), layout="constrained")
plot_base_classes(model, ax=above)
plot_class_losses(model, normalize=True, classes=[0, 8, 9], ax=below)
plt.show()
