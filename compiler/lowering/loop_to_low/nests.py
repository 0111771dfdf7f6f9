"""Loops and their kinds, guards: from a loop function to the scopes in which blocks are emitted.

A guard is tested as soon as all its variables are known: around the outermost op whose blocks all share it, or as
the bound of the loop whose variable completes it. Only guards over a vectorized variable are left to the blocks. A
loop over vectors is cut where its guard begins to fail: see cuts.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import DenseArrayBase, FunctionType, IndexType, MemRefType, UnitAttr, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.dialects import loop
from compiler.elements import scalar_type
from compiler.errors import LoweringError
from compiler.lowering.loop_to_low.blocks import emit_block, free_of
from compiler.lowering.loop_to_low.context import MOST_LANES, Context
from compiler.lowering.loop_to_low.cuts import Cut, find_cut
from compiler.lowering.loop_to_low.gathers import emit_gather
from compiler.lowering.loop_to_low.prefetches import emit_prefetches
from compiler.lowering.loop_to_low.scopes import Scope, Scopes
from compiler.lowering.loop_to_low.streams import check_streamed, streamed
from compiler.lowering.loop_to_low.tensor import emit_tensorized, fragment_type
from compiler.lowering.loop_to_low.tensor_nest import is_fragment
from compiler.lowering.loop_to_low.threads import emit_bound, emit_on_chip, emit_stage
from compiler.policies import Policy
from compiler.program.tree import fresh


def lower_function(function: FuncOp, policy: Policy) -> None:
    """Replace the body of a loop function by its low form."""
    old = function.body.block
    new = Block(arg_types=[signless(argument.type) for argument in old.args])
    unsigned = [n for n, a in enumerate(old.args) if a.type != signless(a.type)]
    if unsigned:
        function.attributes["unsigned"] = DenseArrayBase.from_list(i64, unsigned)
    context = Context(Scopes([Scope(new)]), policy)
    for before, after in zip(old.args, new.args, strict=True):
        after.name_hint = before.name_hint
        context.buffers[before] = after
    context.names = buffer_names(old)
    check_streamed(function, context.names)
    for number, op in enumerate(o for o in function.walk() if isinstance(o, loop.ForOp)):
        context.variables[op.iv] = number
        context.scopes.ranges[number] = (0, op.size - 1)
    for op in old.ops:
        if not isinstance(op, ReturnOp):
            context.copies = 0
            emit(context, op)
    new.add_op(ReturnOp())
    function.detach_region(function.body)
    function.add_region(Region(new))
    function.properties["function_type"] = FunctionType.from_lists([a.type for a in new.args], [])


def buffer_names(body: Block) -> dict[SSAValue, str]:
    """The buffers by the names that attributes use, which are those of `program.read`."""
    names: dict[SSAValue, str] = {}
    for number, value in enumerate(body.args):
        names[value] = fresh(value.name_hint or f"arg{number}", names.values())
    for op in body.walk():
        if isinstance(op, loop.AllocOp):
            names[op.buffer] = fresh(op.label.data, names.values())
    return names


def signless(type: Attribute) -> MemRefType:
    """A memref's type at the low level, where the ops say the sign."""
    assert isinstance(type, MemRefType)
    return MemRefType(scalar_type(type.element_type), type.get_shape())


def emit(context: Context, op: Operation) -> None:
    """Emit an op of the loop level."""
    match op:
        case loop.AllocOp():
            type = signless(op.buffer.type)
            if context.threads is not None:
                emit_on_chip(context, context.threads, op, type)
                return
            if is_fragment(op.buffer):
                type = fragment_type(op.label.data, type)
            if context.lane is not None:  # each lane has its own
                context.private.add(op.buffer)
                type = MemRefType(type.element_type, [*type.get_shape(), context.lanes])
            buffer = context.scopes.add(memref.AllocOp([], [], type))
            buffer.name_hint = op.buffer.name_hint
            context.buffers[op.buffer] = buffer
        case loop.ForOp() | loop.Placed() if context.threads is not None:
            emit_stage(context, context.threads, op, lambda: _emit_guarded(context, op))
        case loop.ForOp() | loop.Placed():
            _emit_guarded(context, op)
        case _:
            raise LoweringError(f"'{op.name}' is not an op of the loop level")


