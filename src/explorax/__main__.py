"""`python -m explorax` is the command `explorax`."""

import sys

from explorax.cli import main

if __name__ == "__main__":
    sys.exit(main())
