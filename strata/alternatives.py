"""Laws that are choices: forms of a program that round otherwise, or that do not always pay."""

from compiler.alternatives import (
    GROUP_LAWS,
    LAWS,
    PROGRAM_LAWS,
    Conditions,
    Form,
    Law,
    Rounding,
    Scope,
    offers,
    permitted,
)
from compiler.alternatives.cost import cycles
from compiler.alternatives.law import of_sums
from compiler.alternatives.program import Rewritten, rewritten

__all__ = [
    "GROUP_LAWS",
    "LAWS",
    "PROGRAM_LAWS",
    "Conditions",
    "Form",
    "Law",
    "Rewritten",
    "Rounding",
    "Scope",
    "cycles",
    "of_sums",
    "offers",
    "permitted",
    "rewritten",
]
