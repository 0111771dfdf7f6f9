"""Loops by their kinds, and guards.

A guard is tested as soon as all its variables are bound: around the outermost node whose blocks all share it, or as
the bound of the loop that binds its last variable. Guards over a vectorized variable become masks. A loop over vectors
is cut at the first iteration whose guard fails in a lane: see cuts.py.
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, MemRefType, UnitAttr, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.analysis.barriers import AHEAD, orders_first
from compiler.analysis.stages import BLOCKS, THREADS, UNIFORM, is_stage
from compiler.dialects.low_loops import number_loops
from compiler.lowering.loop_to_low.blocks import deferred_conditions, emit_block
from compiler.lowering.loop_to_low.bounds import Bounds
from compiler.lowering.loop_to_low.context import MAX_LANES, Context
from compiler.lowering.loop_to_low.cuts import Cut, find_cut
from compiler.lowering.loop_to_low.function import allocation, arguments_by_name, entry_block, low_type, prepare_program
from compiler.lowering.loop_to_low.gathers import emit_gather
from compiler.lowering.loop_to_low.literals import ConstantGlobals, declare_constants, module_symbols
from compiler.lowering.loop_to_low.prefetches import emit_prefetches
from compiler.lowering.loop_to_low.scopes import INDEX, InsertionScope, Scopes
from compiler.lowering.loop_to_low.streams import check_streamed, streamed_buffers
from compiler.lowering.loop_to_low.tensor import emit_tensorized, fragment_type
from compiler.lowering.loop_to_low.threads import emit_arrival, emit_bound, emit_on_chip, emit_stage
from compiler.lowering.loop_to_low.versions import conditions_for_all
from compiler.lowering.loop_to_low.widened import enlarge_temporaries
from compiler.program.tree import Alloc, Buffer, Loop, Node, blocks_in, key_of, loops_in
from compiler.program.tree import Block as Computed
from compiler.program.write import hint, replace_body
from compiler.support.errors import LoweringError
from compiler.support.origins import fused
from compiler.types.elements import is_unsigned
from compiler.types.policies import Policy


def lower_function(function: FuncOp, policy: Policy) -> None:
    """Replace the body of a loop function by low-level ops, with the fast-math flags of `policy`; its constants become
    globals of the module, and the attribute `unsigned` lists the positions of its unsigned arguments. Raises
    LoweringError for a program that has no low form."""
    program = enlarge_temporaries(prepare_program(function))
    check_streamed(program)
    unsigned = [n for n, buffer in enumerate(program.arguments) if is_unsigned(buffer.element)]
    if unsigned:
        function.attributes["unsigned"] = DenseArrayBase.from_list(i64, unsigned)
    body = entry_block(program.arguments)
    scopes = Scopes([InsertionScope(body)], ranges=dict(program.ranges))
    context = Context(program, scopes, policy, arguments_by_name(program.arguments, body))
    scopes.location = fused(block.location for block in blocks_in(*program.body))
    constants = ConstantGlobals(program.name, module_symbols(function))
    context.add_constants(constants.get(program.literals, scopes))
    for node in program.body:
        context.statement_count = 0
        emit(context, node)
    body.add_op(end := ReturnOp())
    end.location = scopes.location
    replace_body(function, Region(body))
    declare_constants(constants, function)


def emit(context: Context, node: Node) -> None:
    """Emit a node of a program; its ops have the locations of its blocks, or that of the node around it. Raises
    LoweringError for a node that has no low form."""
    with context.scopes.at(context.location(node)):
        if isinstance(node, Alloc):
            _alloc(context, node.buffer)
        elif context.threads is not None:
            versions = not context.threads.in_stage and is_stage(node)
            emit_stage(
                context, context.threads, node, lambda: (_emit_versions if versions else _emit_guarded)(context, node)
            )
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
    context.buffers[buffer.name] = context.scopes.add(allocation(buffer, type))


def _emit_guarded(context: Context, node: Loop | Computed) -> None:
    """Emit a loop or block, in an scf.if on the conditions that all its blocks share and whose variables are bound;
    emit nothing if one always fails."""
    testable = [c for c in context.shared_untested(node) if context.is_bound(c.form) and not context.has_lanes(c.form)]
    if any(c.never(context.scopes.ranges) for c in testable):
        return
    tests = _conditions_to_test(context, node, testable)
    context.tested.append(set(tests))
    tests = [c for c in tests if not c.always(context.scopes.ranges)]
    if tests:
        with context.scopes.region() as body:
            _emit_plain(context, node)
        context.scopes.run(scf.IfOp(context.all_of(tests), [], Region(_with_yield(body))))
    else:
        _emit_plain(context, node)
    context.tested.pop()


def _emit_versions(context: Context, stage: Loop | Computed) -> None:
    """Emit a stage of a kernel, twice if an iteration of the loops around it may not need its selections: under the
    conditions that decide it without them, else with them."""
    conditions = conditions_for_all(context, stage)
    if not conditions:
        _emit_guarded(context, stage)
        return
    truth = context.all_of(conditions)
    context.facts.append(conditions)
    with context.scopes.region() as without_selections:
        _emit_guarded(context, stage)
    context.facts.pop()
    with context.scopes.region() as body:
        _emit_guarded(context, stage)
    context.scopes.run(scf.IfOp(truth, [], Region(_with_yield(without_selections)), Region(_with_yield(body))))


def _conditions_to_test(context: Context, node: Loop | Computed, testable: list[Condition]) -> list[Condition]:
    """Return the conditions to test around a node: all if a serial or parallel loop is in the node, else without those
    that all its blocks defer."""
    if not testable or any(loop.kind in ("serial", "parallel") for loop in loops_in(node)):
        return testable
    deferred = [deferred_conditions(context, block, testable) for block in blocks_in(node)]
    return [c for c in testable if not deferred or not all(c in conditions for conditions in deferred)]


def _emit_plain(context: Context, node: Loop | Computed) -> None:
    if isinstance(node, Loop):
        streamed_before = context.streamed
        context.streamed = streamed_before | streamed_buffers(node)
        _emit_loop(context, node)
        context.streamed = streamed_before
    elif node.table is not None:
        emit_gather(context, node, context.untested(node))
    else:
        emit_block(context, node, context.untested(node))


def _emit_loop(context: Context, loop: Loop) -> None:
    if context.threads is not None and loop.kind in context.threads.ids:
        emit_bound(context, context.threads, loop, lambda: _emit_iteration(context, loop))
    elif context.threads is not None and loop.kind in ("unrolled", "vthread") and not _must_unroll(context, loop):
        _emit_serial(context, loop)
    elif loop.kind in _EMITTERS:
        _EMITTERS[loop.kind](context, loop)
    else:
        raise LoweringError(f"loop '{loop.label}' is bound to {loop.kind}, which this target does not have")


def _must_unroll(context: Context, loop: Loop) -> bool:
    """Return whether a kernel's unrolled loop is unrolled here, not by the GPU's compiler: its variable indexes a
    constant, and no thread loop is in it."""
    if loop.kind != "unrolled" or any(inner.kind in THREADS for inner in loops_in(loop)):
        return False
    constants = context.program.stated
    reads = [(b, access) for b in blocks_in(loop) for access in b.reads if access.buffer in constants]
    return any(
        loop.number in form.variables() for b, a in reads for form in context.substitute_axes(context.axes(b), a.index)
    )


def _emit_unrolled(context: Context, loop: Loop) -> None:
    outermost = not context.unrolled
    if outermost:
        context.count_statements(_statement_count(loop), f"loop '{loop.label}'")
    context.unrolled = True
    for value in range(loop.extent):
        context.values[loop.number] = lin.constant(value)
        _emit_body(context, loop)
    del context.values[loop.number]
    context.unrolled = not outermost


def _statement_count(node: Node) -> int:
    """Return the number of statements of a node after its loops of kind unrolled are unrolled: a block or gather in a
    loop of any other kind counts once, an allocation not at all."""
    if not isinstance(node, Loop):
        return int(isinstance(node, Computed))
    inner = sum(map(_statement_count, node.body))
    return inner * node.extent if node.kind == "unrolled" else inner


def _emit_vectorized(context: Context, loop: Loop) -> None:
    if context.lane is not None:
        raise LoweringError(f"loop '{loop.label}' is vectorized inside another vectorized loop")
    if loop.extent > MAX_LANES:
        raise LoweringError(f"loop '{loop.label}' is vectorized with {loop.extent} lanes, of {MAX_LANES} at most")
    context.lane, context.lanes = loop.number, loop.extent
    _emit_body(context, loop)
    context.lane = None


def _emit_serial(context: Context, loop: Loop) -> None:
    """Emit a loop as scf.for. A serial loop has the bounds that guards narrow, in a kernel guards over blocks of
    threads; on a CPU a loop over vectors with a guard is cut into its full iterations and a masked end; a kernel's loop
    that fetches ahead is emitted in rounds. A kernel's unrolled or vthread loop comes here too, and is only marked for
    the GPU's compiler."""
    bounds = Bounds(loop.extent)
    narrowing = {
        c
        for c in context.shared_untested(loop)
        if _may_narrow(context, loop, c) and bounds.narrow(context, c, loop.number)
    }
    context.tested.append(narrowing)
    untested = [context.untested(block) for block in blocks_in(loop)]
    cut = find_cut(context, loop, untested) if context.threads is None else None
    buffers = dict(loop.attributes).get(AHEAD)
    if context.threads is not None and isinstance(buffers, IntegerAttr):
        _emit_rounds(context, loop, buffers.value.data)
    elif cut is None:
        _emit_for(context, loop, bounds.lower(context.scopes), bounds.upper(context.scopes))
    else:
        _emit_cut(context, loop, bounds, cut)
    context.tested.pop()


