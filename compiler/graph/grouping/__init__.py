"""Grouping: cut a te function into groups, private functions that are scheduled, compiled and cached separately.

facts.py         kinds of computes: elementwise, contraction, rows, window
order.py         disjoint groups without cycles among them
view.py          a function while rules group its computes
choice.py        choices, decisions, rules
rules.py         the default rules
cut.py           split groups that are too large
outline.py       make each group a function
equal_groups.py  make equal groups one function
constants.py     move small constants into groups
check.py         verify modules that have groups
module.py        group a module: all of these in order
"""

from compiler.graph.grouping.check import check_groups, has_groups, is_group
from compiler.graph.grouping.choice import Choice, Decision, Rule, fixed_groups
from compiler.graph.grouping.facts import Kind
from compiler.graph.grouping.module import decisions, group, groups_of, outline_groups
from compiler.graph.grouping.rules import RULES, with_casts
from compiler.graph.grouping.view import View

__all__ = [
    "RULES",
    "Choice",
    "Decision",
    "Kind",
    "Rule",
    "View",
    "check_groups",
    "decisions",
    "fixed_groups",
    "group",
    "groups_of",
    "has_groups",
    "is_group",
    "outline_groups",
    "with_casts",
]
