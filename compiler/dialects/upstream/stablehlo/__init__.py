"""StableHLO and CHLO: the ops that JAX prints, in the pretty and the generic syntax.

table.py       the ops by name: their properties, and the words of the pretty syntax
operations.py  the classes of the ops, made of the table
syntax.py      the pretty syntax: operands, `word = value`, types
structured.py  ops with a syntax of their own: reduce, while, convolution, constant, composite
attributes.py  dimension numbers, words such as a direction of comparison
shardings.py   meshes and shardings, the dialect sdy, which are skipped

Ops print in the generic syntax, which is valid StableHLO too.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from compiler.dialects.upstream.stablehlo.attributes import ATTRIBUTES
from compiler.dialects.upstream.stablehlo.operations import CHLO_OPERATIONS, OPERATIONS

STABLEHLO = Dialect("stablehlo", OPERATIONS, ATTRIBUTES)
CHLO = Dialect("chlo", CHLO_OPERATIONS, [])
