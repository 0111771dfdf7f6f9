"""The named combiners and their neutral values."""

import math

from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, IntegerType
from xdsl.ir import Attribute

from compiler.support.errors import LoweringError
from compiler.types.elements import is_unsigned

COMBINERS = ("add", "mul", "max", "min")


def identity(combiner: str, type: Attribute) -> FloatAttr | IntegerAttr:
    """The identity of a combiner, one of COMBINERS, at an element type, such as -inf for max of floats, or 0 for max of
    unsigned integers. An integer has the signless type of the same width. Raises LoweringError for other types. i1 is a
    signed bit: true is -1."""
    if isinstance(type, AnyFloat):
        values = {"add": 0.0, "mul": 1.0, "max": -math.inf, "min": math.inf}
        return FloatAttr(values[combiner], type)
    if isinstance(type, IntegerType):
        half = 1 << (type.width.data - 1)
        smallest, largest = (1, 0) if type.width.data == 1 else (-half, half - 1)  # as a signed bit, true is -1
        if is_unsigned(type):
            smallest, largest = 0, -1
        return IntegerAttr(
            {"add": 0, "mul": 1, "max": smallest, "min": largest}[combiner], IntegerType(type.width.data)
        )
    raise LoweringError(f"the combiner '{combiner}' has no identity at type {type}")
