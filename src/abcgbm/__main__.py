"""`python -m abcgbm` is the command `abcgbm`."""

import sys

from abcgbm.cli import main

if __name__ == "__main__":
    sys.exit(main())
