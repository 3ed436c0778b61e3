"""A damaged model file is an error, or gives the same model.

A damaged file with valid digests may give another model, but never a crash, a hang, or more memory
than the size of the file.
"""

import io
import struct
import zipfile

import numpy as np
import pytest

from abcgbm import ModelFileError
from abcgbm.model.file.archive import archive_of
from abcgbm.model.file.document import text_of
from model_files import (
    FRAME,
    content_of,
    document_in,
    loaded,
    members_of,
    npy,
    small_models,
    with_array,
    with_document_text,
    with_valid_digests,
)
from models import run_python

MODELS = small_models()
CONTENTS = {name: content_of(model) for name, model in MODELS.items()}
PER_CLASS, SHARED = CONTENTS["per class"], CONTENTS["shared"]
N_OF_SEED = 330  # times both models, with and without valid digests: 5,280 in all
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))]


def assert_error_or_same(content: bytes, original: bytes) -> None:
    try:
        model = loaded(content)
    except ModelFileError:
        return
    assert content_of(model) == original


def assert_error_or_model(content: bytes) -> None:
    """Check that content with valid digests is refused, or loads as a usable model."""
    try:
        model = loaded(content)
    except ModelFileError:
        return
    again = content_of(model)
    assert content_of(loaded(again)) == again
    with np.errstate(over="ignore", invalid="ignore"):  # of gains near the largest float
        assert len(model.feature_importances_) == model.n_features_in_
    try:
        model.predict_proba(FRAME)
        model.predict_proba(FRAME[:1])
    except (ValueError, TypeError):  # other columns or categories
        return


# ------------------------------------------------------------------------------- random mutations


def flip(rng, data):
    place = rng.integers(8 * len(data))
    data[place // 8] ^= 1 << place % 8


def set_byte(rng, data):
    data[rng.integers(len(data))] = rng.integers(256)


def set_number(rng, data):
    """Write an out-of-range size or index."""
    place = rng.integers(len(data) - 8)
    number = int(rng.choice([0, 1, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1]))
    width = int(rng.choice([2, 4, 8]))
    data[place : place + width] = number.to_bytes(8, "little")[:width]


def truncate(rng, data):
    del data[rng.integers(len(data)) :]


def insert(rng, data):
    place = rng.integers(len(data) + 1)
    data[place:place] = rng.integers(0, 256, rng.integers(1, 40)).astype(np.uint8).tobytes()


def remove(rng, data):
    place = rng.integers(len(data))
    del data[place : place + rng.integers(1, 40)]


def repeat(rng, data):
    first, last = sorted(rng.integers(0, len(data), 2))
    data[last:last] = data[first : min(last, first + 200)]


def blank(rng, data):
    place, length = rng.integers(len(data)), rng.integers(1, 100)
    data[place : place + length] = bytes(len(data[place : place + length]))


MUTATIONS = (flip, flip, set_byte, set_number, truncate, insert, remove, repeat, blank)


def mutated(rng, content: bytes) -> bytes:
    data = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        if len(data) > 16:
            MUTATIONS[rng.integers(len(MUTATIONS))](rng, data)
    return bytes(data)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", CONTENTS)
def test_damaged_file_is_an_error_or_the_same_model(name, seed):
    original, rng = CONTENTS[name], np.random.default_rng(seed)
    for _ in range(N_OF_SEED):
        assert_error_or_same(mutated(rng, original), original)


@pytest.mark.filterwarnings("ignore:the file has parameters")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", CONTENTS)
def test_damaged_member_with_valid_digests_does_no_harm(name, seed):
    members, rng = members_of(CONTENTS[name]), np.random.default_rng(seed)
    names = [*members]
    for _ in range(N_OF_SEED):
        which = "model.json" if rng.random() < 0.3 else names[rng.integers(len(names))]
        if which == "model.json":
            content = with_document_text(members, mutated(rng, members[which]))
        else:
            header = members[which].index(b"\n") + 1 if rng.random() < 0.7 else 0
            changed = members[which][:header] + mutated(rng, members[which][header:])
            content = with_valid_digests(members | {which: changed})
        assert_error_or_model(content)


def test_swapped_members_are_an_error():
    members = members_of(PER_CLASS)
    names = [name for name in members if name != "model.json"]
    for one, other in zip(names, names[1:] + names[:1], strict=True):
        if members[one] != members[other]:
            swapped = members | {one: members[other], other: members[one]}
            with pytest.raises(ModelFileError, match="was changed or damaged"):
                loaded(archive_of(swapped))
            assert_error_or_model(with_valid_digests(swapped))


def test_order_of_members_does_not_matter():
    members = members_of(SHARED)
    assert content_of(loaded(archive_of(dict(reversed(members.items()))))) == SHARED


# ------------------------------------------------------------------------------- foreign archives


def zipped(members, compression=zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members:
            archive.writestr(name, content, compression)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a zip archive"),
        (b"tree\nversion=v4\n", "not a zip archive"),
        (zipped([]), r"model\.json is not in the archive"),
        (zipped([("model.json", b"{}")]), r"model\.json does not start"),
        (zipped([("../../etc/passwd.npy", b"")]), "is no member of a model file"),
        (zipped([("/trees/feature.npy", b"")]), "is no member of a model file"),
        (zipped([("trees\\feature.npy", b"")]), "is no member of a model file"),
        (zipped([("trees/run.py", b"")]), "is no member of a model file"),
        (zipped([("folder/", b"")]), "is no member of a model file"),
    ],
    ids=["empty", "text", "no members", "no model", "up", "root", "backslash", "code", "folder"],
)
def test_foreign_file_is_an_error(content, message):
    with pytest.raises(ModelFileError, match=message):
        loaded(content)


