"""The primitive multiple."""

from __future__ import annotations

from compiler.program.tree import Program
from compiler.schedule.parameters import INT, PARAM
from compiler.schedule.plan import Plan
from compiler.schedule.primitive import primitive


@primitive(
    "$param `by` $factor",
    "%v = sched.sample_categorical [1, 2, 4] probabilities [0.5, 0.25, 0.25] decision 1\n"
    "%columns = sched.multiple %v by 16",
    gives={"value": "param"},
    param=PARAM,
    factor=INT.such_that(lambda n: n > 0, "the factor {} is not positive"),
)
def multiple(program: Program, param: int, factor: int) -> Plan:
    """Multiply a parameter by a constant, such as a number of vectors by the lanes of a vector.

        %v = sample_categorical [1, 2, 4] decision 1
        %n = multiple %v by 16                      // 32

    Requires a positive factor. Elsewhere: MLIR's affine maps of transform parameters, TVM's PrimExpr of sampled values.
    """
    return Plan(program, params=(param * factor,))
