"""Loops and their kinds, guards: from a program to the scopes in which blocks are emitted.

A guard is tested as soon as all its variables are known: around the outermost node whose blocks all share it, or as
the bound of the loop whose variable completes it. Only guards over a vectorized variable are left to the blocks. A
loop over vectors is cut where its guard begins to fail: see cuts.py.
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.builtin import DenseArrayBase, MemRefType, UnitAttr, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.analysis.barriers import THREADS
from compiler.dialects.low_loops import number_loops
from compiler.lowering.loop_to_low.blocks import emit_block, free_of
from compiler.lowering.loop_to_low.bounds import Bounds
from compiler.lowering.loop_to_low.context import MOST_LANES, Context
from compiler.lowering.loop_to_low.cuts import Cut, find_cut
from compiler.lowering.loop_to_low.function import allocated, arguments, entry, low_type, prepared
from compiler.lowering.loop_to_low.gathers import emit_gather
from compiler.lowering.loop_to_low.literals import Globals, declare, symbols
from compiler.lowering.loop_to_low.prefetches import emit_prefetches
from compiler.lowering.loop_to_low.scopes import INDEX, Scope, Scopes
from compiler.lowering.loop_to_low.streams import check_streamed, streamed
from compiler.lowering.loop_to_low.tensor import emit_tensorized, fragment_type
from compiler.lowering.loop_to_low.threads import emit_bound, emit_on_chip, emit_stage
from compiler.lowering.loop_to_low.widened import widened
from compiler.program.tree import Alloc, Buffer, Loop, Node, blocks_in, loops_in, walk
from compiler.program.tree import Block as Computed
from compiler.program.write import hint, replace_body
from compiler.support.errors import LoweringError
from compiler.types.elements import is_unsigned
from compiler.types.policies import Policy


def lower_function(function: FuncOp, policy: Policy) -> None:
    """Replace the body of a loop function by its low form."""
    program = widened(prepared(function))
    check_streamed(program)
    unsigned = [n for n, buffer in enumerate(program.arguments) if is_unsigned(buffer.element)]
    if unsigned:
        function.attributes["unsigned"] = DenseArrayBase.from_list(i64, unsigned)
    body = entry(program.arguments)
    scopes = Scopes([Scope(body)], ranges=dict(program.ranges))
    context = Context(program, scopes, policy, arguments(program.arguments, body))
    constants = Globals(program.name, symbols(function))
    context.add_constants(constants.get(program.literals, scopes))
    for node in program.body:
        context.copies = 0
        emit(context, node)
    body.add_op(ReturnOp())
    replace_body(function, Region(body))
    declare(constants, function)


def emit(context: Context, node: Node) -> None:
    """Emit a node of a program; the ops have the location of its first block."""
    first = next((inner for inner in walk((node,)) if isinstance(inner, Computed)), None)
    with context.scopes.at(context.scopes.location if first is None else first.location):
        if isinstance(node, Alloc):
            _alloc(context, node.buffer)
        elif context.threads is not None:
            emit_stage(context, context.threads, node, lambda: _emit_guarded(context, node))
        else:
            _emit_guarded(context, node)


def _alloc(context: Context, buffer: Buffer) -> None:
    if context.threads is not None:
        emit_on_chip(context, context.threads, buffer)
        return
    type = low_type(buffer)
    if buffer.scope == "fragment":
        type = fragment_type(buffer.name, type)
    if context.lane is not None:  # each lane has its own
        context.private.add(buffer.name)
        type = MemRefType(type.element_type, [*type.get_shape(), context.lanes])
    context.buffers[buffer.name] = context.scopes.add(allocated(buffer, type))


def _emit_guarded(context: Context, node: Loop | Computed) -> None:
    """Emit a loop or block under the tests that all its blocks share and that are known here."""
    testable = [c for c in context.shared(node) if context.is_known(c.form) and not context.has_lanes(c.form)]
    if any(c.never(context.scopes.ranges) for c in testable):
        return
    tests = _tested(context, node, testable)
    context.settled.append(set(tests))
    tests = [c for c in tests if not c.always(context.scopes.ranges)]
    if tests:
        with context.scopes.region() as body:
            _emit_plain(context, node)
        context.scopes.run(scf.IfOp(context.all_of(tests), [], Region(_ended(body))))
    else:
        _emit_plain(context, node)
    context.settled.pop()


def _tested(context: Context, node: Loop | Computed, testable: list[Condition]) -> list[Condition]:
    """The conditions to test here: inside the innermost loop, all but the conditions that every block is free of."""
    if not testable or any(loop.kind in ("serial", "parallel") for loop in loops_in(node)):
        return testable
    free = [free_of(context, block, testable) for block in blocks_in(node)]
    return [c for c in testable if not free or not all(c in each for each in free)]


def _emit_plain(context: Context, node: Loop | Computed) -> None:
    if isinstance(node, Loop):
        before = context.streamed
        context.streamed = before | streamed(node)
        _emit_loop(context, node)
        context.streamed = before
    elif node.table is not None:
        emit_gather(context, node, context.open(node))
    else:
        emit_block(context, node, context.open(node))


def _emit_loop(context: Context, loop: Loop) -> None:
    if context.threads is not None and loop.kind in context.threads.ids:
        emit_bound(context, context.threads, loop, lambda: _body(context, loop))
    elif context.threads is not None and loop.kind in ("unrolled", "vthread") and not _indexes_constants(context, loop):
        _loop(context, loop)
    elif loop.kind in _KINDS:
        _KINDS[loop.kind](context, loop)
    else:
        raise LoweringError(f"loop '{loop.label}' is bound to {loop.kind}, which this target does not have")


def _indexes_constants(context: Context, loop: Loop) -> bool:
    """Whether a kernel's unrolled loop is to be written out here: its variable is part of an index into a constant."""
    if loop.kind != "unrolled" or any(inner.kind in THREADS for inner in loops_in(loop)):
        return False
    stated = context.program.stated
    reads = [(b, access) for b in blocks_in(loop) for access in b.reads if access.buffer in stated]
    return any(loop.number in form.variables() for b, a in reads for form in context.over(context.axes(b), a.index))


