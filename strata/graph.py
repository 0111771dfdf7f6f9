"""The graph of a te function, its canonical form, and the rules that cut it into groups."""

from compiler.graph.canonical import Canonical, canonical, canonicalize
from compiler.graph.grouping import RULES, Choice, Kind, View, decisions, group
from compiler.graph.read import read
from compiler.graph.spelling import renamed, spelled
from compiler.graph.tree import Compute, Constant, Graph
from compiler.graph.whole import grouped

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
    "grouped",
    "read",
    "renamed",
    "spelled",
]
