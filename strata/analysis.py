"""Facts of a program: the proof of a schedule, operations, bytes, orders of loops, indices."""

from compiler.affine.linear import Linear, Quotient, bounds, constant, substitute, variable
from compiler.analysis.barriers import AHEAD, ASYNC, RESIDENT, barriers
from compiler.analysis.cost import footprint, total_flops
from compiler.analysis.order import contiguous_order, step
from compiler.analysis.rows import Rows, rows_of, streams
from compiler.analysis.verify.prove import Verdict, verify_schedule

__all__ = [
    "AHEAD",
    "ASYNC",
    "RESIDENT",
    "Linear",
    "Quotient",
    "Rows",
    "Verdict",
    "barriers",
    "bounds",
    "constant",
    "contiguous_order",
    "footprint",
    "rows_of",
    "step",
    "streams",
    "substitute",
    "total_flops",
    "variable",
    "verify_schedule",
]
