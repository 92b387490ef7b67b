"""``python -m quickpickle``: the same as the command ``quickpickle``."""

import sys

from quickpickle.cli import main

if __name__ == "__main__":
    sys.exit(main())
