"""Handle types, the base of all sched ops, and the ops that find blocks and loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.transform import AnyOpType
from xdsl.ir import Operation, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    var_result_def,
)
from xdsl.utils.exceptions import VerifyException


@irdl_attr_definition
class BlockType(ParametrizedAttribute, TypeAttribute):
    """A handle on a block."""

    name = "sched.block"


@irdl_attr_definition
class LoopType(ParametrizedAttribute, TypeAttribute):
    """A handle on a loop."""

    name = "sched.loop"


@irdl_attr_definition
class ParamType(ParametrizedAttribute, TypeAttribute):
    """An integer that a choice decides."""

    name = "sched.param"


class SchedOp(IRDLOperation):
    """An op of a script. `CONSUMES` names the operands whose handles are invalid after it."""

    CONSUMES: ClassVar[tuple[str, ...]] = ()

    def consumed(self) -> list[SSAValue]:
        """The handles that this op makes invalid."""
        found: list[SSAValue] = []
        for name in self.CONSUMES:
            value = getattr(self, name)
            found += [value] if isinstance(value, SSAValue) else list(value)
        return found

    def verify_(self) -> None:
        op: Operation | None = self.prev_op
        while op is not None:
            if isinstance(op, SchedOp) and any(value in op.consumed() for value in self.operands):
                raise VerifyException(f"'{self.name}' uses a handle that '{op.name}' has consumed")
            op = op.prev_op


def check_choice(what: str, value: StringAttr | None, choices: Sequence[str]) -> None:
    """The attribute is absent or one of the choices."""
    if value is not None and value.data not in choices:
        raise VerifyException(f"unknown {what} '{value.data}' (there are {', '.join(choices)})")


def check_distinct(handles: Sequence[SSAValue], least: int) -> None:
    """At least so many handles, none twice."""
    if len(handles) < least:
        raise VerifyException(f"at least {least} loops are needed, got {len(handles)}")
    if len(set(handles)) != len(handles):
        raise VerifyException("a loop is named twice")


@irdl_op_definition
class GetBlockOp(SchedOp):
    """The block of that name.

    Return modes: refused where the function has none.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      transform.yield
    }
    ```
    """

    name = "sched.get_block"

    function = operand_def(AnyOpType())
    label = prop_def(StringAttr)
    block = result_def(BlockType())

    assembly_format = "$function $label attr-dict"


@irdl_op_definition
class GetLoopsOp(SchedOp):
    """The loops around a block, outermost first.

    Return modes: refused where their number differs from the results'.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      %m, %l, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
      transform.yield
    }
    ```
    """

    name = "sched.get_loops"

    block = operand_def(BlockType())
    loops = var_result_def(LoopType())

    assembly_format = "$block attr-dict `:` type($loops)"


@irdl_op_definition
class GetProducersOp(SchedOp):
    """The blocks whose results a block reads.

    Return modes: refused where their number differs from the results'.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      %p = sched.get_producers %c : !sched.block
      transform.yield
    }
    ```
    """

    name = "sched.get_producers"

    block = operand_def(BlockType())
    producers = var_result_def(BlockType())

    assembly_format = "$block attr-dict `:` type($producers)"


@irdl_op_definition
class GetConsumersOp(SchedOp):
    """The blocks that read a block's result.

    Return modes: refused where their number differs from the results'.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      %d = sched.get_consumers %c : !sched.block
      transform.yield
    }
    ```
    """

    name = "sched.get_consumers"

    block = operand_def(BlockType())
    consumers = var_result_def(BlockType())

    assembly_format = "$block attr-dict `:` type($consumers)"
