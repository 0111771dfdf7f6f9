"""Open choices, each with an optional decision."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, FloatAttr, IntegerAttr, i64
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    var_operand_def,
    var_result_def,
)
from xdsl.utils.exceptions import VerifyException

from compiler.dialects.sched.base import BlockType, LoopType, ParamType, SchedOp, check_positive


@irdl_op_definition
class SamplePerfectTileOp(SchedOp):
    """Choose factors whose product is a loop's extent, the innermost at most `innermost`.

    Return modes: gives one parameter a factor; open without a decision.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      %m, %l, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
      %t:2 = sched.sample_perfect_tile %m innermost 64 decision [4, 16] : !sched.param, !sched.param
      %m0, %m1 = sched.split %m by [%t#0, %t#1] : !sched.loop, !sched.loop
      transform.yield
    }
    ```
    """

    name = "sched.sample_perfect_tile"

    loop = operand_def(LoopType())
    innermost = prop_def(IntegerAttr.constr(i64))
    decision = opt_prop_def(DenseArrayBase.constr(i64))
    params = var_result_def(ParamType())

    assembly_format = "$loop `innermost` $innermost (`decision` $decision^)? attr-dict `:` type($params)"

    def verify_(self) -> None:
        if self.decision is None:
            return
        factors = list(self.decision.get_values())
        if len(factors) != len(self.params) or any(factor < 1 for factor in factors):
            raise VerifyException(f"the decision {factors} is not one positive factor a parameter")
        if factors[-1] > self.innermost.value.data:
            raise VerifyException(f"the innermost factor {factors[-1]} is above {self.innermost.value.data}")


@irdl_op_definition
class SampleCategoricalOp(SchedOp):
    """Choose one of several integers, without probabilities all as likely; the decision is the position of the one
    chosen.

    Return modes: gives a parameter; open without a decision.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %u = sched.sample_categorical [1, 4, 16] probabilities [0.5, 0.25, 0.25] decision 1
      %v = sched.sample_categorical [1, 4, 16]
      transform.yield
    }
    ```
    """

    name = "sched.sample_categorical"

    candidates = prop_def(DenseArrayBase.constr(i64))
    probabilities = opt_prop_def(ArrayAttr[FloatAttr])
    decision = opt_prop_def(IntegerAttr.constr(i64))
    value = result_def(ParamType())

    assembly_format = "$candidates (`probabilities` $probabilities^)? (`decision` $decision^)? attr-dict"

    def verify_(self) -> None:
        count = len(self.candidates.get_values())
        chances = [1 / max(1, count)] * count
        if self.probabilities is not None:
            chances = [p.value.data for p in self.probabilities]
        if not count:
            raise VerifyException("there is nothing to choose from")
        if len(chances) != count:
            raise VerifyException(f"{count} candidates need as many probabilities, not {len(chances)}")
        if any(chance < 0 for chance in chances) or abs(sum(chances) - 1) > 1e-6:
            raise VerifyException(f"the probabilities {chances} are negative or do not sum to 1")
        if self.decision is not None and not 0 <= self.decision.value.data < count:
            raise VerifyException(f"the decision {self.decision.value.data} is not one of {count} positions")


@irdl_op_definition
class MultipleOp(SchedOp):
    """A multiple of a parameter, such as the columns of a tile of so many vectors.

    Return modes: gives a parameter.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %v = sched.sample_categorical [1, 2, 4] probabilities [0.5, 0.25, 0.25] decision 1
      %columns = sched.multiple %v by 16
      transform.yield
    }
    ```
    """

    name = "sched.multiple"

    param = operand_def(ParamType())
    factor = prop_def(IntegerAttr.constr(i64))
    value = result_def(ParamType())

    assembly_format = "$param `by` $factor attr-dict"

    def verify_(self) -> None:
        check_positive("factor", self.factor.value.data)


@irdl_op_definition
class ProductOp(SchedOp):
    """The product of parameters, such as the threads of a block of so many rows and columns.

    Return modes: gives a parameter.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %rows = sched.sample_categorical [1, 2, 4] decision 1
      %columns = sched.sample_categorical [8, 16, 32] decision 2
      %threads = sched.product %rows, %columns
      transform.yield
    }
    ```
    """

    name = "sched.product"

    params = var_operand_def(ParamType())
    value = result_def(ParamType())

    assembly_format = "$params attr-dict"

    def verify_(self) -> None:
        if not self.params:
            raise VerifyException("there is nothing to multiply")


@irdl_op_definition
class SampleLocationOp(SchedOp):
    """Choose the loop at which a block is computed; -1 leaves it where it is, -2 inlines it.

    Return modes: gives a loop; open without a decision.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      %at = sched.sample_location %c decision 1
      transform.yield
    }
    ```
    """

    name = "sched.sample_location"

    block = operand_def(BlockType())
    decision = opt_prop_def(IntegerAttr.constr(i64))
    loop = result_def(LoopType())

    assembly_format = "$block (`decision` $decision^)? attr-dict"

    def verify_(self) -> None:
        if self.decision is not None and self.decision.value.data < -2:
            raise VerifyException(f"the decision {self.decision.value.data} is not a loop's position, -1 or -2")


@irdl_op_definition
class AutoOp(SchedOp):
    """Derive the choices for a block here, by the rules for the machine.

    Return modes: consumes nothing.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      sched.auto %c
      transform.yield
    }
    ```
    """

    name = "sched.auto"

    block = operand_def(BlockType())

    assembly_format = "$block attr-dict"


OPS = (
    SamplePerfectTileOp,
    SampleCategoricalOp,
    MultipleOp,
    ProductOp,
    SampleLocationOp,
    AutoOp,
)
