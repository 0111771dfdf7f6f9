"""What the ops of a script share: the types of handles, the base of all ops, and checks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, IntegerType, StringAttr
from xdsl.dialects.transform import NamedSequenceOp
from xdsl.ir import Operation, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import IRDLOperation, irdl_attr_definition, traits_def
from xdsl.traits import HasParent, OpTrait
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


@dataclass(frozen=True)
class UsesLiveHandles(OpTrait):
    """No handle is used after the op that consumes it, be it by an op of ours or of another dialect."""

    def verify(self, op: Operation) -> None:
        """Look at the uses of the handles of one op. Raises VerifyException, which names the consuming op."""
        assert isinstance(op, SchedOp)
        for handle in op.operands:
            for use in handle.uses:
                other = use.operation
                # What stands before has been verified; what stands after may be malformed.
                if isinstance(other, SchedOp) and other.CONSUMES and other.is_before_in_block(op):
                    _check_live(handle, other, op)
        for handle in op.consumed():
            for use in handle.uses:
                if not isinstance(use.operation, SchedOp) and op.is_before_in_block(use.operation):
                    _check_live(handle, op, use.operation)


def _check_live(handle: SSAValue, consumer: SchedOp, user: Operation) -> None:
    if handle in consumer.consumed():
        name = f"handle '%{handle.name_hint}'" if handle.name_hint else "handle"
        raise VerifyException(f"'{user.name}' uses a {name} that '{consumer.name}' has consumed")


class SchedOp(IRDLOperation):
    """An op of a script. `CONSUMES` names the operands whose handles are invalid after it."""

    CONSUMES: ClassVar[tuple[str, ...]] = ()

    traits = traits_def(HasParent(NamedSequenceOp), UsesLiveHandles())

    def consumed(self) -> list[SSAValue]:
        """The handles that this op makes invalid."""
        found: list[SSAValue] = []
        for name in self.CONSUMES:
            value = getattr(self, name)
            found += [value] if isinstance(value, SSAValue) else list(value)
        return found


def check_choice(what: str, value: StringAttr | None, choices: Collection[str]) -> None:
    """The attribute is absent or one of the choices."""
    if value is not None and value.data not in choices:
        raise VerifyException(f"unknown {what} '{value.data}' (there are {', '.join(choices)})")


def check_distinct(handles: Sequence[SSAValue]) -> None:
    """At least two handles, none twice."""
    if len(handles) < 2:
        raise VerifyException(f"at least 2 loops are needed, got {len(handles)}")
    if len(set(handles)) != len(handles):
        raise VerifyException("a loop is named twice")


def sizes_of(static: DenseArrayBase[IntegerType], params: Sequence[SSAValue]) -> list[int | SSAValue]:
    """The sizes that `[4, %t]` says: constants and parameters in their order. Raises VerifyException for a mismatch."""
    values, left = [int(value) for value in static.get_values()], list(params)
    if values.count(DYNAMIC_INDEX) != len(left):
        raise VerifyException(f"{values.count(DYNAMIC_INDEX)} sizes are parameters, and {len(left)} are given")
    return [left.pop(0) if value == DYNAMIC_INDEX else value for value in values]


def check_positive(what: str, value: int) -> None:
    """The value is at least 1."""
    if value < 1:
        raise VerifyException(f"the {what} {value} is not positive")
