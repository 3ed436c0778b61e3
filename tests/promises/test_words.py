"""The check of words: its findings and its exceptions."""

import tomllib
from pathlib import Path

import pytest

import check_words

WORDS = tomllib.loads(check_words.LIST.read_text("utf-8"))


def terms_in(text: str, name: str = "page.md") -> list[str]:
    return [found.term for found in check_words.findings_in(Path(name), text, WORDS)]


@pytest.mark.parametrize(
    "line",
    [
        "the client is told of it",  # word: example
        "Whoever calls it",  # word: example
        "fits that are broken  off",  # word: example
        "class Afar:",  # word: example
    ],
)
def test_old_terms_are_found(line):
    (term,) = terms_in(line)
    assert term in line


@pytest.mark.parametrize(
    "line",
    [
        "an outcome, a course and the news",  # identifiers are case-sensitive
        "untold, roommates, retell",  # whole words only
        "> whoever is quoted",  # word: example
        "x = 1  # word: whoever gives a reason",
        "// word: told is the protocol's name",
    ],
)
def test_other_lines_pass(line):
    assert terms_in(line) == []


def test_findings_name_the_line_and_a_replacement():
    (found,) = check_words.findings_in(Path("a.py"), "first\n# all anew\n", WORDS)  # word: example
    assert str(found) == "a.py:2: 'anew'; write: again"  # word: example


def test_command_reports_by_its_exit_code(capsys, monkeypatch, tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("# told\n")  # word: example
    (tmp_path / "src" / "b.py").write_text("# given\n")
    (tmp_path / "src" / "c.png").write_bytes(b"\xff")
    for name in WORDS["paths"]["checked"]:
        (tmp_path / name).touch()
    monkeypatch.setattr(check_words, "ROOT", tmp_path)
    assert check_words.main([str(tmp_path / "src" / "b.py")]) == 0
    assert check_words.main([]) == 1
    shown = "src/a.py:1: 'told'; write: given; told= is on_start=\n"  # word: example
    assert capsys.readouterr().out == shown
