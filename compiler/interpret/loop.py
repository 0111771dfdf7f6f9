"""The interpreter of loop functions: sequential, by the semantics of the loop dialect.

The function becomes a list of Python closures over the current values of loop variables and buffers. Every
kind of loop runs serially; a new buffer is filled with poison (NaN), which makes premature reads visible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

import numpy as np
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.dialects.memref import CopyOp
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap, AffineSet, AffineSymExpr

from compiler.dialects.access import AccessAttr, names_of
from compiler.dialects.calls import called
from compiler.dialects.checks import element_type, shape_of
from compiler.dialects.functions import find_function
from compiler.dialects.gather import affine_part
from compiler.dialects.loop import AllocOp, BlockOp, ConstantOp, ForOp, GatherOp, Placed, enclosing_loops
from compiler.dialects.mathematics import Value
from compiler.dialects.numbers import Array, DType, array_of, constant, dtype_of, is_float, loaded, stored
from compiler.interpret.combination import joint, neutral
from compiler.interpret.maps import condition_function, index_function
from compiler.interpret.modules import HasModule, module_in
from compiler.interpret.scalar import Body, combiner
from compiler.support.errors import InputError, StrataError

Statement: TypeAlias = Callable[[], None]
Execution: TypeAlias = Callable[[Sequence[int]], None]
"""Function that executes an instance of a block, given the values of its iterators."""


class InterpretError(StrataError):
    """An access out of bounds, an iterator out of its extent, a block that uses a buffer or a loop where it is not
    visible, or an init at an index of a reduce axis."""


def run(module: ModuleOp | HasModule, arrays: Sequence[Array], name: str | None = None) -> None:
    """Run the loop function `name`, or the only one, on arrays, one an argument; results are written to the last ones.

    module: with the function; or a Schedule, whose scheduled function runs.

    arrays: of the arguments' shapes and dtypes (i1 is bool, index is int64); those written must be writeable.

    Raises InputError for arrays that do not match the function, a function that is missing or not unique, and an op of
    another level; InterpretError at the first access out of bounds or iterator out of its extent, with the block, the
    index and the iteration, and before the run for a block that uses a buffer or a loop where it is not visible, and
    for an init at an index of a reduce axis.

    >>> A = te.placeholder((2, 3), name="A")
    >>> result = np.empty(2, np.float32)
    >>> module = lower(te.function("f", [A], te.nn.sum(A, axis=1)))
    >>> strata.interpret.run(module, [np.ones((2, 3), np.float32), result])
    >>> result
    array([3., 3.], dtype=float32)
    """
    function = find_function(module_in(module), name)
    if not function.body.blocks:
        raise InputError(f"@{function.sym_name.data} has no body")
    with np.errstate(all="ignore"):
        _run(function, arrays)


def _run(function: FuncOp, arrays: Sequence[Array]) -> None:
    scope = _Scope({}, _bind(function, arrays), _init_positions(function))
    for statement in _statements(function.body.block.ops, scope):
        statement()


@dataclass(eq=False)
class _Loop:
    """A loop variable and its current value."""

    label: str
    value: int = 0


@dataclass(eq=False)
class _Buffer:
    """A buffer and its current array."""

    name: str
    array: Array


@dataclass(frozen=True)
class _Scope:
    """The visible loops and buffers at a position in the function, and the blocks whose init precedes each op."""

    loops: dict[SSAValue, _Loop]
    buffers: dict[SSAValue, _Buffer]
    inits: Mapping[Operation, Sequence[BlockOp]]

    def inner(self) -> _Scope:
        """Copy the scope for the body of a loop: what is added to the copy is not visible outside."""
        return _Scope(dict(self.loops), dict(self.buffers), self.inits)

    def buffer(self, value: SSAValue, block: Placed) -> _Buffer:
        """The buffer of a value used by a block or its init. Raises InterpretError if it is not allocated there."""
        if value not in self.buffers:
            raise InterpretError(f"block '{block.label.data}' uses '{value.name_hint}' where it is not allocated")
        return self.buffers[value]


def _bind(function: FuncOp, arrays: Sequence[Array]) -> dict[SSAValue, _Buffer]:
    arguments = function.body.block.args
    if len(arrays) != len(arguments):
        raise InputError(f"@{function.sym_name.data} takes {len(arguments)} arrays, not {len(arrays)}")
    written = {target for op in function.walk() if isinstance(op, Placed) for target in op.targets}
    buffers: dict[SSAValue, _Buffer] = {}
    for position, (argument, array) in enumerate(zip(arguments, arrays, strict=True)):
        name = argument.name_hint or str(position)
        type_ = argument.type
        if not isinstance(type_, MemRefType):
            raise InputError(f"argument '{name}' is no memref but {type_}: this is not a loop function")
        if array.shape != type_.get_shape() or array.dtype != dtype_of(type_.get_element_type()):
            raise InputError(f"array '{name}' is {type_}, not an array of shape {array.shape} and dtype {array.dtype}")
        if argument in written and not array.flags.writeable:
            raise InputError(f"array '{name}' is written but is read-only")
        buffers[argument] = _Buffer(name, array)
    return buffers


def _bound_loops(block: BlockOp, reduce: bool) -> set[SSAValue]:
    """The variables of loops that occur in the bindings of a block's reduce iterators, or else of its spatial ones."""
    bound = zip(block.axes, block.bindings.data.results, strict=True)
    return {block.loops[d] for d in _dims(expr for axis, expr in bound if axis.is_reduce == reduce)}


