"""Run the command `abcgbm` as `python -m abcgbm`."""

import sys

from abcgbm.cli import main

if __name__ == "__main__":
    sys.exit(main())
