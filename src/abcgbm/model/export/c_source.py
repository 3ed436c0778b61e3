"""Export to one file of C99 without dependencies: constant arrays and functions that predict."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abcgbm.data.categories import CategoryMap
from abcgbm.model.ensemble import Ensemble
from abcgbm.model.model import Model

_NUMBERS_PER_LINE = 16
_NOT_PLAIN = re.compile(rb'[^ -~]|["\\?]')  # characters to escape in a string literal
_MISSING_LEFT, _IS_SET = 1, 2  # flags in the two lowest bits beside the left child

_HEAD = """\
/* A classifier of abcgbm: {n_classes} classes, {n_features} features, {n_iter} iterations.
 *
 * x holds the {n_features} features of a row in the order of PREFIX_features. NAN is a missing value.
 * A category is given as its code, which PREFIX_code and PREFIX_code_of_number return; they return NAN
 * for an unknown category.
 *
 *   int PREFIX_predict(const double *x, double *proba);
 *     writes the {n_classes} class probabilities and returns the index of the most probable class
 *   void PREFIX_scores(const double *x, double *scores);
 *     writes the {n_classes} raw scores; the probabilities are their softmax
 *   double PREFIX_code(int feature, const char *category);
 *   double PREFIX_code_of_number(int feature, double category);
 *     return the code of a category, given as a string (UTF-8) or as a number
 */
#include <math.h>
#include <string.h>

int PREFIX_predict(const double *x, double *proba);
void PREFIX_scores(const double *x, double *scores);
double PREFIX_code(int feature, const char *category);
double PREFIX_code_of_number(int feature, double category);

enum {{ N_CLASSES = {n_classes}, N_FEATURES = {n_features}, N_TREES = {n_trees} }};
"""

_CODE = """
/* Returns 0 if a row goes left at a split and 1 if it goes right. LEFT holds the left child times 4,
 * plus 2 for a categorical split, whose set has the index in THRESHOLD, plus 1 if missing values go
 * left. */
static unsigned goes_right(int node, double x)
{
    int missing_right = !(LEFT[node] & 1u);
    unsigned long long code;
    const unsigned long long *set;
    double n_codes;
    if (!(LEFT[node] & 2u)) {
        return isnan(x) ? (unsigned)missing_right : (unsigned)!(x <= THRESHOLD[node]);
    }
    set = LEFT_SET + SET_START[(int)THRESHOLD[node]];
    n_codes = 64.0 * (SET_START[(int)THRESHOLD[node] + 1] - SET_START[(int)THRESHOLD[node]]);
    if (!(x >= 0.0 && x < n_codes)) {
        return (unsigned)missing_right;
    }
    code = (unsigned long long)x;
    return (unsigned)!((set[code / 64u] >> (code % 64u)) & 1u);
}

void PREFIX_scores(const double *x, double *scores)
{
    int k, tree;
    for (k = 0; k < N_CLASSES; ++k) {
        scores[k] = START[k];
    }
    for (tree = 0; tree < N_TREES; ++tree) {
        int node = TREE_START[tree];
        double value;
        while (FEATURE[node] >= 0) {
            node = TREE_START[tree] + (int)((LEFT[node] >> 2) + goes_right(node, x[FEATURE[node]]));
        }
        value = THRESHOLD[node];
        if (TREE_CLASS[tree] < 0) {
            for (k = 0; k < N_CLASSES; ++k) {
                scores[k] += (double)LEAF_VALUE[(size_t)value * N_CLASSES + (size_t)k];
            }
            continue;
        }
        scores[TREE_CLASS[tree]] += value;
        if (TREE_BASE[tree] >= 0) {
            scores[TREE_BASE[tree]] -= value * TREE_BASE_SCALE[tree];
        }
    }
}

int PREFIX_predict(const double *x, double *proba)
{
    int k, best = 0;
    double sum = 0.0, largest;
    PREFIX_scores(x, proba);
    for (k = 1; k < N_CLASSES; ++k) {
        if (proba[k] > proba[best]) {
            best = k;
        }
    }
    largest = proba[best];
    for (k = 0; k < N_CLASSES; ++k) {
        proba[k] = exp(proba[k] - largest);
        sum += proba[k];
    }
    for (k = 0; k < N_CLASSES; ++k) {
        proba[k] /= sum;
    }
    return best;
}

double PREFIX_code(int feature, const char *category)
{
    int first, last;
    if (feature < 0 || feature >= N_FEATURES) {
        return NAN;
    }
    first = STRING_START[feature];
    last = STRING_START[feature + 1];
    while (first < last) {
        int middle = first + (last - first) / 2;
        int order = strcmp(STRING_CATEGORY[middle], category);
        if (order == 0) {
            return STRING_CODE[middle];
        }
        if (order < 0) {
            first = middle + 1;
        } else {
            last = middle;
        }
    }
    return NAN;
}

