"""treelite export: treelite gives the predictions of the model."""

import numpy as np
import pytest

from export_cases import CASES, LONG, case, codes, long_case

treelite = pytest.importorskip("treelite")


def probabilities(model, values):
    answer = treelite.gtil.predict(model.to_treelite(), values, nthread=1)
    return answer.reshape(len(values), len(model.classes_))


@pytest.mark.parametrize("name", CASES)
def test_treelite_gives_the_scores_of_the_model(name):
    model, rows = case(name)
    proba = probabilities(model, codes(model, rows).astype(np.float32))
    np.testing.assert_allclose(proba, model.predict_proba(rows), rtol=0, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_thousand_iterations_lose_no_precision(name):
    model, rows = long_case(name)
    proba = probabilities(model, rows)
    np.testing.assert_allclose(proba, model.predict_proba(rows), rtol=0, atol=1e-6)


def test_tree_with_a_base_class_appears_for_both_classes():
    model, _ = case("abc-mart")
    n_trees = len(model.model_.ensemble.tree_class)
    assert model.to_treelite().num_tree == 2 * n_trees


def test_multi_output_tree_is_one_tree():
    model, _ = case("shared")
    assert model.to_treelite().num_tree == model.best_iteration_
