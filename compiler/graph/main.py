"""`Main`: a function that calls others, as immutable data: read from te or loop IR, written at the loop or low level.

It computes nothing itself: it has buffers, calls in order, and copies to outputs that no call writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from math import prod

from xdsl.dialects import memref
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    DenseArrayBase,
    FloatAttr,
    IndexType,
    IntegerAttr,
    LocationAttr,
    MemRefType,
    UnrealizedConversionCastOp,
    f32,
    i8,
    i64,
)
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.dialects.scf import IfOp, YieldOp
from xdsl.ir import Block as IrBlock
from xdsl.ir import Operation, Region, SSAValue

from compiler.dialects import loop, te
from compiler.dialects.calls import called
from compiler.dialects.checks import element_type, shape_of
from compiler.dialects.dense_elements import Dense
from compiler.dialects.functions import SLOT_ALIGNMENT, outputs
from compiler.dialects.upstream.arith import CmpfOp
from compiler.graph.guarded import Guarded, guarded
from compiler.graph.read import read
from compiler.program.names import Names
from compiler.program.tree import Buffer
from compiler.program.write import hint, memref_type, replace_body
from compiler.support.errors import InputError
from compiler.types.elements import element_bytes, is_unsigned

CONSTANTS = "constants"
"""The name of the argument that is the memory of all constants."""


@dataclass(frozen=True)
class BufferCall:
    """A call of a function: the names of the buffers that it reads, and of the buffers that it writes.

    guarded: the positions of the callee's guard and of the input that it returns if the guard is not zero; None without
    a guard. skip_guard: the name of a buffer of one element: the call is skipped if it is not zero; "" for an
    unconditional call. location: of what this call computes; equality ignores it.
    """

    callee: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    guarded: Guarded | None = None
    skip_guard: str = ""
    location: LocationAttr = field(default=UNKNOWN_LOC, compare=False)

    @property
    def reads(self) -> tuple[str, ...]:
        """The names of the inputs; `skip_guard` is not added."""
        return self.inputs

    @property
    def writes(self) -> tuple[str, ...]:
        """The names of the buffers that the call writes."""
        return self.outputs


@dataclass(frozen=True)
class BufferCopy:
    """A copy of the buffer `source` to `target`, which has the same type."""

    source: str
    target: str

    @property
    def reads(self) -> tuple[str, ...]:
        """The name of the source, as a tuple."""
        return (self.source,)

    @property
    def writes(self) -> tuple[str, ...]:
        """The name of the target, as a tuple."""
        return (self.target,)


Step = BufferCall | BufferCopy


@dataclass(frozen=True)
class ConstantSlot:
    """A constant buffer, and its offset in bytes in the memory of all constants."""

    buffer: Buffer
    offset: int


@dataclass(frozen=True)
class BufferView:
    """A buffer that shares the memory of another, the temporary or result `base`, from an offset in bytes on."""

    buffer: Buffer
    base: str
    offset: int


@dataclass(frozen=True)
class Main:
    """A function that calls others. The last `outputs` of the arguments are results; steps run in order; `temporaries`
    are the other buffers with memory of their own.

    Constants share one memory of `constant_bytes`, which is the argument before the results in the loop and low forms.
    elements: map the name of each constant whose value is in the program to the value. views: buffers within other
    buffers.
    """

    name: str
    arguments: tuple[Buffer, ...]
    outputs: int
    temporaries: tuple[Buffer, ...]
    steps: tuple[Step, ...]
    constants: tuple[ConstantSlot, ...] = ()
    constant_bytes: int = 0
    elements: Mapping[str, Dense] = field(default_factory=dict)
    views: tuple[BufferView, ...] = ()

    @property
    def inputs(self) -> tuple[Buffer, ...]:
        """The arguments before the results."""
        return self.arguments[: len(self.arguments) - self.outputs]

    @property
    def results(self) -> tuple[Buffer, ...]:
        """The last `outputs` arguments, which are results."""
        return self.arguments[len(self.arguments) - self.outputs :]

    @cached_property
    def buffers(self) -> dict[str, Buffer]:
        """Map the name of each argument, temporary, constant and view to its buffer."""
        named = (constant.buffer for constant in self.constants), (view.buffer for view in self.views)
        return {buffer.name: buffer for buffer in (*self.arguments, *self.temporaries, *chain(*named))}

    @cached_property
    def bases(self) -> dict[str, str]:
        """Map the name of each view to the name of the buffer whose memory it shares."""
        return {view.buffer.name: view.base for view in self.views}

    @cached_property
    def calls(self) -> tuple[BufferCall, ...]:
        """The steps that are calls."""
        return tuple(step for step in self.steps if isinstance(step, BufferCall))


def with_constant_offsets(main: Main, constants: Iterable[Buffer]) -> Main:
    """Lay out those of `constants` that steps of `main` read in one memory, at offsets that are multiples of
    SLOT_ALIGNMENT."""
    read = {name for step in main.steps for name in step.reads}
    slots, bytes = constant_slots(buffer for buffer in constants if buffer.name in read)
    return replace(main, constants=slots, constant_bytes=bytes)


def constant_slots(buffers: Iterable[Buffer]) -> tuple[tuple[ConstantSlot, ...], int]:
    """Lay out buffers one after the other in one memory, each at a multiple of SLOT_ALIGNMENT bytes; return their
    slots, and the bytes of the memory."""
    offset, slots = 0, list[ConstantSlot]()
    for buffer in buffers:
        slots.append(ConstantSlot(buffer, offset))
        offset += -(-size(buffer) // SLOT_ALIGNMENT) * SLOT_ALIGNMENT
    return tuple(slots), offset


def size(buffer: Buffer) -> int:
    """The size of a buffer in bytes."""
    return prod(buffer.shape) * element_bytes(buffer.scalar)


class _Buffers:
    """A table of buffers under construction. names: map an SSA value to its buffer's name. buffers: by name."""

    def __init__(self) -> None:
        self.names: dict[SSAValue, str] = {}
        self.buffers: dict[str, Buffer] = {}
        self._fresh = Names()

    def add(self, value: SSAValue, name: str) -> str:
        """Add a buffer of a value's type and return its name, numbered if `name` is taken; `names` stays as it is."""
        unique = self._fresh.fresh(name)
        self.buffers[unique] = Buffer(unique, tuple(shape_of(value)), element_type(value))
        return unique

    def of(self, value: SSAValue, name: str) -> str:
        """The name of the buffer of an SSA value; adds a buffer, by preference named `name`, if there is none."""
        if value not in self.names:
            self.names[value] = self.add(value, name)
        return self.names[value]


