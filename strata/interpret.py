"""The interpreters: te functions and loops on numpy arrays, for comparison."""

from compiler.interpret.loop import run
from compiler.interpret.te import evaluate

__all__ = ["evaluate", "run"]
