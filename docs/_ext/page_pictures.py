"""Draw the pictures of a page: run those of its Python blocks that save one, in the folder of the pictures.

From the root of the repository: `python docs/_ext/page_pictures.py explanation plotting`.
"""

import os
import re
import sys
from pathlib import Path

DOCS = Path(__file__).parents[1]


def draw(page: str, folder: str) -> None:
    """Run the blocks of `docs/<page>.md` that call `savefig`, in `docs/<folder>`."""
    blocks = re.findall(
        r"^```python\n(.*?)^```", (DOCS / f"{page}.md").read_text(), re.MULTILINE | re.DOTALL
    )
    pictures = DOCS / folder
    pictures.mkdir(exist_ok=True)
    os.chdir(pictures)
    for block in blocks:
        if "savefig" in block:
            exec(compile(block, page, "exec"), {"__name__": page})  # noqa: S102


if __name__ == "__main__":
    draw(*sys.argv[1:])