def read_tensors(function: FuncOp) -> Main:
    """Read a te function that only calls others; its results become the last arguments. Raises InputError for a call of
    a function that the module does not define.

    Calls write the results of the function directly; a result that is an argument, a constant or returned twice is
    copied at the end.
    """
    block, table = function.body.block, _Buffers()
    last = block.last_op
    assert isinstance(last, ReturnOp)
    for number, argument in enumerate(block.args):
        table.of(argument, argument.name_hint or f"arg{number}")
    copied: list[tuple[SSAValue, str]] = []
    for number, value in enumerate(last.operands):
        name = value.name_hint or f"result{number}"
        if isinstance(value.owner, CallOp) and value not in table.names:
            table.of(value, name)
        else:
            copied.append((value, table.add(value, name)))
    count = len(table.buffers)
    steps, elements, guards = list[Step](), dict[str, Dense](), dict[str, Guarded | None]()
    for op in block.ops:
        if isinstance(op, te.ConstantOp):
            elements[table.of(op.output, op.output.name_hint or op.value.data.name)] = op.value.data
        elif isinstance(op, CallOp):
            callee = op.callee.string_value()
            outputs = tuple(table.of(v, v.name_hint or f"{callee}.{n}") for n, v in enumerate(op.results))
            inputs = tuple(table.names[v] for v in op.arguments)
            guard = guards.setdefault(callee, guarded(read(called(op))))
            steps.append(BufferCall(callee, inputs, outputs, guard, location=op.location))
    steps += [BufferCopy(table.names[value], target) for value, target in copied]
    buffers = tuple(table.buffers.values())
    temporaries = tuple(buffer for buffer in buffers[count:] if buffer.name not in elements)
    name, number = function.sym_name.data, len(last.operands)
    main = Main(name, buffers[:count], number, temporaries, tuple(steps), elements=elements)
    return with_constant_offsets(main, (table.buffers[name] for name in elements))