def _init_positions(function: FuncOp) -> Mapping[Operation, Sequence[BlockOp]]:
    """Map each op to the blocks whose init runs immediately before it, in program order: the outermost loop that a
    block's reduce iterators use, or the block itself without one. Blocks that accumulate only have no init."""
    inits: dict[Operation, list[BlockOp]] = {}
    for block in function.walk():
        if isinstance(block, BlockOp) and block.is_reduction and block.accumulate is None:
            reduced = _bound_loops(block, reduce=True)
            position = next((loop for loop in enclosing_loops(block) if loop.iv in reduced), block)
            inits.setdefault(position, []).append(block)
    return inits


def _statements(ops: Iterable[Operation], scope: _Scope) -> list[Statement]:
    statements: list[Statement] = []
    for op in ops:
        statements += [_init(block, scope) for block in scope.inits.get(op, ())]
        if isinstance(op, ForOp):
            statements.append(_loop(op, scope))
        elif isinstance(op, AllocOp):
            statements.append(_alloc(op, scope))
        elif isinstance(op, ConstantOp):
            scope.buffers[op.buffer] = _Buffer(op.label.data, array_of(op.value.data))
        elif isinstance(op, Placed):
            statements.append(_instance(op, scope))
        elif isinstance(op, CallOp):
            statements.append(_call(op, scope))
        elif isinstance(op, CopyOp):
            statements.append(_copy(op, scope))
        elif not isinstance(op, ReturnOp):
            raise InputError(f"'{op.name}' is not an op of the loop level")
    return statements


def _call(op: CallOp, scope: _Scope) -> Statement:
    callee, given = called(op), [scope.buffers[value] for value in op.arguments]
    return lambda: _run(callee, [buffer.array for buffer in given])


def _copy(op: CopyOp, scope: _Scope) -> Statement:
    source, target = scope.buffers[op.source], scope.buffers[op.destination]

    def copy() -> None:
        target.array[...] = source.array

    return copy


def _loop(op: ForOp, scope: _Scope) -> Statement:
    inner = scope.inner()
    current = inner.loops[op.iv] = _Loop(op.label.data)
    statements = _statements(op.body.block.ops, inner)
    size = op.size

    def iterate() -> None:
        for value in range(size):
            current.value = value
            for statement in statements:
                statement()

    return iterate


def _alloc(op: AllocOp, scope: _Scope) -> Statement:
    shape, dtype = shape_of(op.buffer), dtype_of(element_type(op.buffer))
    buffer = scope.buffers[op.buffer] = _Buffer(op.label.data, np.empty(0, dtype))

    def poison() -> None:
        buffer.array = np.full(shape, _poison(dtype))

    return poison


def _poison(dtype: DType) -> Value:
    if is_float(dtype):
        return dtype.type(np.nan)
    return dtype.type(dtype == np.bool_ or np.frombuffer(b"\xa5" * dtype.itemsize, dtype)[0])


@dataclass(frozen=True)
class _Place:
    """A block, or its init, with its enclosing loops, for error messages."""

    block: Placed
    loops: Sequence[_Loop]

    def __str__(self) -> str:
        iteration = ", ".join(f"{loop.label} = {loop.value}" for loop in self.loops)
        return f"at {iteration}" if iteration else "outside all loops"

    def check(self, axes: Sequence[int]) -> None:
        """Raise InterpretError for an iterator out of its extent."""
        for axis, value in zip(self.block.axes.data, axes, strict=True):
            if not 0 <= value < axis.size:
                raise InterpretError(
                    f"iterator '{axis.label}' of block '{self.block.label.data}' is {value}, "
                    f"outside its extent {axis.size}, {self}"
                )


