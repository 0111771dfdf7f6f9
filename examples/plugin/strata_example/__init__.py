"""A plugin of Strata with a part of most kinds.

dialect.py    the dialect `example`, whose op doubles a number
lowering.py   the pass lower-example: from that op to arith
halve.py      the schedule primitive halve
operators.py  the operator squared_relu
rules.py      a grouping rule, and a rule of the search space
"""

from __future__ import annotations

from strata.plugins import Registry


def register(registry: Registry) -> None:
    """Add all parts."""
    from strata_example import dialect, halve, lowering, operators, rules

    registry.dialect(dialect.EXAMPLE)
    registry.pass_(lowering.LowerExamplePass)
    registry.primitive(halve.halve)
    registry.operator(operators.squared_relu)
    registry.grouping_rule(rules.squares_alone)
    registry.search_rule(rules.halves_on_threads)
