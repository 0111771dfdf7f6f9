"""`strata-opt` as a function, and as `python -m strata.opt`."""

from compiler.opt import main

__all__ = ["main"]