def read_buffers(function: FuncOp, output_counts: Mapping[str, int]) -> Main:
    """Read a loop function that only calls others; `output_counts` maps each callee to its number of outputs.

    Raises InputError for ops other than allocations, calls, calls under an `scf.if` that tests a guard, copies, and
    views of the constants' memory or of buffers at constant offsets. Constants, casts, loads and comparisons are
    skipped where they stand, and read with the calls and views that use them.
    """
    block, table = function.body.block, _Buffers()
    blocks = {op.source for op in block.ops if isinstance(op, memref.ViewOp) and not _is_cast(op.source)}
    for number, argument in enumerate(block.args):
        if argument not in blocks:
            table.of(argument, argument.name_hint or f"arg{number}")
    count = len(table.buffers)
    steps, constants, views = list[Step](), list[ConstantSlot](), list[BufferView]()
    for op in block.ops:
        match op:
            case memref.ViewOp() if _is_cast(op.source):
                views.append(_view_of_buffer(op, table))
            case memref.ViewOp():
                constants.append(ConstantSlot(_viewed(op, table), _offset(op)))
            case ConstantOp() | UnrealizedConversionCastOp():
                continue
            case loop.AllocOp():
                table.of(op.buffer, op.label.data)
            case CallOp():
                steps.append(_call(op, table, output_counts))
            case memref.CopyOp():
                steps.append(BufferCopy(table.names[op.source], table.names[op.destination]))
            case IfOp():
                steps.append(_skipped(op, table, output_counts))
            case ReturnOp() | memref.LoadOp() | CmpfOp():
                continue
            case _:
                raise InputError(f"'{op.name}' is not an op of a loop function that calls others")
    buffers = tuple(table.buffers.values())
    placed = {constant.buffer.name for constant in constants} | {view.buffer.name for view in views}
    temporaries = tuple(buffer for buffer in buffers[count:] if buffer.name not in placed)
    bytes, placed_at = sum(shape_of(value)[0] for value in blocks), tuple(constants)
    name, arguments, number = function.sym_name.data, buffers[:count], outputs(function)
    return Main(name, arguments, number, temporaries, tuple(steps), placed_at, bytes, views=tuple(views))


def _call(op: CallOp, table: _Buffers, output_counts: Mapping[str, int], unless: str = "") -> BufferCall:
    callee = op.callee.string_value()
    arguments = tuple(table.names[value] for value in op.arguments)
    first = len(arguments) - output_counts[callee]
    return BufferCall(callee, arguments[:first], arguments[first:], skip_guard=unless, location=op.location)


def _skipped(op: IfOp, table: _Buffers, output_counts: Mapping[str, int]) -> BufferCall:
    """Read an `scf.if` that runs one call if a one-element buffer is zero. Raises InputError for any other `scf.if`."""
    test, ops = op.cond.owner, list(op.true_region.block.ops)
    load = test.lhs.owner if isinstance(test, CmpfOp) else None
    zero = test.rhs.owner if isinstance(test, CmpfOp) and test.predicate_name == "oeq" else None
    is_zero = isinstance(zero, ConstantOp) and isinstance(zero.value, FloatAttr) and zero.value.value.data == 0
    is_guard = isinstance(load, memref.LoadOp) and shape_of(load.memref) == (1,) and is_zero
    call = ops[0] if len(ops) == 2 and not op.false_region.blocks and not op.results else None
    if not isinstance(load, memref.LoadOp) or not is_guard or not isinstance(call, CallOp):
        raise InputError("'scf.if' of a function that calls others is not one call under a guard")
    return _call(call, table, output_counts, table.names[load.memref])


def _is_cast(value: SSAValue) -> bool:
    """Whether an unrealized cast, such as of a buffer to bytes, defines a value."""
    return isinstance(value.owner, UnrealizedConversionCastOp)


def _view_of_buffer(view: memref.ViewOp, table: _Buffers) -> BufferView:
    """Read a view of the bytes of a buffer. Raises InputError if it is not inside the buffer, or at an offset that is
    no constant."""
    assert isinstance(view.source.owner, UnrealizedConversionCastOp)
    viewed, offset, cast = _viewed(view, table), _offset(view), view.source.owner
    viewed_buffer = table.names.get(cast.inputs[0]) if len(cast.inputs) == 1 else None
    if viewed_buffer is None or not 0 <= offset <= size(table.buffers[viewed_buffer]) - size(viewed):
        raise InputError("a view of a function that calls others is not within one of its buffers")
    return BufferView(viewed, viewed_buffer, offset)


def _viewed(view: memref.ViewOp, table: _Buffers) -> Buffer:
    return table.buffers[table.of(view.result, view.result.name_hint or "view")]


def _offset(view: memref.ViewOp) -> int:
    shift = view.byte_shift.owner
    if not isinstance(shift, ConstantOp) or not isinstance(shift.value, IntegerAttr):
        raise InputError("a view of a function that calls others is at an offset that is no constant")
    return shift.value.value.data


def write_loop(function: FuncOp, main: Main) -> None:
    """Replace the body of a function by the loop form of `main`: each temporary is allocated before its first use,
    constants are views of one argument, and other views are views of the bytes of their buffers."""
    _write(function, main, lambda buffer: memref_type(buffer.element, buffer.shape), loop.AllocOp)


