"""`strata-opt` as a function."""

from compiler.opt import main

__all__ = ["main"]
