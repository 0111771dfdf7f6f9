"""`strata-opt` as a function, and as `python -m strata.opt`."""

import sys

from compiler.opt import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
