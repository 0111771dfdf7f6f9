"""Laws that are choices: forms of a program that round otherwise, or that do not always pay."""

from compiler.alternatives import (
    GROUP_LAWS,
    LAWS,
    PROGRAM_LAWS,
    Conditions,
    Form,
    Law,
    LawScope,
    Rounding,
    StreamedForm,
    StreamedNames,
    offers,
    permitted,
    streamed_attention,
)
from compiler.alternatives.cost import cycles
from compiler.alternatives.law import rounding_of_sums
from compiler.alternatives.program import RewrittenGraph, rewrite_graph

__all__ = [
    "GROUP_LAWS",
    "LAWS",
    "PROGRAM_LAWS",
    "Conditions",
    "Form",
    "Law",
    "LawScope",
    "RewrittenGraph",
    "Rounding",
    "StreamedForm",
    "StreamedNames",
    "cycles",
    "offers",
    "permitted",
    "rewrite_graph",
    "rounding_of_sums",
    "streamed_attention",
]