double PREFIX_code_of_number(int feature, double category)
{
    int first, last;
    if (feature < 0 || feature >= N_FEATURES) {
        return NAN;
    }
    first = NUMBER_START[feature];
    last = NUMBER_START[feature + 1];
    while (first < last) {
        int middle = first + (last - first) / 2;
        if (NUMBER_CATEGORY[middle] == category) {
            return NUMBER_CODE[middle];
        }
        if (NUMBER_CATEGORY[middle] < category) {
            first = middle + 1;
        } else {
            last = middle;
        }
    }
    return NAN;
}
"""


def c_source(model: Model, prefix: str) -> str:
    """Return the C source; its public names begin with the prefix."""
    is_string = isinstance(prefix, str)
    if not is_string or not re.fullmatch(r"[A-Za-z]\w*", prefix, re.ASCII):
        raise (ValueError if is_string else TypeError)(
            f"prefix={prefix!r}; expected a C identifier: letters, digits and underscores, a letter first"
        )
    head = _HEAD.format(
        n_classes=model.ensemble.n_classes,
        n_features=model.ensemble.n_features,
        n_iter=model.n_iter,
        n_trees=len(model.ensemble.tree_class),
    )
    tables = [*_names(model, prefix), *_tree_tables(model.ensemble), *_category_tables(model)]
    return "".join([head.replace("PREFIX", prefix), *tables, _CODE.replace("PREFIX", prefix)])


def _names(model: Model, prefix: str) -> Iterator[str]:
    """Yield arrays of the names of classes and features."""
    labels = [_string(str(label)) for label in model.labels]
    yield _table(f"char *const {prefix}_classes", labels, public=True)
    names = [_string(name) for name in model.feature_labels]
    yield _table(f"char *const {prefix}_features", names, public=True)


def _tree_tables(ensemble: Ensemble) -> Iterator[str]:
    """Yield arrays of the nodes, trees and leaves."""
    is_leaf, is_set = ensemble.feature < 0, ensemble.left_set_size > 0
    in_multi_output = np.repeat(ensemble.tree_class < 0, np.diff(ensemble.tree_start))
    # THRESHOLD holds the value of a leaf, or its row in LEAF_VALUE if the tree is multi-output, and the
    # index of the bit set of a categorical split.
    threshold = np.where(is_leaf, ensemble.value, ensemble.threshold)
    threshold[is_leaf & in_multi_output] = np.arange(np.count_nonzero(is_leaf & in_multi_output))
    threshold[is_set] = np.arange(np.count_nonzero(is_set))
    flags = _MISSING_LEFT * (ensemble.missing_left != 0) + _IS_SET * is_set
    left = 4 * ensemble.left.astype(np.int64) + flags
    set_start = np.concatenate([[0], np.cumsum(ensemble.left_set_size[is_set])])
    yield _table("double START", _doubles(ensemble.init))
    yield _table("int FEATURE", _integers(ensemble.feature))
    yield _table("unsigned LEFT", _integers(left * ~is_leaf, "u"))
    yield _table("double THRESHOLD", _doubles(threshold))
    yield _table("int SET_START", _integers(set_start))
    yield _table(
        "unsigned long long LEFT_SET", [f"{word:#x}ull" for word in ensemble.left_set.tolist()]
    )
    yield _table("int TREE_START", _integers(ensemble.tree_start))
    yield _table("int TREE_CLASS", _integers(ensemble.tree_class))
    yield _table("int TREE_BASE", _integers(ensemble.tree_base))
    yield _table("double TREE_BASE_SCALE", _doubles(ensemble.tree_base_scale))
    yield _table("float LEAF_VALUE", _doubles(ensemble.leaf_value.ravel()))


def _category_tables(model: Model) -> Iterator[str]:
    """Yield arrays of sorted categories and their codes: strings first, then numbers."""
    categories, features = model.encoding.categories, range(model.ensemble.n_features)
    empty = CategoryMap("", {})
    for kind, c_type, literal in (
        ("STRING", "char *const", _string),
        ("NUMBER", "double", _double),
    ):
        maps = [categories.get(feature, empty) for feature in features]
        maps = [m if m.has_strings == (kind == "STRING") else empty for m in maps]
        pairs = [sorted(m.code_of.items()) for m in maps]
        start = np.concatenate([[0], np.cumsum([len(of_feature) for of_feature in pairs])])
        literals = [literal(c) for of_feature in pairs for c, _ in of_feature]
        codes = [str(code) for of_feature in pairs for _, code in of_feature]
        yield _table(f"int {kind}_START", _integers(start))
        yield _table(f"{c_type} {kind}_CATEGORY", literals)
        yield _table(f"int {kind}_CODE", codes)


def _table(name: str, numbers: Iterable[str], *, public: bool = False) -> str:
    """Return a constant array."""
    # C has no empty arrays.
    elements = [*numbers] or ['""' if "char" in name else "0"]
    lines = [
        ", ".join(elements[start : start + _NUMBERS_PER_LINE])
        for start in range(0, len(elements), _NUMBERS_PER_LINE)
    ]
    storage = "" if public else "static "
    return f"\n{storage}const {name}[] = {{\n" + ",\n".join(lines) + "\n};\n"


def _integers(values: NDArray[Any], suffix: str = "") -> list[str]:
    return [f"{value}{suffix}" for value in values.tolist()]


def _doubles(values: NDArray[Any]) -> list[str]:
    return [_double(value) for value in values.tolist()]


def _double(value: float) -> str:
    """Return a hexadecimal literal, which is exact."""
    return ("-" if value < 0 else "") + "INFINITY" if math.isinf(value) else value.hex()


def _string(text: str) -> str:
    """Return a string literal in UTF-8, with all but plain ASCII as octal escapes."""
    if "\0" in text:
        raise ValueError(f"{text!r} contains a null character, which ends a string in C")
    return '"' + _NOT_PLAIN.sub(lambda byte: b"\\%03o" % ord(byte[0]), text.encode()).decode() + '"'