def _unroll(context: Context, loop: Loop) -> None:
    outermost = not context.unrolled
    if outermost:
        context.add_copies(_copies(loop), f"loop '{loop.label}'")
    context.unrolled = True
    for value in range(loop.extent):
        context.values[loop.number] = lin.constant(value)
        _inside(context, loop)
    del context.values[loop.number]
    context.unrolled = not outermost


def _copies(node: Node) -> int:
    """How many statements a node becomes, as far as loops are unrolled."""
    if not isinstance(node, Loop):
        return int(isinstance(node, Computed))
    inner = sum(map(_copies, node.body))
    return inner * node.extent if node.kind == "unrolled" else inner


def _vectorize(context: Context, loop: Loop) -> None:
    if context.lane is not None:
        raise LoweringError(f"loop '{loop.label}' is vectorized inside another vectorized loop")
    if loop.extent > MOST_LANES:
        raise LoweringError(f"loop '{loop.label}' is vectorized with {loop.extent} lanes, of {MOST_LANES} at most")
    context.lane, context.lanes = loop.number, loop.extent
    _inside(context, loop)
    context.lane = None


def _loop(context: Context, loop: Loop) -> None:
    """A serial loop; one over vectors whose guard holds in all but its last iterations as those, and a masked end."""
    bounds = Bounds(loop.extent)
    stays_whole = loop.kind != "serial" or context.threads is not None  # unrolled later, or run alike by all threads
    taken = {c for c in context.shared(loop) if not stays_whole and bounds.take(context, c, loop.number)}
    context.settled.append(taken)
    opens = [context.open(block) for block in blocks_in(loop)]
    cut = find_cut(context, loop, opens) if context.threads is None else None
    if cut is None:
        _rolled(context, loop, bounds.lower(context.scopes), bounds.upper(context.scopes))
    else:
        _cut(context, loop, bounds, cut)
    context.settled.pop()


