"""Loops and their kinds, guards: from a loop function to the scopes in which blocks are emitted.

A guard is tested as soon as all its variables are known: around the outermost op whose blocks all share it, or as
the bound of the loop whose variable completes it. Only guards over a vectorized variable are left to the blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import DenseArrayBase, FunctionType, IndexType, MemRefType, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from compiler.affine import linear as lin
from compiler.affine.condition import Condition, conditions
from compiler.affine.linear import Linear
from compiler.dialects import loop
from compiler.dialects.types import scalar_type
from compiler.errors import LoweringError
from compiler.lowering.loop_to_low.blocks import emit_block
from compiler.lowering.loop_to_low.context import Context
from compiler.lowering.loop_to_low.gathers import emit_gather
from compiler.lowering.loop_to_low.scalars import Policy
from compiler.lowering.loop_to_low.scopes import Scope, Scopes


def lower_function(function: FuncOp, policy: Policy) -> None:
    """Replace the body of a loop function by its low form."""
    old = function.body.block
    new = Block(arg_types=[_signless(argument.type) for argument in old.args])
    unsigned = [n for n, a in enumerate(old.args) if a.type != _signless(a.type)]
    if unsigned:
        function.attributes["unsigned"] = DenseArrayBase.from_list(i64, unsigned)
    context = Context(Scopes([Scope(new)]), policy)
    for before, after in zip(old.args, new.args, strict=True):
        after.name_hint = before.name_hint
        context.buffers[before] = after
    for number, op in enumerate(o for o in function.walk() if isinstance(o, loop.ForOp)):
        context.variables[op.iv] = number
        context.scopes.ranges[number] = (0, op.size - 1)
    for op in old.ops:
        if not isinstance(op, ReturnOp):
            _emit(context, op)
    new.add_op(ReturnOp())
    function.detach_region(function.body)
    function.add_region(Region(new))
    function.properties["function_type"] = FunctionType.from_lists([a.type for a in new.args], [])


def _signless(type: Attribute) -> MemRefType:
    """A memref's type at the low level, where the ops say the sign."""
    assert isinstance(type, MemRefType)
    return MemRefType(scalar_type(type.element_type), type.get_shape())


def _emit(context: Context, op: Operation) -> None:
    match op:
        case loop.AllocOp():
            type = _signless(op.buffer.type)
            if context.lane is not None:  # each lane has its own
                context.private.add(op.buffer)
                type = MemRefType(type.element_type, [*type.get_shape(), context.lanes])
            buffer = context.scopes.add(memref.AllocOp([], [], type))
            buffer.name_hint = op.buffer.name_hint
            context.buffers[op.buffer] = buffer
        case loop.ForOp() | loop.Placed():
            _emit_guarded(context, op)
        case _:
            raise LoweringError(f"'{op.name}' is not an op of the loop level")


def _emit_guarded(context: Context, op: loop.ForOp | loop.Placed) -> None:
    """Emit a loop or block under the tests that all its blocks share and that are known here."""
    tests = [c for c in _shared(context, op) if context.is_known(c.form) and not context.has_lanes(c.form)]
    if any(c.never(context.scopes.ranges) for c in tests):
        return
    context.settled.append(set(tests))
    tests = [c for c in tests if not c.always(context.scopes.ranges)]
    if tests:
        with _region(context) as body:
            _emit_plain(context, op)
        context.scopes.run(scf.IfOp(context.all_of(tests), [], Region(_ended(body))))
    else:
        _emit_plain(context, op)
    context.settled.pop()


def _emit_plain(context: Context, op: loop.ForOp | loop.Placed) -> None:
    if isinstance(op, loop.GatherOp):
        emit_gather(context, op, _open(context, op))
    elif isinstance(op, loop.BlockOp):
        emit_block(context, op, _open(context, op))
    elif not isinstance(op, loop.ForOp):
        raise LoweringError(f"'{op.name}' is not an op of the loop level")
    elif op.loop_kind == "unrolled":
        _unroll(context, op)
    elif op.loop_kind == "vectorized":
        _vectorize(context, op)
    elif op.loop_kind in ("serial", "parallel"):
        _loop(context, op)
    else:
        raise LoweringError(f"loop '{op.label.data}' is bound to {op.loop_kind}, which this target does not have")