def _emit_guarded(context: Context, op: loop.ForOp | loop.Placed) -> None:
    """Emit a loop or block under the tests that all its blocks share and that are known here."""
    known = [c for c in _shared(context, op) if context.is_known(c.form) and not context.has_lanes(c.form)]
    if any(c.never(context.scopes.ranges) for c in known):
        return
    tests = _tested(context, op, known)
    context.settled.append(set(tests))
    tests = [c for c in tests if not c.always(context.scopes.ranges)]
    if tests:
        with _region(context) as body:
            _emit_plain(context, op)
        context.scopes.run(scf.IfOp(context.all_of(tests), [], Region(_ended(body))))
    else:
        _emit_plain(context, op)
    context.settled.pop()


def _tested(context: Context, op: loop.ForOp | loop.Placed, known: list[Condition]) -> list[Condition]:
    """The conditions to test here: inside the innermost loop all but those that every block is free of."""
    if any(isinstance(o, loop.ForOp) and o.loop_kind in ("serial", "parallel") for o in op.walk()):
        return known
    free = [free_of(context, block, known) for block in op.walk() if isinstance(block, loop.Placed)]
    return [c for c in known if not free or not all(c in each for each in free)]


def _emit_plain(context: Context, op: loop.ForOp | loop.Placed) -> None:
    """Emit a loop or block; a loop's attribute `nontemporal` names a buffer that it writes past the caches."""
    before = context.streamed
    context.streamed = before | streamed(op)
    _emit_kind(context, op)
    context.streamed = before


def _emit_kind(context: Context, op: loop.ForOp | loop.Placed) -> None:
    if isinstance(op, loop.GatherOp):
        emit_gather(context, op, _open(context, op))
    elif isinstance(op, loop.BlockOp):
        emit_block(context, op, _open(context, op))
    elif not isinstance(op, loop.ForOp):
        raise LoweringError(f"'{op.name}' is not an op of the loop level")
    elif context.threads is not None and op.loop_kind in context.threads.ids:
        emit_bound(context, context.threads, op, lambda: _body(context, op))
    elif context.threads is not None and op.loop_kind in ("unrolled", "vthread"):
        _loop(context, op)
    elif op.loop_kind == "unrolled":
        _unroll(context, op)
    elif op.loop_kind == "vectorized":
        _vectorize(context, op)
    elif op.loop_kind == "tensorized":
        emit_tensorized(context, op)
    elif op.loop_kind == "serial":
        _loop(context, op)
    elif op.loop_kind == "parallel":
        _parallel(context, op)
    else:
        raise LoweringError(f"loop '{op.label.data}' is bound to {op.loop_kind}, which this target does not have")


def _unroll(context: Context, op: loop.ForOp) -> None:
    outermost = not context.unrolled
    if outermost:
        context.add_copies(_copies(op), f"loop '{op.label.data}'")
    context.unrolled = True
    variable = context.variables[op.iv]
    for value in range(op.size):
        context.values[variable] = lin.constant(value)
        for inner in op.body.block.ops:
            emit(context, inner)
    del context.values[variable]
    context.unrolled = not outermost


def _copies(op: Operation) -> int:
    """How many statements an op becomes, as far as loops are unrolled."""
    if not isinstance(op, loop.ForOp):
        return int(isinstance(op, loop.Placed))
    inner = sum(map(_copies, op.body.block.ops))
    return inner * op.size if op.loop_kind == "unrolled" else inner


def _vectorize(context: Context, op: loop.ForOp) -> None:
    if context.lane is not None:
        raise LoweringError(f"loop '{op.label.data}' is vectorized inside another vectorized loop")
    if op.size > MOST_LANES:
        raise LoweringError(f"loop '{op.label.data}' is vectorized with {op.size} lanes, of {MOST_LANES} at most")
    context.lane = context.variables[op.iv]
    context.lanes = op.size
    for inner in op.body.block.ops:
        emit(context, inner)
    context.lane = None


