"""Every operator of te.nn: how to build it on random parameters, and what numpy and torch say that it computes.

cases.py       fixed cases on at least five shapes each, as (name -> function)
catalogue.py   `Operator`, what the families share
all others     the families, as in te.nn
"""

from tests.operators import (
    attention,
    contraction,
    convolution,
    elementwise,
    gather,
    losses,
    normalisation,
    pooling,
    ranking,
    rearrange,
    reduction,
    resize,
    resizing,
    sampling,
    shape,
)
from tests.operators.cases import CASES, inputs
from tests.operators.catalogue import Operator

FAMILIES = (
    contraction,
    convolution,
    pooling,
    elementwise,
    reduction,
    normalisation,
    attention,
    shape,
    rearrange,
    ranking,
    resize,
    resizing,
    sampling,
    gather,
    losses,
)
OPERATORS: dict[str, Operator] = {operator.name: operator for family in FAMILIES for operator in family.FAMILY}

__all__ = ["CASES", "OPERATORS", "Operator", "inputs"]