def _unroll(context: Context, op: loop.ForOp) -> None:
    variable = context.variables[op.iv]
    for value in range(op.size):
        context.values[variable] = lin.constant(value)
        for inner in op.body.block.ops:
            _emit(context, inner)
    del context.values[variable]


def _vectorize(context: Context, op: loop.ForOp) -> None:
    if context.lane is not None:
        raise LoweringError(f"loop '{op.label.data}' is vectorized inside another vectorized loop")
    context.lane = context.variables[op.iv]
    context.lanes = op.size
    for inner in op.body.block.ops:
        _emit(context, inner)
    context.lane = None


def _loop(context: Context, op: loop.ForOp) -> None:
    scopes = context.scopes
    variable = context.variables[op.iv]
    bounds = _Bounds(op.size)
    taken = {c for c in _shared(context, op) if bounds.take(context, c, variable)}
    lower, upper, step = bounds.lower(scopes), bounds.upper(scopes), scopes.index_constant(1)
    with _region(context) as body:
        iv = body.insert_arg(IndexType(), 0)
        iv.name_hint = op.iv.name_hint
        scopes.bind(variable, iv)
        context.settled.append(taken)
        for inner in op.body.block.ops:
            _emit(context, inner)
        context.settled.pop()
    scopes.run(scf.ForOp(lower, upper, step, [], Region(_ended(body))))
    del scopes.bound[variable]


class _Bounds:
    """The bounds of a serial loop: its extent, narrowed by guards that its variable completes."""

    def __init__(self, extent: int) -> None:
        self.extent = extent
        self.lows: list[Linear] = []
        self.highs: list[Linear] = []

    def take(self, context: Context, condition: Condition, variable: int) -> bool:
        """Narrow the bounds by a condition f + a*v >= 0 over known f; False if it is not of that form."""
        factor = condition.form.coefficient(variable)
        rest = condition.form - Linear(((variable, factor or 0),)) if factor else None
        if condition.equal or rest is None or not context.is_known(rest) or context.has_lanes(rest):
            return False
        ranges = context.scopes.ranges
        if factor is not None and factor < 0:  # v <= floor(f / -a)
            quotient = rest if factor == -1 else None
            self.highs.append((quotient or _floor(rest, -factor, ranges)) + lin.constant(1))
        else:
            assert factor is not None
            self.lows.append(_floor(rest.scaled(-1) + lin.constant(factor - 1), factor, ranges))
        return True

    def lower(self, scopes: Scopes) -> SSAValue:
        value = scopes.index_constant(0)
        for form in self.lows:
            if lin.bounds(form, scopes.ranges)[1] > 0:
                value = scopes.add(arith.MaxSIOp(value, scopes.index(form)))
        return value

    def upper(self, scopes: Scopes) -> SSAValue:
        value = scopes.index_constant(self.extent)
        for form in self.highs:
            if lin.bounds(form, scopes.ranges)[0] < self.extent:
                value = scopes.add(arith.MinSIOp(value, scopes.index(form)))
        return value


def _floor(form: Linear, divisor: int, ranges: lin.Ranges) -> Linear:
    return form if divisor == 1 else lin.floordiv(form, divisor, ranges)


def _shared(context: Context, op: loop.ForOp | loop.Placed) -> list[Condition]:
    """The unsettled conditions that every block under an op has in its guard, in the first block's order."""
    blocks = [b for b in op.walk() if isinstance(b, loop.Placed)]
    if not blocks:
        return []
    each = [_open(context, block) for block in blocks]
    return [c for c in each[0] if all(c in other for other in each[1:])]


def _open(context: Context, block: loop.Placed) -> list[Condition]:
    """The conditions of a block's guard that no surrounding test has settled."""
    if block.guard is None:
        return []
    dims = [context.form_of(value) for value in block.loops]
    found = conditions(block.guard, dims, context.scopes.ranges)
    return [c for c in found if not any(c in settled for settled in context.settled)]


@contextmanager
def _region(context: Context) -> Iterator[Block]:
    body = Block()
    context.scopes.stack.append(Scope(body))
    yield body
    context.scopes.stack.pop()


def _ended(body: Block) -> Block:
    body.add_op(scf.YieldOp())
    return body
