"""A use of the installed package from end to end, with what it requires alone."""

import io
import platform

import numpy as np
from sklearn.datasets import load_digits

import abcgbm

LEAST_ACCURACY = 0.85  # of few steps
X, y = load_digits(return_X_y=True)
train, test = slice(1200), slice(1200, None)
model = abcgbm.ABCBoostClassifier(max_iter=20).fit(X[train], y[train])
accuracy = model.score(X[test], y[test])
if accuracy < LEAST_ACCURACY:
    raise SystemExit(f"an accuracy of {accuracy:.3f} on the digits")
file = io.BytesIO()
model.save_model(file)
file.seek(0)
again = abcgbm.ABCBoostClassifier.load_model(file)
np.testing.assert_array_equal(again.predict_proba(X[test]), model.predict_proba(X[test]))
print(f"abcgbm {abcgbm.__version__}, Python {platform.python_version()}: accuracy {accuracy:.3f}")
