"""The dialects of te, of loops and of scripts, and the functions of a module."""

from compiler.dialects import loop, sched, te
from compiler.dialects.access import AxisAttr
from compiler.dialects.functions import find_function, functions

__all__ = ["AxisAttr", "find_function", "functions", "loop", "sched", "te"]