def _rolled(context: Context, loop: Loop, lower: SSAValue, upper: SSAValue) -> None:
    """The iterations of a loop between two bounds, as scf.for."""
    scopes = context.scopes
    step = scopes.index_constant(1)
    with context.scopes.region() as body:
        _bind(context, loop, body)
        _body(context, loop)
    made = scf.ForOp(lower, upper, step, [], Region(_ended(body)))
    if loop.kind in ("unrolled", "vthread"):
        made.attributes["unroll"] = UnitAttr()
    number_loops(made, [loop.number])
    scopes.run(made)
    del scopes.bound[loop.number]


def _bind(context: Context, loop: Loop, body: Block) -> None:
    """Bind a loop's variable to a new argument of the body under construction."""
    value = body.insert_arg(INDEX, len(body.args))
    value.name_hint = hint(loop.label)
    context.scopes.bind(loop.number, value)


def _body(context: Context, loop: Loop) -> None:
    emit_prefetches(context, loop)
    _inside(context, loop)


def _inside(context: Context, loop: Loop) -> None:
    for node in loop.body:
        emit(context, node)


def _cut(context: Context, loop: Loop, bounds: Bounds, cut: Cut) -> None:
    """The whole iterations of a loop, then the end: one iteration with a known number, or a loop over the remainder.

      for v = 7 { 16 lanes: D if 16*v + lane < 100 }
    ->
      for v = 6 { 16 lanes: D };  16 lanes: D at v = 6 if lane < 4
    """
    scopes = context.scopes
    whole_part, last = bounds.below(cut.whole), bounds.below(cut.ends)
    count, end = whole_part.count(scopes.ranges), last.count(scopes.ranges)
    start = whole_part.end(scopes)
    if count != 0:
        context.facts.append(cut.in_whole)
        _rolled(context, loop, bounds.lower(scopes), start)
        context.facts.pop()
    context.ending = True
    if count is not None and end == count + 1:
        context.values[loop.number] = lin.constant(count)
        _body(context, loop)
        del context.values[loop.number]
    elif count is None or end is None or count < end:
        context.facts.append(cut.in_end)
        _rolled(context, loop, start, last.upper(scopes))
        context.facts.pop()
    context.ending = False


def _parallel(context: Context, loop: Loop) -> None:
    """A parallel loop as scf.parallel, together with the parallel loops perfectly nested in it.

    Only a single loop's bounds are narrowed by guards: the bounds of several do not depend on each other.
    """
    nest, scopes = _parallel_nest(loop), context.scopes
    bounds = [Bounds(each.extent) for each in nest]
    taken = {c for c in context.shared(loop) if len(nest) == 1 and bounds[0].take(context, c, loop.number)}
    lower, upper = [b.lower(scopes) for b in bounds], [b.upper(scopes) for b in bounds]
    with context.scopes.region() as body:
        for each in nest:
            _bind(context, each, body)
        context.settled.append(taken)
        _inside(context, nest[-1])
        context.settled.pop()
    body.add_op(scf.ReduceOp())
    made = scf.ParallelOp(lower, upper, [scopes.index_constant(1)] * len(nest), Region(body))
    number_loops(made, [each.number for each in nest])
    scopes.run(made)
    for each in nest:
        del scopes.bound[each.number]


def _parallel_nest(loop: Loop) -> list[Loop]:
    """A parallel loop and those perfectly nested in it; refused where a parallel loop stands elsewhere inside."""
    nest = [loop]
    while True:
        match nest[-1].body:
            case (Loop(kind="parallel") as only,):
                nest.append(only)
            case _:
                break
    for inner in loops_in(*nest[-1].body):
        if inner.kind == "parallel":
            raise LoweringError(
                f"loop '{inner.label}' is parallel inside the parallel loop '{nest[-1].label}', and not perfectly "
                "nested in it"
            )
    return nest


_KINDS = {
    "serial": _loop,
    "parallel": _parallel,
    "unrolled": _unroll,
    "vectorized": _vectorize,
    "tensorized": emit_tensorized,
}


def _ended(body: Block) -> Block:
    body.add_op(scf.YieldOp.create())
    return body
