"""The values of an index, and the memory of a loop, as text for hovers."""

from __future__ import annotations

from collections.abc import Iterator
from math import isinf, prod

from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from compiler.affine import linear as lin
from compiler.affine.text import to_text
from compiler.analysis.index_forms import Forms, Ranges
from compiler.dialects import loop, te
from compiler.dialects.access import AxisAttr
from compiler.dialects.sched import ParamType, SchedOp
from compiler.program.read import read
from compiler.program.tree import blocks_in
from compiler.schedule.region import region
from compiler.support.errors import StrataError
from compiler.types.elements import element_bytes


def value_range(value: SSAValue) -> str:
    """The values that an index or a parameter of a script may have: `0 to 9`, `4, 8 or 16`; empty if unknown."""
    if isinstance(value.type, ParamType):
        return _choices(value)
    if not isinstance(value.type, IndexType):
        return ""
    owner = value.owner
    if isinstance(value, BlockArgument) and isinstance(value.block.parent_op(), loop.ForOp):
        return _interval(0, value.block.parent_op().size - 1)  # type: ignore[union-attr]
    if isinstance(owner, te.IndexOp | loop.IndexOp):
        axis = axis_of(owner.parent_op(), owner.label.data)
        return "" if axis is None else _interval(0, axis.size - 1)
    low, high = Ranges().of(value)
    return "" if isinf(low) and isinf(high) else _interval(low, high)


def value_form(value: SSAValue) -> str:
    """An index as a sum of multiples of other values: `4 * %i + %j`; empty for a value that is no sum or multiple."""
    if not isinstance(value.type, IndexType):
        return ""
    forms = Forms()
    form = forms.of(value)
    if form.is_constant or form.as_variable is not None:
        return ""
    return lin.to_isl(form, {n: f"%{v.name_hint or n}" for n, v in enumerate(forms.values)})


def axis_of(op: Operation | None, label: str) -> AxisAttr | None:
    """The axis of a compute, a gather or a block, by its name; None if it has none of this name, and for another op."""
    axes = getattr(op, "axes", None)
    attributes = getattr(axes, "data", ())
    return next((axis for axis in attributes if isinstance(axis, AxisAttr) and axis.label == label), None)


def axis_text(op: Operation, axis: AxisAttr) -> str:
    """An axis in words, with its values, and for one of a block the loops that it is bound to."""
    kind = "reduce axis" if axis.is_reduce else "spatial axis"
    text = f"{kind} `{axis.label}`: {_interval(0, axis.size - 1)}"
    if isinstance(op, loop.Placed):
        number = [a.label for a in op.axes].index(axis.label)
        names = [f"%{value.name_hint or value.index}" for value in op.loops]  # type: ignore[attr-defined]
        text += f", at `{to_text(op.bindings.data.results[number], names)}`"
    return text


def storage(type: object) -> str:
    """The elements and bytes of a tensor or buffer: `64 x 32 elements, 8 KiB`; empty for other types, and for unknown
    sizes."""
    if not isinstance(type, TensorType | MemRefType) or any(size < 0 for size in type.get_shape()):
        return ""
    shape = type.get_shape()
    return f"{_shape_text(shape)}, {bytes_text(prod(shape) * element_bytes(type.get_element_type()))}"


def bytes_text(count: int) -> str:
    """A number of bytes with a unit: `512 bytes`, `8 KiB`, `1.5 MiB`."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.4g} {unit}"
    return f"{count} bytes"


def loop_text(op: loop.ForOp) -> str:
    """A loop in words: its extent, its kind, and how often its body runs in all loops around it."""
    around = [op, *loop.enclosing_loops(op)]
    executions = prod(outer.size for outer in around)
    text = f"{op.loop_kind} loop `{op.label.data}`: {_interval(0, op.size - 1)}"
    return text if len(around) == 1 else f"{text}; its body runs {executions} times in {len(around)} loops"


def footprint(op: loop.ForOp) -> list[str]:
    """The part of each buffer that all iterations of a loop touch, for fixed loops around it, as lines of text; of
    buffers that are allocated inside nothing. Empty for a loop outside of a function at the loop level."""
    function = op.parent_op()
    while function is not None and not isinstance(function, FuncOp):
        function = function.parent_op()
    if function is None:
        return []
    return list(_footprint(function, op))


def _footprint(function: FuncOp, op: loop.ForOp) -> Iterator[str]:
    try:
        program = read(function)
    except StrataError:  # not a function of loops
        return
    loops = [inner for inner in function.walk() if isinstance(inner, loop.ForOp)]
    number = loops.index(op)
    outer = {loops.index(around) for around in loop.enclosing_loops(op)}
    blocks = list(blocks_in(program.loops[number]))
    buffers = dict.fromkeys(access.buffer for block in blocks for access in (*block.reads, *block.writes))
    for name in buffers:
        buffer = program.buffers[name]
        extents = [interval.extent for interval in region(program, name, blocks, outer, None)]
        size = prod(extents) * element_bytes(buffer.element)
        yield f"`%{name}`: {_shape_text(extents)}, {bytes_text(size)}"


def _shape_text(shape: object) -> str:
    sizes = [str(size) for size in shape]  # type: ignore[attr-defined]
    return f"{' x '.join(sizes)} elements" if sizes else "1 element"


def _interval(low: float, high: float) -> str:
    if low == high:
        return f"always {int(low)}"
    return " to ".join("unbounded" if isinf(end) else str(int(end)) for end in (low, high))


def _choices(value: SSAValue) -> str:
    """The candidates of a parameter of a script, with its decision if there is one."""
    op = value.owner
    if not isinstance(op, SchedOp):
        return ""
    candidates = op.properties.get("candidates")
    decision = op.properties.get("decision")
    decided = f", decided as position {decision.value.data}" if isinstance(decision, IntegerAttr) else ""
    if candidates is None:
        return f"a factor that a search decides{decided}" if op.primitive.startswith("sample") else ""
    values = [str(number) for number in candidates.get_values()]  # type: ignore[attr-defined]
    return f"{' or '.join(filter(None, [', '.join(values[:-1]), values[-1]]))}{decided}"