class _Access:
    """An access of a block to a buffer, with bounds checks. verb: `reads`, `writes` or `initialises`, for messages."""

    def __init__(self, place: _Place, verb: str, buffer: _Buffer, access: AccessAttr) -> None:
        self.place = place
        self.verb = verb
        self.buffer = buffer
        self.map = index_function(access.affine_map)

    def index(self, axes: Sequence[int]) -> tuple[int, ...]:
        """The buffer's index at values of the iterators. Raises InterpretError if it is out of bounds."""
        index = self.map(*axes)
        shape = self.buffer.array.shape
        for value, size in zip(index, shape, strict=True):
            if not 0 <= value < size:
                raise InterpretError(
                    f"block '{self.place.block.label.data}' {self.verb} '{self.buffer.name}' "
                    f"at index {list(index)}, outside its shape {list(shape)}, {self.place}"
                )
        return index

    def load(self, axes: Sequence[int]) -> Value:
        """Load the element at values of the iterators. Raises InterpretError if it is out of bounds."""
        return loaded(self.buffer.array[self.index(axes)])

    def store(self, axes: Sequence[int], value: Value) -> None:
        """Store an element at values of the iterators. Raises InterpretError if it is out of bounds."""
        self.buffer.array[self.index(axes)] = stored(value, self.buffer.array.dtype)


def _instance(block: Placed, scope: _Scope) -> Statement:
    """Compile a block or gather to a function that executes it in the current iteration of its loops."""
    place = _Place(block, list(scope.loops.values()))
    loops = [_visible_loop(value, block, scope) for value in block.loops]
    execute = _gather(place, block, scope) if isinstance(block, GatherOp) else _compute(place, scope)
    return _guarded(place, loops, block.guard, block.bindings.data, execute)


def _guarded(
    place: _Place, loops: Sequence[_Loop], guard: AffineSet | None, bindings: AffineMap, execute: Execution
) -> Statement:
    """Compile to a function that computes the iterators from the current values of the loops by `bindings`, checks
    their extents, and executes; it does nothing if the guard is false."""
    holds, at = condition_function(guard, len(loops)), index_function(bindings)

    def instance() -> None:
        values = [loop.value for loop in loops]
        if holds(*values):
            axes = at(*values)
            place.check(axes)
            execute(axes)

    return instance


def _compute(place: _Place, scope: _Scope) -> Execution:
    """Compile a block to a function that runs its body, and stores or combines its values."""
    block = place.block
    assert isinstance(block, BlockOp)
    reads = [_read(place, *read, scope) for read in zip(block.inputs, block.reads, strict=True)]
    body = Body(block.body.block, names_of(block.axes.data))
    targets = zip(block.targets, block.writes, strict=True)
    accesses = [_Access(place, "writes", scope.buffer(v, block), access) for v, access in targets]
    combine = _combined(block, accesses)

    def execute(axes: Sequence[int]) -> None:
        values = body([read(axes) for read in reads], axes)
        if combine is not None:
            values = combine([access.load(axes) for access in accesses], values)
        for access, value in zip(accesses, values, strict=True):
            access.store(axes, value)

    return execute


def _gather(place: _Place, block: GatherOp, scope: _Scope) -> Execution:
    """Compile a gather to a function that stores the table's element, or `else` for an index outside, to the target."""
    reads = [_read(place, *read, scope) for read in zip(block.indices, block.reads, strict=True)]
    dtypes = [scope.buffer(v, block).array.dtype for v in block.indices]
    dims = block.table_map.data.results
    affine_access = AccessAttr(AffineMap(len(block.axes), 0, tuple(map(affine_part, dims))))
    table = _Access(place, "reads", scope.buffer(block.table, block), affine_access)
    target = _Access(place, "writes", scope.buffer(block.targets[0], block), block.writes.data[0])
    outside = constant(block.outside)

    def execute(axes: Sequence[int]) -> None:
        values = [int(stored(read(axes), dtype)) for read, dtype in zip(reads, dtypes, strict=True)]
        index = list(table.index(axes))
        for dim, expr in enumerate(dims):
            index[dim] = values[expr.position] if isinstance(expr, AffineSymExpr) else index[dim]
        inside = all(0 <= i < n for i, n in zip(index, table.buffer.array.shape, strict=True))
        target.store(axes, table.buffer.array[tuple(index)] if inside else outside)

    return execute


