"""`python -m strata`: the command line."""

import sys

from compiler.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
