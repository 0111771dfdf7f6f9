"""Grouping: which computes of a te function make one function, that is scheduled, compiled and cached for itself.

facts.py         what a compute is: elementwise, contraction, rows, window
order.py         groups without cycles among them
view.py          a function while rules group it
choice.py        choices, decisions, rules
rules.py         the default rules
cut.py           groups that are too large
outline.py       a function a group
equal_groups.py  equal groups as one function
constants.py     small constants in groups
check.py         modules that have groups
module.py        all this for a module
"""

from compiler.graph.grouping.check import check_groups, has_groups, is_group
from compiler.graph.grouping.choice import Choice, Decision, Rule, decided
from compiler.graph.grouping.facts import Kind
from compiler.graph.grouping.module import decisions, divided, group, grouped
from compiler.graph.grouping.rules import RULES
from compiler.graph.grouping.view import View

__all__ = [
    "RULES",
    "Choice",
    "Decision",
    "Kind",
    "Rule",
    "View",
    "check_groups",
    "decided",
    "decisions",
    "divided",
    "group",
    "grouped",
    "has_groups",
    "is_group",
]