def test_compressed_member_is_an_error():
    with pytest.raises(ModelFileError, match="is compressed"):
        loaded(zipped(members_of(PER_CLASS).items(), zipfile.ZIP_DEFLATED))


def test_duplicate_member_is_an_error():
    members = members_of(PER_CLASS)
    stream = io.BytesIO(PER_CLASS)
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(stream, "a") as archive:
        archive.writestr("trees/value.npy", members["trees/value.npy"])
    with pytest.raises(ModelFileError, match="two members of the same name"):
        loaded(stream.getvalue())


@pytest.mark.parametrize("mend", [False, True])
def test_additional_or_missing_member_is_an_error(mend):
    members = members_of(PER_CLASS)
    make = with_valid_digests if mend else archive_of
    with pytest.raises(ModelFileError, match="more_values"):
        loaded(make(members | {"trees/more_values.npy": npy(np.zeros(3))}))
    for name in members.keys() - {"model.json"}:
        with pytest.raises(ModelFileError, match=name):
            loaded(make({other: of for other, of in members.items() if other != name}))


def with_declared_sizes(content: bytes, size: int) -> bytes:
    """Return the file with other sizes in its directory and in the headers of its members."""
    data = bytearray(content)
    for mark, place in ((b"PK\x01\x02", 20), (b"PK\x03\x04", 18)):
        at = data.find(mark)
        data[at + place : at + place + 8] = struct.pack("<II", size, size)
    return bytes(data)


@pytest.mark.parametrize("size", [0, 100_000_000, 2**32 - 2])
def test_declared_size_of_a_member_is_not_trusted(size):
    with pytest.raises(ModelFileError):
        loaded(with_declared_sizes(PER_CLASS, size))


def header_of(shape: str, descr: str = "<f8") -> bytes:
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


@pytest.mark.parametrize(
    "header",
    [
        header_of("(1000000000000,)"),
        header_of("(4294967296, 4294967296)"),
        header_of("(-1,)"),
        header_of("(3)"),
        header_of("(03,)"),
        header_of("(3L,)"),
        header_of("()"),
        header_of("(1,)", "|O"),
        header_of("(1,)", "<U99999999"),
        header_of("(1,)", "<c16"),
        header_of("(1,)", ">f8"),
        header_of("(1,)", "<f1"),
        header_of("(" + "1, " * 20000 + ")"),
        header_of("(1,)").replace(b"False", b"True"),
        header_of("(1,)").replace(b"\x01\x00", b"\x02\x00", 1),
        header_of("(" * 3000 + ")" * 3000),
        header_of("__import__('os').getpid()"),
        b"\x93NUMPY",
        b"",
    ],
    ids=lambda header: header[10:80],
)
@pytest.mark.parametrize("numbers", [b"", bytes(8), bytes(800)], ids=len)
def test_header_of_an_array_is_not_trusted(header, numbers):
    members = members_of(PER_CLASS) | {"trees/weight.npy": header + numbers}
    with pytest.raises(ModelFileError, match=r"trees/weight\.npy"):
        loaded(with_valid_digests(members))


