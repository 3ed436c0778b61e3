"""Draw the pictures of a page anew: run its blocks of Python in the folder that is called like it.

From the root of the repository: `python docs/_ext/page_pictures.py plotting`.
"""

import os
import re
import sys
from pathlib import Path

DOCS = Path(__file__).parents[1]


def draw(name: str) -> None:
    """Run the blocks of `docs/<name>.md`, which save their pictures where they run."""
    blocks = re.findall(
        r"^```python\n(.*?)^```", (DOCS / f"{name}.md").read_text(), re.MULTILINE | re.DOTALL
    )
    folder = DOCS / name
    folder.mkdir(exist_ok=True)
    os.chdir(folder)
    for block in blocks:
        exec(compile(block, name, "exec"), {"__name__": name})  # noqa: S102


if __name__ == "__main__":
    draw(sys.argv[1])
