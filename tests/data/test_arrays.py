"""Strings in arrays of objects, where categorical_features names their columns."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from abcgbm import BinMapper, Categorical
from models import assert_same_model, noisy_data, small

N = 300
RNG = np.random.default_rng(0)
SOIL = RNG.choice(["clay", "loam", "sand"], N).astype(object)
SITE = RNG.integers(0, 5, N)
DEPTH = RNG.normal(size=N)
Y = (np.arange(3)[np.unique(SOIL, return_inverse=True)[1]] + (DEPTH > 0.5)) % 3
SOIL[::17] = None
FRAME = pd.DataFrame({"soil": SOIL, "depth": DEPTH, "site": SITE})
ARRAY = FRAME.to_numpy(dtype=object)
CHOICES = {"soil": [0], "soil and site": [0, 2], "mask": [True, False, False]}
every_choice = pytest.mark.parametrize("chosen", CHOICES.values(), ids=CHOICES)


@every_choice
@pytest.mark.parametrize(
    "form", [np.asarray, np.ndarray.tolist, np.ma.asarray], ids=["array", "lists", "masked"]
)
def test_strings_of_a_named_column_are_categories(chosen, form):
    frame = small(categorical_features=chosen).fit(FRAME, Y)
    model = small(categorical_features=chosen).fit(form(ARRAY), Y)
    assert_same_model(model, frame)
    assert model.score(ARRAY, Y) > 0.9
    for rows in (ARRAY, form(ARRAY), ARRAY[:1]):
        assert (model.predict(rows) == frame.predict(FRAME)[: len(rows)]).all()
    table = BinMapper(categorical_features=chosen).fit(ARRAY).transform(ARRAY)
    assert_same_model(small().fit(table, Y), frame)


def test_array_of_strings_is_all_categories_if_all_are_named():
    words = np.column_stack([SOIL.astype(str), SITE.astype(str)])
    frame = pd.DataFrame(words)
    model = small(categorical_features=[0, 1]).fit(words, Y)
    assert_same_model(model, small().fit(frame, Y))


def test_rows_are_held_out_weighed_and_validated_on():
    weight = np.arange(N) % 3
    given = {"categorical_features": [0], "early_stopping": True, "max_iter": 20}
    expected = small(**given).fit(FRAME, Y, weight)
    assert_same_model(small(**given).fit(ARRAY, Y, weight), expected)
    rows = {"X_val": ARRAY[200:], "y_val": Y[200:]}
    watched = small(categorical_features=[0]).fit(ARRAY[:200], Y[:200], **rows)
    assert watched.validation_loss_[-1] < watched.validation_loss_[0]


def test_strings_from_a_column_transformer():
    by_kind = ColumnTransformer(
        [
            ("words", SimpleImputer(strategy="most_frequent"), ["soil"]),
            ("as is", "passthrough", ["depth"]),
        ]
    )
    frame = FRAME.assign(soil=FRAME["soil"].where(FRAME["soil"].notna(), np.nan))
    assert by_kind.fit_transform(frame).dtype == object
    named = make_pipeline(clone(by_kind), small(categorical_features=[0])).fit(frame, Y)
    assert named.score(frame, Y) > 0.9
    with pytest.raises(
        ValueError, match=r"X holds strings, such as .*set_output\(transform='pandas'\)"
    ):
        make_pipeline(by_kind, small()).fit(frame, Y)
    by_kind.set_output(transform="pandas")
    found = make_pipeline(by_kind, small()).fit(frame, Y)
    assert (found.predict(frame) == named.predict(frame)).all()


def test_strings_of_another_column_are_refused():
    with pytest.raises(ValueError, match="X holds strings, such as"):
        small(categorical_features=[2]).fit(ARRAY, Y)
    with pytest.raises(ValueError, match="holds strings"):
        small(categorical_features=None).fit(ARRAY, Y)
    model = small(categorical_features=[2]).fit(FRAME[["depth", "depth", "site"]].to_numpy(), Y)
    with pytest.raises(ValueError, match="holds strings"):
        model.predict(ARRAY)


def test_errors_call_the_column_by_its_number():
    model = small(categorical_features=Categorical([0], handle_unknown="error")).fit(ARRAY, Y)
    peat = ARRAY.copy()
    peat[3, 0] = "peat"
    expected = r"column 0 has unknown categories 'peat'; expected some of 'clay', 'loam', 'sand'"
    with pytest.raises(ValueError, match=expected):
        model.predict(peat)
    peat[3, 0] = {}
    with pytest.raises(TypeError, match="column 0 has values of type dict, such as "):
        model.predict(peat)


def test_shape_is_checked_as_of_any_array():
    with pytest.raises(ValueError, match="0 sample"):
        small(categorical_features=[0]).fit(ARRAY[:0], Y[:0])
    model = small(categorical_features=[0]).fit(ARRAY, Y)
    with pytest.raises(ValueError, match=r"2 features, but .* is expecting 3 features"):
        model.predict(ARRAY[:, 1:])


def test_known_classes_are_no_reason_to_warn():
    """scikit-learn warns if more than half of the labels differ; filters make that an error here."""
    X, y = noisy_data(n_rows=400, n_classes=30)
    model = small(classes=list(range(30)), max_iter=1).fit(X, y)
    small(classes=list(range(30)), max_iter=1, min_samples_leaf=1).fit(X[:36], np.arange(36) % 30)
    small(max_iter=1, early_stopping=False).fit(X, y, X_val=X[:36], y_val=np.arange(36) % 30)
    assert len(model.classes_) == 30
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        small(classes=[0.5, 1.5]).fit(X, y)