def _visible_loop(value: SSAValue, block: Placed, scope: _Scope) -> _Loop:
    if value not in scope.loops:
        raise InterpretError(f"block '{block.label.data}' is bound to a loop that does not enclose it")
    return scope.loops[value]


def _read(place: _Place, value: SSAValue, read: AccessAttr, scope: _Scope) -> Callable[[Sequence[int]], Value]:
    access = _Access(place, "reads", scope.buffer(value, place.block), read)
    if read.condition is None or read.otherwise is None:
        return access.load
    holds = condition_function(read.condition, len(place.block.axes))
    otherwise = constant(read.otherwise)
    return lambda axes: access.load(axes) if holds(*axes) else otherwise


def _combined(
    block: BlockOp, accesses: Sequence[_Access]
) -> Callable[[Sequence[Value], list[Value]], list[Value]] | None:
    if block.joint is not None:
        return joint(block.joint.block)
    if not block.combiners.data:
        return None
    dtypes = [access.buffer.array.dtype for access in accesses]
    ufuncs = [combiner(name.data, dtype) for dtype, name in zip(dtypes, block.combiners, strict=True)]

    def each(accumulators: Sequence[Value], added: list[Value]) -> list[Value]:
        return [f(stored(h, d), stored(a, d)) for f, d, h, a in zip(ufuncs, dtypes, accumulators, added, strict=True)]

    return each


def _init(block: BlockOp, scope: _Scope) -> Statement:
    """Compile the init of a block's targets in `scope`, which may be outside some of the block's loops.

    The init iterates over the loops outside `scope` that bind a spatial iterator, or occur in a constraint of the guard
    without reduce-only loops.
    """
    spatial = sum(not axis.is_reduce for axis in block.axes)
    bound = block.bindings.data.results[:spatial]
    guard = _init_guard(block)
    used = {block.loops[d] for d in _dims([*bound, *_sides(guard)])}
    fresh = [op for op in enclosing_loops(block) if op.iv in used and op.iv not in scope.loops]
    init_loops = {op.iv: _Loop(op.label.data) for op in fresh}
    place = _Place(block, [*scope.loops.values(), *init_loops.values()])
    visible = scope.loops | init_loops
    loops = [visible.get(value) or _Loop("") for value in block.loops]  # reduce-only loops do not occur here
    stores = _init_stores(place, scope, spatial)

    def execute(axes: Sequence[int]) -> None:
        for access, identity in stores:
            access.store(axes, identity)

    instance = _guarded(place, loops, guard, _padded(bound, len(loops), len(block.axes)), execute)

    def init() -> None:
        for values in product(*(range(op.size) for op in fresh)):
            for loop, value in zip(init_loops.values(), values, strict=True):
                loop.value = value
            instance()

    return init


def _init_guard(block: BlockOp) -> AffineSet:
    reduce_only = _bound_loops(block, reduce=True) - _bound_loops(block, reduce=False)
    constraints = block.guard.constraints if block.guard is not None else ()
    kept = [c for c in constraints if not {block.loops[d] for d in _dims([c.lhs, c.rhs])} & reduce_only]
    return AffineSet(len(block.loops), 0, tuple(kept))


def _sides(condition: AffineSet) -> list[AffineExpr]:
    return [side for constraint in condition.constraints for side in (constraint.lhs, constraint.rhs)]


def _dims(exprs: Iterable[AffineExpr]) -> set[int]:
    return {dim for expr in exprs for dim in expr.used_dims()}


def _padded(spatial: Sequence[AffineExpr], dims: int, axes: int) -> AffineMap:
    """The map from `dims` loops to all iterators of a block: its spatial bindings, then zero for each reduce
    iterator."""
    return AffineMap(dims, 0, (*spatial, *[AffineExpr.constant(0)] * (axes - len(spatial))))


def _init_stores(place: _Place, scope: _Scope, spatial: int) -> list[tuple[_Access, Value]]:
    block = place.block
    assert isinstance(block, BlockOp)
    stores = []
    for number, (value, write) in enumerate(zip(block.targets, block.writes, strict=True)):
        if any(dim >= spatial for dim in _dims(write.affine_map.results)):
            raise InterpretError(f"block '{block.label.data}' writes its reduction at an index of a reduce axis")
        access = _Access(place, "initialises", scope.buffer(value, block), write)
        stores.append((access, neutral(block, number, access.buffer.array.dtype)))
    return stores
