"""The state of a conversion: the te value of each tensor, the literal of each known scalar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr, TensorType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from compiler.dialects import te
from compiler.dialects.checks import element_type
from compiler.dialects.dense import from_upstream
from compiler.program.names import Names, spelled
from compiler.support.errors import LoweringError
from compiler.types.dtypes import row_of

PASS = "convert-linalg-to-te"
Literal = FloatAttr | IntegerAttr


def refusal(op: Operation, reason: str) -> LoweringError:
    """Return the error, placed at an op, that the op has no te form, for a reason; the caller raises it."""
    return LoweringError(f"{PASS}: '{op.name}' {reason}").at(op)


@dataclass
class TeValues:
    """A te function under construction, with its values.

    block: the function's body. labels: the labels and names that are in use. tensors: for each tensor or computed
    scalar, its te value; a scalar's has rank 0. literals: the number of each known scalar. splats: for a te value whose
    elements are equal, their number. empty: for each tensor of undefined elements, such as a tensor.empty, its shape.
    """

    block: Block
    labels: Names
    tensors: dict[SSAValue, SSAValue] = field(default_factory=dict)
    literals: dict[SSAValue, Literal] = field(default_factory=dict)
    splats: dict[SSAValue, Literal] = field(default_factory=dict)
    empty: dict[SSAValue, tuple[int, ...]] = field(default_factory=dict)

    def tensor(self, value: SSAValue, user: Operation) -> SSAValue:
        """Return the te value of a tensor that `user` reads; of rank 0 for a scalar, a new te.constant for a known
        number. Raises LoweringError for undefined elements, and a value that is no tensor or number."""
        if value in self.empty:
            raise refusal(user, "reads the elements of a tensor.empty, which are undefined")
        if value in self.literals and row_of(value.type) is not None:
            return self.splat(self.literals[value], (), user)
        if value not in self.tensors:
            raise refusal(user, f"uses a value of type {value.type} that is no tensor and no known number")
        return self.tensors[value]

    def shape(self, value: SSAValue, op: Operation) -> tuple[int, ...]:
        """Return the shape of a tensor, from its te value if its type is dynamic; () for a scalar. Raises LoweringError
        at `op` for an unknown shape."""
        if value in self.empty:
            return self.empty[value]
        return static_shape(self.tensors.get(value, value), op)

    def add(self, op: Operation, source: Operation) -> SSAValue:
        """Append a te op at the location of the op `source`; return its first result. The result of a compute or gather
        is named by its label, several results `label.0`, `label.1`."""
        op.location = source.location
        self.block.add_op(op)
        for number, result in enumerate(op.results if isinstance(op, te.ComputeOp | te.GatherOp) else ()):
            label = op.label.data  # type: ignore[attr-defined]
            result.name_hint = label if len(op.results) == 1 else f"{label}.{number}"
        return op.results[0]

    def splat(self, value: Literal, shape: Sequence[int], source: Operation) -> SSAValue:
        """Append a te.constant of a shape filled with `value`; return its result, which is recorded as a splat."""
        type: TensorType[Any] = TensorType(value.type, shape)
        elements = DenseIntOrFPElementsAttr.from_list(type, [value.value.data])
        tensor = self.add(te.ConstantOp(from_upstream(elements)), source)
        self.splats[tensor] = value
        return tensor

    def label(self, op: Operation, suffix: str = "") -> str:
        """Return a unique label for a te op made from `op`: the name of its first result, else the op's name without
        its dialect, and `suffix`."""
        hint = op.results[0].name_hint if op.results else None
        return self.labels.fresh(spelled(hint or op.name.partition(".")[2]) + suffix)


def static_shape(value: SSAValue, op: Operation) -> tuple[int, ...]:
    """Return the shape of a tensor; () for other types. Raises LoweringError at `op` for a dynamic or empty dimension,
    or elements that te lacks."""
    if not isinstance(value.type, TensorType):
        return ()
    try:
        element_type(value)
    except VerifyException as error:
        raise refusal(op, f"has a value that te lacks: {error}") from error
    return tuple(value.type.get_shape())


def check_types(op: Operation, values: Sequence[SSAValue]) -> None:
    """Raise LoweringError at `op` if a value is a memref or contains one."""
    for value in values:
        if "memref" in str(value.type):
            raise refusal(op, f"is on buffers ({value.type}): convert programs on tensors, before bufferisation")
