"""Report old terms in sources, tests and pages: ``python tests/support/check_words.py [FILE ...]``."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
LIST = Path(__file__).with_name("words.toml")
EXEMPT_LINE = re.compile(r"(#|//|<!--) word: \S")


class Finding(NamedTuple):
    """An old term on a line, and what to write instead."""

    path: Path
    line: int
    term: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.term!r}; write: {self.instead}"


def pattern_of(words: Mapping[str, Any]) -> re.Pattern[str]:
    """Return one pattern for all terms: identifiers as they are, phrases in any case."""
    identifiers = "|".join(map(re.escape, words["identifiers"]))
    phrases = "|".join(re.escape(phrase).replace(r"\ ", r"\s+") for phrase in words["phrases"])
    return re.compile(rf"\b(?:(?P<identifier>{identifiers})|(?P<phrase>(?i:{phrases})))\b")


def findings_in(path: Path, text: str, words: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield the old terms in a text, except on exempt lines."""
    pattern = pattern_of(words)
    for number, line in enumerate(text.splitlines(), 1):
        is_quotation = path.suffix == ".md" and line.startswith("> ")
        if is_quotation or EXEMPT_LINE.search(line):
            continue
        for found in pattern.finditer(line):
            instead = (
                words["identifiers"].get(found[0])
                or words["phrases"][" ".join(found[0].lower().split())]
            )
            yield Finding(path, number, found[0], instead)


def files_to_check(root: Path, words: Mapping[str, Any]) -> Iterator[Path]:
    """Yield the files that are checked, by their paths below the root."""
    for name in words["paths"]["checked"]:
        top = root / name
        found = [top] if top.is_file() else sorted(top.rglob("*"))
        for path in found:
            inside = path.relative_to(root)
            is_checked = path.suffix in words["paths"]["suffixes"] and path.is_file()
            if is_checked and inside.as_posix() not in words["exempt"]:
                yield inside


def main(names: list[str]) -> int:
    """Print what is found in the files named, or in all; return 1 if that is anything."""
    words = tomllib.loads(LIST.read_text("utf-8"))
    all_files = list(files_to_check(ROOT, words))
    wanted = {Path(name).resolve().relative_to(ROOT) for name in names}
    files = [path for path in all_files if path in wanted] if names else all_files
    findings = [
        found for path in files for found in findings_in(path, (ROOT / path).read_text(), words)
    ]
    sys.stdout.writelines(f"{found}\n" for found in findings)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