def _may_narrow(context: Context, loop: Loop, condition: Condition) -> bool:
    """Return whether a condition may become a bound of a loop: only of a serial one without the attribute AHEAD; on a
    CPU any; in a kernel one that depends on blocks of threads, and is the same for all threads of a block, since
    barriers may stand in the loop."""
    if loop.kind != "serial" or AHEAD in dict(loop.attributes):
        return False
    loops = context.program.loops
    kinds = {loops[number].kind for number in condition.form.variables() - {loop.number} if number in loops}
    return context.threads is None or (kinds <= {*UNIFORM} and not kinds.isdisjoint(BLOCKS))


def _emit_rounds(context: Context, loop: Loop, buffers: int) -> None:
    """Emit a loop that fetches operands ahead, into one of `buffers` buffers an iteration, as two loops: the first
    iterations, `buffers` - 1 at most, which only fetch, then the remaining ones, at least one, unrolled by `buffers`,
    so that the buffer of an iteration is a constant. The first iterations have no barrier where it orders nothing
    there."""
    scopes, (first, last) = context.scopes, context.scopes.ranges[loop.number]
    start = min(buffers - 1, loop.extent - 1)
    threads, kernel = context.threads, [*context.program.enclosing(loop.number), loop][0]
    assert threads is not None
    needed = orders_first(context.program, kernel, loop, start, threads.barriers)
    for lower, upper in ((0, start), (start, loop.extent)):
        threads.unordered = () if needed or upper > start else frozenset({key_of(node) for node in loop.body})
        scopes.ranges[loop.number] = (lower, upper - 1)
        by = IntegerAttr(buffers, i64) if lower else None
        _emit_for(context, loop, scopes.index_constant(lower), scopes.index_constant(upper), by)
    scopes.ranges[loop.number] = (first, last)