BOMBS = """
import resource, sys, warnings
sys.path.insert(0, "tests/model/file")
from test_model_file_damage import *
bombs = [
    with_declared_sizes(PER_CLASS, 2**32 - 2),
    with_valid_digests(members_of(PER_CLASS) | {"trees/weight.npy": header_of("(1000000000000,)")}),
    with_array(PER_CLASS, "trees/tree_start", lambda a: a.astype(np.int64) * 2**50),
    with_array(PER_CLASS, "trees/tree_start", lambda a: np.array([0, 2**62, len(a)])),
    with_valid_digests(members_of(PER_CLASS), lambda d: d["history"].update(n_steps=10**15)),
    with_valid_digests(members_of(PER_CLASS), lambda d: d["features"]["levels"][0].update(n_codes=10**15)),
    with_valid_digests(members_of(PER_CLASS), lambda d: d.update(
        classes={"array": {"dtype": "<U400000000", "shape": [3], "values": ["a", "b", "c"]}})),
    with_valid_digests(members_of(PER_CLASS), lambda d: d.update(checkpoint=[[]] * 1000)),
    with_document_text(members_of(PER_CLASS), members_of(PER_CLASS)["model.json"][:80] + b'"a": ' + b"[" * 10**6),
]
n_pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (n_pages * resource.getpagesize() + 2**28,) * 2)
for bomb in bombs:
    try:
        loaded(bomb)
        print("loaded")
    except ModelFileError:
        print("refused")
"""


def test_zip_bomb_is_refused_in_bounded_memory():
    assert run_python(BOMBS).split() == ["refused"] * 9


# ----------------------------------------------------------------- invalid trees with valid digests


def put(place, value):
    def change(array):
        wider = {"i": np.int32, "u": np.uint8, "f": array.dtype}[array.dtype.kind]
        changed = array.astype(float if isinstance(value, float) and wider != "f4" else wider)
        changed[place] = value
        return changed

    return change


