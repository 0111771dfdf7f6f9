"""The sched dialect's handle types, and the base of its ops.

The ops themselves are made of the declarations in `compiler/schedule/primitives/`, one a primitive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.transform import NamedSequenceOp
from xdsl.ir import Operation, OpResult, ParametrizedAttribute, SSAValue, SSAValues, TypeAttribute
from xdsl.irdl import IRDLOperation, irdl_attr_definition, traits_def
from xdsl.traits import HasParent, OpTrait
from xdsl.utils.exceptions import VerifyException


@irdl_attr_definition
class BlockType(ParametrizedAttribute, TypeAttribute):
    """The type of a handle on a block."""

    name = "sched.block"


@irdl_attr_definition
class LoopType(ParametrizedAttribute, TypeAttribute):
    """The type of a handle on a loop."""

    name = "sched.loop"


@irdl_attr_definition
class ParamType(ParametrizedAttribute, TypeAttribute):
    """The type of an integer that a choice decides, such as a tile size."""

    name = "sched.param"


@dataclass(frozen=True)
class UsesLiveHandles(OpTrait):
    """Verifier: no op, of any dialect, uses a handle after the op that consumes it."""

    def verify(self, op: Operation) -> None:
        """Check the uses of the handles of one op. Raises VerifyException, which names the consuming op."""
        assert isinstance(op, SchedOp)
        for handle in op.operands:
            for use in handle.uses:
                user = use.operation
                # Operands before this one are verified, later ones may be malformed.
                if isinstance(user, SchedOp) and user.CONSUMES and user.is_before_in_block(op):
                    _check_live(handle, user, op)
        for handle in op.consumed():
            for use in handle.uses:
                if not isinstance(use.operation, SchedOp) and op.is_before_in_block(use.operation):
                    _check_live(handle, op, use.operation)


def _check_live(handle: SSAValue, consumer: SchedOp, user: Operation) -> None:
    if handle in consumer.consumed():
        name = f"handle '%{handle.name_hint}'" if handle.name_hint else "handle"
        raise VerifyException(f"'{user.name}' uses a {name} that '{consumer.name}' has consumed")


class HandleResult(OpResult):
    """A result of an op of a script, a handle; its repr shows its kind and its name in the script."""

    def __repr__(self) -> str:
        kind = str(self.type).rpartition(".")[2]
        return f"<{kind} %{self.name_hint or '_'}, of {self.op.name}>"


class SchedOp(IRDLOperation):
    """An op of a script. `CONSUMES` names the operands whose handles are invalid after it."""

    CONSUMES: ClassVar[tuple[str, ...]] = ()

    traits = traits_def(HasParent(NamedSequenceOp), UsesLiveHandles())

    def __post_init__(self) -> None:
        super().__post_init__()
        self.results = SSAValues(HandleResult(result.type, self, result.index) for result in self.results)

    @property
    def primitive(self) -> str:
        """The name of the primitive that the op applies."""
        return self.name.removeprefix("sched.")

    def consumed(self) -> list[SSAValue]:
        """The handles that are invalid after this op, in the order of CONSUMES."""
        handles: list[SSAValue] = []
        for name in self.CONSUMES:
            value = getattr(self, name)
            handles += [value] if isinstance(value, SSAValue) else list(value)
        return handles
