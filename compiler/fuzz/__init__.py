"""Fuzzing: random programs and scripts, against the parts of a plugin (`strata fuzz`) and in the compiler's own tests.

programs.py  random te programs
scripts.py   random steps over all primitives
results.py   results of a program at each level, and whether they are right
cases.py     cases: a program, and what a part of a plugin does with it
parts.py     `fuzz`: random cases against each part
"""

from compiler.fuzz.cases import Case
from compiler.fuzz.parts import Failure, fuzz

__all__ = ["Case", "Failure", "fuzz"]