@pytest.mark.parametrize(
    ("content", "name", "change", "message"),
    [
        (PER_CLASS, "trees/feature", put(0, 99), "feature has values out of range"),
        (PER_CLASS, "trees/feature", put(0, -2), "feature has values out of range"),
        (PER_CLASS, "trees/left", put(0, 0), "child out of range"),
        (PER_CLASS, "trees/left", put(0, -7), "child out of range"),
        (PER_CLASS, "trees/left", put(0, 2**31 - 1), "child out of range"),
        (PER_CLASS, "trees/left", put(0, 3), "two parents|without a parent|child out of range"),
        (PER_CLASS, "trees/threshold", put(1, np.nan), "threshold is NaN"),
        (PER_CLASS, "trees/missing_left", put(0, 7), "missing_left has values out of range"),
        (PER_CLASS, "trees/value", put(0, np.inf), "values must be finite"),
        (PER_CLASS, "trees/gain", put(0, np.nan), "gain has values that are not finite"),
        (PER_CLASS, "trees/weight", put(0, np.inf), "weight has values that are not finite"),
        (PER_CLASS, "trees/init", put(0, np.nan), "init has values that are not finite"),
        (PER_CLASS, "trees/tree_class", put(0, 3), "class out of range"),
        (PER_CLASS, "trees/tree_class", put(0, -1), "trees/value.npy"),
        (PER_CLASS, "trees/tree_class", put(0, -2), "class out of range"),
        (PER_CLASS, "trees/tree_base", put(0, 9), "class out of range"),
        (PER_CLASS, "trees/tree_base", lambda a: a * 0 + 5, "class out of range"),
        (PER_CLASS, "trees/tree_base_scale", put(0, 1.5), "tree_base_scale has values out of"),
        (PER_CLASS, "trees/tree_base_scale", put(0, np.nan), "tree_base_scale has values out of"),
        (
            PER_CLASS,
            "trees/tree_start",
            put(0, 1),
            "tree_start does not rise|tree_start must ascend",
        ),
        (
            PER_CLASS,
            "trees/tree_start",
            put(1, 0),
            "tree_start does not rise|tree_start must ascend",
        ),
        (PER_CLASS, "trees/step_start", put(-1, 2), "iteration_start does not rise"),
        (PER_CLASS, "trees/step_start", put(1, 99), "iteration_start does not rise"),
        (PER_CLASS, "trees/step_start", lambda a: a[:0], "iteration_start does not rise|shape"),
        (PER_CLASS, "trees/left_set", lambda a: a[:-1], "trees/left_set.npy: shape"),
        (SHARED, "trees/leaf_value", put((0, 0), np.inf), "leaf values must be finite"),
        (SHARED, "trees/leaf_value", lambda a: a[:-1], "trees/leaf_value.npy: shape"),
        (SHARED, "trees/gain_feature", put(0, 4), "gain_feature has values out of range"),
        (SHARED, "trees/gain_feature", put(0, -1), "gain_feature has values out of range"),
        (SHARED, "trees/class_gain", put((0, 0), np.nan), "class_gain has values that are not"),
        (SHARED, "trees/gain_start", put(1, 99), "gain_start does not rise"),
        (SHARED, "history/base_class", put(0, 3), "base_classes has values out of range"),
        (SHARED, "history/validation_loss", lambda a: a[:1], "validation_loss has shape"),
        (SHARED, "history/search_losses", lambda a: np.zeros((len(a), 2)), "search_losses has"),
        (
            SHARED,
            "refit_history/train_loss",
            lambda a: a[1:],
            "refit_history/train_loss.npy: shape",
        ),
        (SHARED, "features/is_categorical", lambda a: a[:-1], "feature names|categories of"),
        (
            SHARED,
            "features/is_categorical",
            lambda a: a * 0,
            r"categories of features \[3\]; expected those of \[\]",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_invalid_tree_array_is_named(content, name, change, message):
    with pytest.raises(ModelFileError, match=message):
        loaded(with_array(content, name, change))


def levels(**entries):
    return lambda document: document["features"]["levels"][0].update(entries)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("classes"), "no entry 'classes'"),
        (lambda d: d.update(classes=["a", "b", "c"]), "'classes' is list"),
        (lambda d: d["classes"]["array"]["values"].reverse(), "expected them sorted"),
        (lambda d: d["classes"]["array"]["values"].sort(key=len), "."),
        (lambda d: d["classes"]["array"].update(values=["a"] * 3), "expected each label once"),
        (lambda d: d["classes"]["array"].update(values=["a"], shape=[1]), "."),
        (lambda d: d["classes"]["array"].update(values=["a"], shape=[]), "no array of labels"),
        (lambda d: d.update(classes={"tuple": ["a", "b", "c"]}), "no array of labels"),
        (lambda d: d.update(recenter=0), "'recenter' is int; expected bool"),
        (lambda d: d.update(format="1"), "format='1'"),
        (lambda d: d.update(format=0), "format=0"),
        (lambda d: d.update(history=None), "no history"),
        (lambda d: d["history"].update(best_step=9), "best_iteration=9; expected 0 to 2"),
        (lambda d: d["history"].update(seed="x"), "'seed' is str"),
        (lambda d: d["history"].update(resolved_params={"a": {"code": 1}}), "unknown type 'code'"),
        (lambda d: d["features"].update(names=["a"]), "1 feature names; expected 4"),
        (lambda d: d["features"].update(names=[1, 2, 3, 4]), "expected 4 strings"),
        (lambda d: d["features"].update(handle_unknown="run"), "handle_unknown='run'"),
        (
            lambda d: d["features"].update(levels=[]),
            r"categories of features \[\]; expected those of \[3\]",
        ),
        (levels(levels=["b", "a", "c"]), "could not have been learned"),
        (levels(levels=["a", "a", "c"]), "same category twice"),
        (levels(levels=["a", 1.0, "c"]), "could not have been learned|neither"),
        (levels(levels=[True, False, None]), "neither strings nor numbers"),
        (levels(feature=2), r"categories of features \[2\]; expected those of \[3\]"),
        (levels(n_codes=4), "neither strings nor numbers"),
        (levels(n_codes=-1), "neither strings nor numbers"),
        (levels(levels=[f"{i:03}" for i in range(100)], n_codes=100), "left_set"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_invalid_document_is_an_error(change, message):
    with pytest.raises(ModelFileError, match=message):
        loaded(with_valid_digests(members_of(PER_CLASS), change))


@pytest.mark.parametrize("text", [b"{}", b"[]", b'{"a": NaN}', b"{" * 10**5, b"\xff\xfe", b'"a"'])
def test_malformed_document_is_an_error(text):
    members = members_of(PER_CLASS)
    with pytest.raises(ModelFileError, match=r"model\.json"):
        loaded(archive_of(members | {"model.json": text}))
    start = members["model.json"][: len(b'{\n "digest": "') + 64]
    with pytest.raises(ModelFileError, match=r"model\.json"):
        loaded(with_document_text(members, start + text))


def test_recomputed_digests_of_an_intact_file_are_the_same():
    for content in CONTENTS.values():
        assert with_valid_digests(members_of(content)) == content
        assert text_of({}) != text_of({"a": 1})
        assert document_in(members_of(content))["format"] == 2
