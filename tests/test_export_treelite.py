"""treelite answers as the model does."""

import numpy as np
import pytest

from export_cases import CASES, X, Y, case, codes
from models import small

treelite = pytest.importorskip("treelite")


def probabilities(model, values):
    answer = treelite.gtil.predict(model.to_treelite(), values)
    return answer.reshape(len(values), len(model.classes_))


@pytest.mark.parametrize("name", CASES)
def test_treelite_answers_as_the_model(name):
    model, rows = case(name)
    proba = probabilities(model, codes(model, rows).astype(np.float32))
    np.testing.assert_allclose(proba, model.predict_proba(rows), rtol=0, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "variant", [{"algorithm": "abc-mart"}, {"trees": "shared"}], ids=["abc-mart", "shared"]
)
def test_thousand_steps_lose_no_precision(variant):
    model = small(**variant, max_iter=1000).fit(X, Y)
    proba = probabilities(model, X.astype(np.float32))
    np.testing.assert_allclose(proba, model.predict_proba(X), rtol=0, atol=1e-6)


def test_tree_with_a_base_class_is_there_for_both_classes():
    model, _ = case("abc-mart")
    n_trees = len(model.model_.ensemble.tree_class)
    assert model.to_treelite().num_tree == 2 * n_trees


def test_shared_tree_is_one_tree():
    model, _ = case("shared")
    assert model.to_treelite().num_tree == model.best_iter_