def _loop(context: Context, op: loop.ForOp) -> None:
    """A serial loop; one over vectors whose guard holds in all but its last iterations as those, and a masked end."""
    variable, bounds = context.variables[op.iv], _Bounds(op.size)
    whole = op.loop_kind != "serial" or context.threads is not None  # unrolled later, or run alike by all threads
    taken = {c for c in _shared(context, op) if not whole and bounds.take(context, c, variable)}
    context.settled.append(taken)
    opens = [_open(context, block) for block in op.walk() if isinstance(block, loop.Placed)]
    cut = find_cut(context, op, opens) if context.threads is None else None
    if cut is None:
        _rolled(context, op, bounds.lower(context.scopes), bounds.upper(context.scopes))
    else:
        _cut(context, op, bounds, cut)
    context.settled.pop()


def _rolled(context: Context, op: loop.ForOp, lower: SSAValue, upper: SSAValue) -> None:
    """The iterations of a loop between two bounds, as scf.for."""
    scopes, variable = context.scopes, context.variables[op.iv]
    step = scopes.index_constant(1)
    with _region(context) as body:
        iv = body.insert_arg(IndexType(), 0)
        iv.name_hint = op.iv.name_hint
        scopes.bind(variable, iv)
        _body(context, op)
    made = scf.ForOp(lower, upper, step, [], Region(_ended(body)))
    if op.loop_kind in ("unrolled", "vthread"):
        made.attributes["unroll"] = UnitAttr()
    scopes.run(made)
    del scopes.bound[variable]


def _body(context: Context, op: loop.ForOp) -> None:
    emit_prefetches(context, op)
    for inner in op.body.block.ops:
        emit(context, inner)


def _cut(context: Context, op: loop.ForOp, bounds: _Bounds, cut: Cut) -> None:
    """The whole iterations of a loop, then the end: one iteration with a known number, or what is left as a loop.

      for v = 7 { 16 lanes: D if 16*v + lane < 100 }
    ->
      for v = 6 { 16 lanes: D };  16 lanes: D at v = 6 if lane < 4
    """
    scopes, variable = context.scopes, context.variables[op.iv]
    whole, last = bounds.below(cut.whole), bounds.below(cut.ends)
    count, end = whole.count(scopes.ranges), last.count(scopes.ranges)
    start = whole.end(scopes)
    if count != 0:
        context.facts.append(cut.in_whole)
        _rolled(context, op, bounds.lower(scopes), start)
        context.facts.pop()
    context.ending = True
    if count is not None and end == count + 1:
        context.values[variable] = lin.constant(count)
        _body(context, op)
        del context.values[variable]
    elif count is None or end is None or count < end:
        context.facts.append(cut.in_end)
        _rolled(context, op, start, last.upper(scopes))
        context.facts.pop()
    context.ending = False


def _parallel(context: Context, op: loop.ForOp) -> None:
    """A parallel loop as scf.parallel, together with the parallel loops perfectly nested in it.

    Only a single loop's bounds are narrowed by guards: the bounds of several do not depend on each other.
    """
    nest, scopes = _parallel_nest(op), context.scopes
    variables = [context.variables[each.iv] for each in nest]
    bounds = [_Bounds(each.size) for each in nest]
    taken = {c for c in _shared(context, op) if len(nest) == 1 and bounds[0].take(context, c, variables[0])}
    lower, upper = [b.lower(scopes) for b in bounds], [b.upper(scopes) for b in bounds]
    with _region(context) as body:
        for each, variable in zip(nest, variables, strict=True):
            iv = body.insert_arg(IndexType(), len(body.args))
            iv.name_hint = each.iv.name_hint
            scopes.bind(variable, iv)
        context.settled.append(taken)
        for inner in nest[-1].body.block.ops:
            emit(context, inner)
        context.settled.pop()
    body.add_op(scf.ReduceOp())
    scopes.run(scf.ParallelOp(lower, upper, [scopes.index_constant(1)] * len(nest), Region(body)))
    for variable in variables:
        del scopes.bound[variable]


