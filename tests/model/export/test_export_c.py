"""C export: the file compiles without warnings and gives the scores of the model."""

import ctypes
import os
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

from abcgbm import Categorical
from export_cases import CASES, FRAME, FRAME_Y, LONG, X, Y, case, codes, long_case, raw
from models import small

COMPILER = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
if COMPILER is None:
    pytest.skip("there is no C compiler", allow_module_level=True)
STRICT = [
    "-std=c99",
    "-O1",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-pedantic",
    "-ffp-contract=off",
    "-shared",
    "-fPIC",
]
Doubles = ctypes.POINTER(ctypes.c_double)


class Compiled:
    """The functions of a compiled file."""

    def __init__(self, source, folder, prefix="abcgbm"):
        (folder / "model.c").write_text(source, "utf-8")
        command = [COMPILER, *STRICT, "-o", folder / "model.so", folder / "model.c", "-lm"]
        subprocess.run(command, check=True)
        self.library, self.prefix = ctypes.CDLL(str(folder / "model.so")), prefix
        self._of("code", ctypes.c_int, ctypes.c_char_p, answer=ctypes.c_double)
        self._of("code_of_number", ctypes.c_int, ctypes.c_double, answer=ctypes.c_double)
        self._of("predict", Doubles, Doubles, answer=ctypes.c_int)
        self._of("scores", Doubles, Doubles, answer=None)

    def _of(self, name, *types, answer):
        function = getattr(self.library, f"{self.prefix}_{name}")
        function.argtypes, function.restype = types, answer
        setattr(self, name, function)

    def names(self, what, n):
        array = (ctypes.c_char_p * n).in_dll(self.library, f"{self.prefix}_{what}")
        return [name.decode() for name in array]

    def rows(self, function, values, n_classes):
        out = np.empty((len(values), n_classes))
        answers = [
            function(row.ctypes.data_as(Doubles), to.ctypes.data_as(Doubles))
            for row, to in zip(np.ascontiguousarray(values, np.float64), out, strict=True)
        ]
        return answers, out


@pytest.mark.parametrize("name", CASES)
def test_compiled_program_gives_the_scores_of_the_model(name, tmp_path):
    model, rows = case(name)
    program, values, K = Compiled(model.to_c(), tmp_path), codes(model, rows), len(model.classes_)
    _, scores = program.rows(program.scores, values, K)
    assert scores.tobytes() == raw(model, rows).tobytes()
    best, proba = program.rows(program.predict, values, K)
    np.testing.assert_allclose(proba, model.predict_proba(rows), rtol=1e-13, atol=0)
    assert model.classes_[best].tolist() == model.predict(rows).tolist()
    assert program.names("classes", K) == [str(label) for label in model.classes_]


@pytest.mark.parametrize("name", ["frame, abc-mart", "frame, shared codes"])
def test_categories_have_the_codes_of_the_model(name, tmp_path):
    model, rows = case(name)
    program, expected = Compiled(model.to_c(), tmp_path), codes(model, rows)
    assert program.names("features", 5) == list(FRAME)
    for feature in (1, 4):
        strings = rows.iloc[:, feature].fillna("").tolist()
        found = [program.code(feature, level.encode()) for level in strings]
        np.testing.assert_array_equal(found, expected[:, feature])
    numbers = rows["number"].astype(float).tolist()
    np.testing.assert_array_equal(
        [program.code_of_number(3, level) for level in numbers], expected[:, 3]
    )


def test_feature_without_categories_has_no_codes(tmp_path):
    program = Compiled(case("frame, mart").model.to_c(), tmp_path)
    assert all(np.isnan(program.code(f, b"level 1?")) for f in (-1, 0, 2, 3, 5))
    assert all(np.isnan(program.code_of_number(f, 0.25)) for f in (-1, 0, 1, 2, 5))


def test_prefixes_separate_several_models(tmp_path):
    model, rows = case("mart")
    program = Compiled(model.to_c(prefix="other_1"), tmp_path, "other_1")
    _, scores = program.rows(program.scores, rows, len(model.classes_))
    assert scores.tobytes() == raw(model, rows).tobytes()


@pytest.mark.parametrize("prefix", ["", "1a", "a-b", "ä", "a b", 3, None])
def test_invalid_prefix_is_refused(prefix):
    error = ValueError if isinstance(prefix, str) else TypeError
    with pytest.raises(error, match=f"prefix={prefix!r}; expected a C identifier"):
        case("mart").model.to_c(prefix=prefix)


def test_identifiers_of_the_file_may_be_feature_names(tmp_path):
    words = np.array(["PREFIX", "*/ int", "\n", "{n_classes}"])
    frame = pd.DataFrame({"PREFIX": words[FRAME_Y], "/* */": X[:, 0]})
    model = small(categorical_features=Categorical(penalty=0.0)).fit(frame, words[Y])
    program = Compiled(model.to_c(), tmp_path)
    assert program.names("features", 2) == list(frame)
    assert program.names("classes", 4) == sorted(words)
    assert [program.code(0, word.encode()) for word in sorted(words)] == [0, 1, 2, 3]


def test_category_with_a_null_character_is_refused():
    model = small(max_iter=1).fit(pd.DataFrame({"a": [f"level \0 {y}" for y in Y]}), Y)
    with pytest.raises(ValueError, match="contains a null character"):
        model.to_c()


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_program_of_a_thousand_iterations_has_the_exact_scores(name, tmp_path):
    model, rows = long_case(name)
    program = Compiled(model.to_c(), tmp_path)
    _, scores = program.rows(program.scores, rows, len(model.classes_))
    assert scores.tobytes() == raw(model, rows).tobytes()
