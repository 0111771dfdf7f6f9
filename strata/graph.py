"""The graph of a te function, its canonical form, and the rules that cut it into groups."""

from compiler.graph.canonical import Canonical, canonical, canonicalize
from compiler.graph.grouped_module import grouped_module
from compiler.graph.grouping import RULES, Choice, Kind, View, decisions, group
from compiler.graph.read import read
from compiler.graph.tree import Compute, Constant, Graph
from compiler.graph.user_names import program_with_user_names, script_with_user_names

__all__ = [
    "RULES",
    "Canonical",
    "Choice",
    "Compute",
    "Constant",
    "Graph",
    "Kind",
    "View",
    "canonical",
    "canonicalize",
    "decisions",
    "group",
    "grouped_module",
    "program_with_user_names",
    "read",
    "script_with_user_names",
]
