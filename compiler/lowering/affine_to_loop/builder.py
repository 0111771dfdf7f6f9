"""The blocks, buffers and names of a program under construction."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects.builtin import MemRefType, NoneAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.dialects.access import axis_attribute
from compiler.dialects.checks import element_type
from compiler.lowering.affine_to_loop.forms import ValueForms
from compiler.lowering.affine_to_loop.memory import name_of
from compiler.lowering.affine_to_loop.values import BlockBody
from compiler.program.body import Scalar
from compiler.program.names import Names, fresh, spelled
from compiler.program.tree import Access, Block, Buffer, Loop
from compiler.support.errors import LoweringError

_PRINTED = re.compile(r"(arg|v)?\d*")
"""The names that printers give to values without a name."""
_LETTERS = "ijklmnpq"


@dataclass(frozen=True)
class Surroundings:
    """The loops around an op, outermost first, and the conditions over them under which it runs."""

    loops: tuple[Loop, ...] = ()
    guard: tuple[Condition, ...] = ()


class Builder:
    """A factory of blocks and buffers. buffers: the name of each memref's buffer. stored: the element of each scalar
    value that is in memory. variables: the name of each loop's variable in messages, by the loop's number. elements:
    the element type of each buffer, by name."""

    def __init__(self) -> None:
        self.forms = ValueForms()
        self.buffers: dict[SSAValue, str] = {}
        self.stored: dict[SSAValue, Access] = {}
        self.variables: dict[int, str] = {}
        self.elements: dict[str, Attribute] = {}
        self._depths: dict[str, int] = {}
        self._names, self._labels = Names(), Names()

    def buffer(self, value: SSAValue, op: Operation, depth: int = 0, name: str = "") -> Buffer:
        """Return a new buffer for a memref, or of rank 0 for a scalar, that lives inside `depth` loops, and record its
        depth and element type. `op` is the location of errors; `name` is the preferred name, by default the value's,
        else `buffer`. Raises LoweringError for a memref with a dynamic shape, a layout, a memory space or an element
        type that the loop level lacks."""
        shape, element = _content(value, op)
        buffer = Buffer(self._names.fresh(spelled(name or value.name_hint or "buffer")), shape, element)
        self._depths[buffer.name], self.elements[buffer.name] = depth, element
        return buffer

    def named(self, value: SSAValue, op: Operation) -> str:
        """The name of the buffer of a memref that an op uses. Raises LoweringError for one without a buffer."""
        if value not in self.buffers:
            raise LoweringError(f"{name_of(value)} is no buffer of an argument, an allocation or a constant").at(op)
        return self.buffers[value]

    def loop(self, name: str, extent: int, around: Surroundings) -> Loop:
        """Return a new, empty loop of `extent` iterations, labelled by the name of its variable; a missing name, or one
        that a printer made up (`5`, `arg3`), becomes a letter by depth. The label differs from those of the loops
        around. Its range is recorded in `forms`, its variable's name in `variables`."""
        depth, number = len(around.loops), len(self.variables)
        self.variables[number] = f"%{name}"
        if _PRINTED.fullmatch(name):
            name = _LETTERS[depth] if depth < len(_LETTERS) else f"i{depth}"
        label = fresh(spelled(name), {loop.label for loop in around.loops})
        self.forms.ranges[number] = (0, extent - 1)
        return Loop(number, label, extent, ())

    def block(
        self,
        op: Operation,
        target: Access,
        value: Callable[[BlockBody], Scalar],
        around: Surroundings,
        combiner: str = "",
    ) -> Block:
        """Return a block, at the location of `op`, that writes a value to `target`, an element at forms over loops, or
        combines the value into it by `combiner` unless that is "". Its label is the buffer's name, with `_init` for a
        value without reads, and a number if it is taken. All loops around are axes; with a combiner those of `reduced`
        are reduce axes."""
        reduced = self.reduced(target, around) if combiner else ()
        loops = [loop for loop in around.loops if loop not in reduced] + list(reduced)
        values = BlockBody(op, self.forms, loops, self.named, self.stored)
        expression = value(values)
        stem = target.buffer if values.reads or combiner else f"{target.buffer}_init"
        axes = tuple(axis_attribute(loop.label, loop.extent, loop in reduced) for loop in loops)
        label = self._labels.fresh(stem)
        return Block(
            label,
            axes,
            bindings=tuple(lin.variable(loop.number) for loop in loops),
            guard=around.guard,
            reads=tuple(values.reads),
            read_types=tuple(values.types),
            writes=(Access(target.buffer, values.over_axes(target.index)),),
            body=(expression,),
            combiners=(combiner,) if combiner else (),
            accumulate=bool(combiner),
            origin=(label, lin.variables(len(axes))),
            location=op.location,
        )

    def reduced(self, target: Access, around: Surroundings) -> tuple[Loop, ...]:
        """Return the loops over which updates of an element are a reduction: those inside the allocation of its buffer
        (all, for an argument) that do not index the element, outermost first."""
        indexed = set[int]().union(*(form.variables() for form in target.index))
        return tuple(loop for loop in around.loops[self._depths[target.buffer] :] if loop.number not in indexed)


def _content(value: SSAValue, op: Operation) -> tuple[tuple[int, ...], Attribute]:
    """Return the shape and the element type of the buffer of a memref; () and the type for a scalar. Raises
    LoweringError for a layout, a memory space, and a dynamic shape or an element type that the loop level lacks."""
    type = value.type
    if not isinstance(type, MemRefType):
        return (), type
    try:
        element = element_type(value)
    except VerifyException as error:
        raise LoweringError(str(error)).at(op) from error
    if not isinstance(type.layout, NoneAttr) or not isinstance(type.memory_space, NoneAttr):
        raise LoweringError(f"{type} has a layout or a memory space; a buffer is row-major, in one memory").at(op)
    return type.get_shape(), element