def write_low(function: FuncOp, main: Main) -> None:
    """Replace the body of a function by the low form of `main`, which differs from that of `write_loop` in types and in
    the op of allocations; add the attribute `unsigned`, the positions of arguments of unsigned dtypes."""
    _write(
        function,
        main,
        lambda buffer: memref_type(buffer.scalar, buffer.shape),
        lambda name, type: memref.AllocOp([], [], type),
    )
    first, shift = len(main.inputs), bool(main.constants)
    unsigned = [n + (n >= first and shift) for n, b in enumerate(main.arguments) if is_unsigned(b.element)]
    if unsigned:
        function.attributes["unsigned"] = DenseArrayBase.from_list(i64, unsigned)


def _write(
    function: FuncOp,
    main: Main,
    type_of: Callable[[Buffer], MemRefType],
    allocate: Callable[[str, MemRefType], Operation],
) -> None:
    """Replace the body of a function by the calls of `main`, with types from `type_of` and allocations from `allocate`;
    set its attributes `outputs`, their number, and `aligned`, the position of the constants' memory if there is any."""
    types, first = [type_of(buffer) for buffer in main.arguments], len(main.inputs)
    if main.constants:
        types.insert(first, memref_type(i8, (main.constant_bytes,)))
        function.attributes["aligned"] = DenseArrayBase.from_list(i64, [first])
    body = IrBlock(arg_types=types)
    arguments: list[SSAValue] = list(body.args)
    values: dict[str, SSAValue] = {}
    if main.constants:
        block = arguments.pop(first)
        block.name_hint = CONSTANTS
        for constant in main.constants:
            values[constant.buffer.name] = _view(body, block, constant.offset, type_of(constant.buffer))
    values |= dict(zip((buffer.name for buffer in main.arguments), arguments, strict=True))
    for name, argument in values.items():
        argument.name_hint = hint(name)
    _fill(body, main, values, allocate, type_of)
    replace_body(function, Region(body))
    function.attributes["outputs"] = IntegerAttr(main.outputs, i64)


def _view(body: IrBlock, bytes: SSAValue, offset: int, type: MemRefType) -> SSAValue:
    """Add to `body` a view of type `type` at an offset in bytes of a buffer of bytes; return the view."""
    shift = ConstantOp(IntegerAttr(offset, IndexType()))
    view = memref.ViewOp(bytes, shift, [], type)
    body.add_ops([shift, view])
    return view.result


def _unless(call: CallOp, guard: SSAValue) -> list[Operation]:
    """The ops that run a call only if the buffer `guard`, of one element, is zero."""
    origin = ConstantOp(IntegerAttr(0, IndexType()))
    load = memref.LoadOp.get(guard, [origin.result])
    zero = ConstantOp(FloatAttr(0.0, f32))
    test = CmpfOp(load, zero, "oeq")
    return [origin, load, zero, test, IfOp(test, [], Region(IrBlock([call, YieldOp()])))]


def _locate(op: Operation | None, location: LocationAttr) -> None:
    """Set the location of an op and of those behind it in its block; nothing for None."""
    while op is not None:
        op.location = location
        op = op.next_op


def _fill(
    body: IrBlock,
    main: Main,
    values: dict[str, SSAValue],
    allocate: Callable[[str, MemRefType], Operation],
    type_of: Callable[[Buffer], MemRefType],
) -> None:
    """Add the ops of the steps and the return to `body`; temporaries and views are defined before their first use, by
    `allocate` and `type_of`, and added to `values`, which maps names of buffers to SSA values."""
    views = {view.buffer.name: view for view in main.views}
    casts: dict[str, SSAValue] = {}

    def bytes_of(name: str) -> SSAValue:
        if name not in casts:
            cast, casts[name] = UnrealizedConversionCastOp.cast_one(
                value(name), memref_type(i8, (size(main.buffers[name]),))
            )
            casts[name].name_hint = None
            body.add_op(cast)
        return casts[name]

    def value(name: str) -> SSAValue:
        if name not in values:
            view = views.get(name)
            if view is None:
                alloc = allocate(name, type_of(main.buffers[name]))
                body.add_op(alloc)
                values[name] = alloc.results[0]
            else:
                values[name] = _view(body, bytes_of(view.base), view.offset, type_of(view.buffer))
            values[name].name_hint = hint(name)
        return values[name]

    for step in main.steps:
        before = body.last_op
        if isinstance(step, BufferCall):
            call = CallOp(step.callee, [value(name) for name in (*step.inputs, *step.outputs)], [])
            call.location = step.location
            body.add_ops(_unless(call, value(step.skip_guard)) if step.skip_guard else [call])
            _locate(before.next_op if before is not None else body.first_op, step.location)
        else:
            body.add_op(memref.CopyOp(value(step.source), value(step.target)))
    body.add_op(ReturnOp())
