"""The base class of each iteration."""

import numpy as np
import pytest

from abcgbm import AdaptiveBaseClass
from models import assert_same_model, base_labels, noisy_data, small

X, Y = noisy_data(n_rows=300, n_classes=4)
NAMES = np.array(["best", "none", "random", "worst"])[Y]


def expected_bases(model):
    """Return the class of largest loss before each iteration."""
    return model.classes_[model.class_losses_[:-1].argmax(axis=1)].tolist()


@pytest.mark.parametrize(
    "variant",
    [
        {"algorithm": "abc-mart"},
        {"algorithm": AdaptiveBaseClass(base_derivatives=False)},
    ],
)
@pytest.mark.parametrize("y", [Y, NAMES])
def test_base_is_the_class_of_largest_loss_before_the_iteration(variant, y):
    model = small(**variant, max_iter=20).fit(X, y)
    assert base_labels(model)[1:] == expected_bases(model)[1:]
    assert len(set(base_labels(model))) > 1


def test_mart_has_no_base_class():
    mart = small("mart").fit(X, Y)
    assert base_labels(mart) == [None] * 8
    assert (mart.model_.ensemble.tree_base == -1).all()


def test_first_base_is_drawn_from_random_state():
    first = [base_labels(small(random_state=seed, max_iter=1).fit(X, Y))[0] for seed in range(30)]
    assert set(first) == {0, 1, 2, 3}
    again = [base_labels(small(random_state=seed, max_iter=1).fit(X, Y))[0] for seed in range(30)]
    assert first == again


def test_random_state_none_is_zero():
    assert_same_model(small().fit(X, Y), small(random_state=0).fit(X, Y))


def test_draw_does_not_change_the_global_random_state():
    np.random.seed(7)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    small().fit(X, Y)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_generators_are_random_states(make):
    first = {base_labels(small(random_state=make(s), max_iter=1).fit(X, Y))[0] for s in range(30)}
    assert first == {0, 1, 2, 3}
    assert_same_model(small(random_state=make(5)).fit(X, Y), small(random_state=make(5)).fit(X, Y))


@pytest.mark.parametrize("label", [0, 3, np.int64(2)], ids=repr)
def test_label_fixes_the_base(label):
    model = small(AdaptiveBaseClass(base_label=label)).fit(X, Y)
    assert base_labels(model) == [label] * 8
    assert (model.model_.ensemble.tree_base == label).all()
    assert label not in model.model_.ensemble.tree_class


@pytest.mark.parametrize("given", [True, np.True_], ids=repr)
def test_boolean_is_not_a_class_number(given):
    fixed = small(AdaptiveBaseClass(base_label=given))
    with pytest.raises(ValueError, match=r"base_label=.*True.*; .* labels 0, 1"):
        fixed.fit(X, (Y > 1).astype(int))
    assert base_labels(fixed.fit(X, Y > 1)) == [True] * 8


def test_number_is_not_a_boolean_label():
    with pytest.raises(ValueError, match=r"base_label=1; .* labels False, True"):
        small(AdaptiveBaseClass(base_label=1)).fit(X, Y > 1)


def test_label_may_be_any_string():
    fixed = small(AdaptiveBaseClass(base_label="worst"), max_iter=20).fit(X, NAMES)
    assert base_labels(fixed) == ["worst"] * 20
    assert_same_model(fixed, small(AdaptiveBaseClass(base_label=3), max_iter=20).fit(X, Y))


def test_base_of_two_classes_is_reported():
    y = Y > 1
    models = [small(AdaptiveBaseClass(base_label=b)).fit(X, y) for b in (False, True)]
    assert [set(base_labels(m)) for m in models] == [{False}, {True}]
    one, other = (m.decision_function(X) for m in models)
    assert one.tobytes() == other.tobytes()


def test_mb_has_plain_derivatives_and_a_base_class():
    given = {"max_iter": 1, "learning_rate": 1.0}
    model = small(AdaptiveBaseClass(base_derivatives=False, line_search=False), **given).fit(X, Y)
    plain = small("mart", **given).fit(X, Y)
    base = base_labels(model)[0]
    assert model.model_.ensemble.tree_class.tolist() == [k for k in range(4) if k != base]
    scores, plain_scores = model.decision_function(X), plain.decision_function(X)
    others = [k for k in range(4) if k != base]
    # Only the derivatives change: no factor (K-1)/K.
    np.testing.assert_allclose(scores[:, others], plain_scores[:, others] * 4 / 3, atol=2**-30)
    np.testing.assert_allclose(scores.sum(axis=1), 0, atol=1e-12)


def test_mb_is_neither_mart_nor_abc_mart():
    models = [
        small("mart").fit(X, Y),
        small(AdaptiveBaseClass(base_derivatives=False)).fit(X, Y),
        small("abc-mart").fit(X, Y),
    ]
    assert len({m.predict_proba(X).tobytes() for m in models}) == 3


def test_iteration_has_k_trees_or_one_fewer():
    assert np.diff(small("mart").fit(X, Y).model_.ensemble.iteration_start).tolist() == [4] * 8
    assert np.diff(small("abc-mart").fit(X, Y).model_.ensemble.iteration_start).tolist() == [3] * 8


def test_ties_are_broken_by_the_lowest_class():
    y = np.repeat(np.arange(4), 20)
    X = np.eye(4)[y]  # all classes have equal losses
    model = small("abc-mart", max_iter=2).fit(X, y)
    losses = model.class_losses_[1]
    assert np.count_nonzero(losses == losses.max()) == 3
    assert base_labels(model)[1] == np.flatnonzero(losses == losses.max())[0]


def test_message_shows_ten_labels_at_most():
    y = np.arange(300) % 12
    with pytest.raises(ValueError, match=r"base_label=99; .* 0, 1, .*, 9 and 2 more$"):
        small(AdaptiveBaseClass(base_label=99)).fit(X, y)