def _emit_for(
    context: Context, loop: Loop, lower: SSAValue, upper: SSAValue, unrolled_by: IntegerAttr | None = None
) -> None:
    scopes = context.scopes
    step = scopes.index_constant(1)
    with context.scopes.region() as body:
        _bind(context, loop, body)
        _emit_iteration(context, loop)
    for_op = scf.ForOp(lower, upper, step, [], Region(_with_yield(body)))
    if loop.kind in ("unrolled", "vthread"):
        for_op.attributes["unroll"] = UnitAttr()
    elif unrolled_by is not None:
        for_op.attributes["unroll_by"] = unrolled_by
    number_loops(for_op, [loop.number])
    scopes.run(for_op)
    del scopes.bound[loop.number]


def _bind(context: Context, loop: Loop, body: Block) -> None:
    value = body.insert_arg(INDEX, len(body.args))
    value.name_hint = hint(loop.label)
    context.scopes.bind(loop.number, value)


def _emit_iteration(context: Context, loop: Loop) -> None:
    emit_prefetches(context, loop)
    _emit_body(context, loop)


def _emit_body(context: Context, loop: Loop) -> None:
    arrival = None if context.threads is None else context.threads.arrival
    if arrival is None or arrival.around.number != loop.number:
        for node in loop.body:
            emit(context, node)
        return
    rest = {key_of(node) for node in arrival.rest}
    for node in loop.body:
        if isinstance(node, Alloc) or key_of(node) not in rest:
            emit(context, node)
    is_last = emit_arrival(context, arrival)
    with context.scopes.region() as body:
        for node in arrival.rest:
            emit(context, node)
    context.scopes.run(scf.IfOp(is_last, [], Region(_with_yield(body))))


