"""Fuzz the reader of model files, guided by coverage: CONTRIBUTING.md says how to run it.

    python tests/support/fuzz_model_file.py CORPUS -max_total_time=300

The first byte of an input is 255 for a whole file, else the number of a member that the rest replaces, with
all digests valid again. Any outcome except a ModelFileError or a usable model is a finding.
"""

import sys
import warnings
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["abcgbm", "zipfile"]):
    from abcgbm import ModelFileError
    from model_files import (
        FRAME,
        content_of,
        loaded,
        members_of,
        small_models,
        with_document_text,
        with_valid_digests,
    )

WHOLE_FILE = 255
CONTENTS = [content_of(model) for model in small_models().values()]
MEMBERS = [(content, name) for content in CONTENTS for name in members_of(content)]
warnings.simplefilter("ignore")


def file_of(data: bytes) -> bytes:
    """Return the file that an input encodes."""
    kind, rest = (data[0], data[1:]) if data else (WHOLE_FILE, b"")
    if kind == WHOLE_FILE:
        return rest
    content, name = MEMBERS[kind % len(MEMBERS)]
    members = members_of(content)
    return (
        with_document_text(members, rest)
        if name == "model.json"
        else with_valid_digests(members | {name: rest})
    )


def test_one_input(data: bytes) -> None:
    try:
        model = loaded(file_of(data))
    except ModelFileError:
        return
    again = content_of(model)
    assert content_of(loaded(again)) == again
    try:
        model.predict_proba(FRAME)
        model.predict_proba(FRAME[:1])
    except (ValueError, TypeError):  # the model has other columns or categories
        return


def write_seeds(folder: Path) -> None:
    """Write valid files and members as the initial corpus."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, content in enumerate(CONTENTS):
        (folder / f"file_{number}").write_bytes(bytes([WHOLE_FILE]) + content)
    for number, (content, name) in enumerate(MEMBERS):
        (folder / f"member_{number}").write_bytes(bytes([number]) + members_of(content)[name])


if __name__ == "__main__":
    write_seeds(Path(sys.argv[1]))
    atheris.Setup(sys.argv, test_one_input)
    atheris.Fuzz()
