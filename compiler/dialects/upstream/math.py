"""math: MLIR has the complementary error function; xDSL lacks it."""

from __future__ import annotations

from xdsl.dialects import math
from xdsl.ir import Dialect
from xdsl.irdl import irdl_op_definition, traits_def
from xdsl.traits import Pure, SameOperandsAndResultType

LIBRARY = "library"
"""The attribute of a math op that is lowered to a call of the C library, even where others become a polynomial."""


@irdl_op_definition
class ErfcOp(math.FloatingPointLikeUnaryMathOperation):
    """The complementary error function of a float, or of each lane of a vector: `%b = math.erfc %a : vector<8xf32>`."""

    name = "math.erfc"
    traits = traits_def(Pure(), SameOperandsAndResultType())


MATH = Dialect("math", [*math.Math.operations, ErfcOp], list(math.Math.attributes))