def _emit_cut(context: Context, loop: Loop, bounds: Bounds, cut: Cut) -> None:
    """Emit the full iterations of a loop, then its end: one iteration with a constant number, or a loop.

      for v = 7 { 16 lanes: D if 16*v + lane < 100 }
    ->
      for v = 6 { 16 lanes: D };  16 lanes: D at v = 6 if lane < 4

    A part whose count is known to be zero is not emitted.
    """
    scopes = context.scopes
    full_bounds, end_bounds = bounds.with_highs(cut.full), bounds.with_highs(cut.ends)
    full_count, end_count = full_bounds.count(scopes.ranges), end_bounds.count(scopes.ranges)
    end_start = full_bounds.end(scopes)
    if full_count != 0:
        context.facts.append(cut.in_full)
        _emit_for(context, loop, bounds.lower(scopes), end_start)
        context.facts.pop()
    context.in_masked_end = True
    if full_count is not None and end_count == full_count + 1:
        context.values[loop.number] = lin.constant(full_count)
        _emit_iteration(context, loop)
        del context.values[loop.number]
    elif full_count is None or end_count is None or full_count < end_count:
        context.facts.append(cut.in_end)
        _emit_for(context, loop, end_start, end_bounds.upper(scopes))
        context.facts.pop()
    context.in_masked_end = False


def _emit_parallel(context: Context, loop: Loop) -> None:
    """Emit a parallel loop, with the parallel loops perfectly nested in it, as scf.parallel. Guards narrow the bounds
    of a single loop only: the bounds of several must not depend on each other. Raises LoweringError for parallel loops
    inside that are not perfectly nested in it, and for a node inside that has no low form."""
    nest, scopes = _parallel_nest(loop), context.scopes
    bounds = [Bounds(member.extent) for member in nest]
    narrowing = {
        c for c in context.shared_untested(loop) if len(nest) == 1 and bounds[0].narrow(context, c, loop.number)
    }
    lower, upper = [b.lower(scopes) for b in bounds], [b.upper(scopes) for b in bounds]
    with context.scopes.region() as body:
        for member in nest:
            _bind(context, member, body)
        context.tested.append(narrowing)
        _emit_body(context, nest[-1])
        context.tested.pop()
    body.add_op(scf.ReduceOp())
    parallel_op = scf.ParallelOp(lower, upper, [scopes.index_constant(1)] * len(nest), Region(body))
    number_loops(parallel_op, [member.number for member in nest])
    scopes.run(parallel_op)
    for member in nest:
        del scopes.bound[member.number]


def _parallel_nest(loop: Loop) -> list[Loop]:
    """Return a parallel loop and those perfectly nested in it. Raises LoweringError for other parallel loops inside."""
    nest = [loop]
    while True:
        match nest[-1].body:
            case (Loop(kind="parallel") as inner,):
                nest.append(inner)
            case _:
                break
    for inner in loops_in(*nest[-1].body):
        if inner.kind == "parallel":
            raise LoweringError(
                f"loop '{inner.label}' is parallel inside the parallel loop '{nest[-1].label}', and not perfectly "
                "nested in it"
            )
    return nest


_EMITTERS = {
    "serial": _emit_serial,
    "parallel": _emit_parallel,
    "unrolled": _emit_unrolled,
    "vectorized": _emit_vectorized,
    "tensorized": emit_tensorized,
}


def _with_yield(body: Block) -> Block:
    body.add_op(scf.YieldOp.create())
    return body