def _parallel_nest(op: loop.ForOp) -> list[loop.ForOp]:
    """A parallel loop and those perfectly nested in it; refused where a parallel loop stands elsewhere inside."""
    nest = [op]
    while True:
        match list(nest[-1].body.block.ops):
            case [loop.ForOp() as only] if only.loop_kind == "parallel":
                nest.append(only)
            case _:
                break
    for inner in nest[-1].body.walk():
        if isinstance(inner, loop.ForOp) and inner.loop_kind == "parallel":
            outer, own = nest[-1].label.data, inner.label.data
            raise LoweringError(
                f"loop '{own}' is parallel inside the parallel loop '{outer}', and not perfectly nested in it"
            )
    return nest


class _Bounds:
    """The bounds of a loop: its extent, narrowed by guards that its variable completes."""

    def __init__(self, extent: int, lows: Sequence[Linear] = (), highs: Sequence[Linear] = ()) -> None:
        self.extent = extent
        self.lows = list(lows)
        self.highs = list(highs)

    def below(self, forms: Sequence[Linear]) -> _Bounds:
        """The bounds of the iterations that are also below the least of some forms."""
        return _Bounds(self.extent, self.lows, [*self.highs, *forms])

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

    def count(self, ranges: lin.Ranges) -> int | None:
        """How many iterations there are, from the first on, where that is always as many."""
        if self._starts_later(ranges):
            return None
        least, most = self._span(ranges)
        return max(least, 0) if max(least, 0) == max(most, 0) else None

    def lower(self, scopes: Scopes) -> SSAValue:
        """Where the iterations start."""
        value = scopes.index_constant(0)
        for form in self.lows:
            if lin.bounds(form, scopes.ranges)[1] > 0:
                value = scopes.add(arith.MaxSIOp(value, scopes.index(form)))
        return value

    def upper(self, scopes: Scopes) -> SSAValue:
        """Where the iterations end; not above `lower` where there are none."""
        least = min([self.extent, *(form.constant for form in self.highs if form.is_constant)])
        value = scopes.index_constant(least)
        for form in self.highs:
            if not form.is_constant and lin.bounds(form, scopes.ranges)[0] < least:
                value = scopes.add(arith.MinSIOp(value, scopes.index(form)))
        return value

    def end(self, scopes: Scopes) -> SSAValue:
        """Where the iterations end; `lower` where there are none."""
        if self.count(scopes.ranges) == 0:
            return self.lower(scopes)
        value = self.upper(scopes)
        if self._starts_later(scopes.ranges) or self._span(scopes.ranges)[0] < 0:
            value = scopes.add(arith.MaxSIOp(value, self.lower(scopes)))
        return value

    def _starts_later(self, ranges: lin.Ranges) -> bool:
        return any(lin.bounds(form, ranges)[1] > 0 for form in self.lows)

    def _span(self, ranges: lin.Ranges) -> lin.Range:
        """The least and the most that `upper` can be."""
        spans = [(self.extent, self.extent), *(lin.bounds(form, ranges) for form in self.highs)]
        return min(low for low, _ in spans), min(high for _, high in spans)


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
    """The conditions of a block's guard that no surrounding test has settled and no fact implies."""
    if block.guard is None:
        return []
    dims = [context.form_of(value) for value in block.loops]
    found = context.conditions(block.guard, dims)
    return [c for c in found if not any(c in settled for settled in context.settled) and not context.is_implied(c)]


@contextmanager
def _region(context: Context) -> Iterator[Block]:
    body = Block()
    context.scopes.stack.append(Scope(body))
    yield body
    context.scopes.stack.pop()


def _ended(body: Block) -> Block:
    body.add_op(scf.YieldOp())
    return body
