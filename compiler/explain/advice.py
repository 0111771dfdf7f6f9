"""Which primitive would change the time of a group: derived from its busiest machine loop and its bound."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp

from compiler.affine import linear as lin
from compiler.driver.choice.preferred import PAYS, scheduled_seconds
from compiler.driver.parts.groups import Group
from compiler.driver.reference.cases import draw
from compiler.driver.units.unit import Scheduled
from compiler.explain.builds import builds
from compiler.explain.code import LoopCode
from compiler.explain.explanation import Explanation, explain
from compiler.explain.nests import preorder
from compiler.explain.sources import SourceTable, SourceTime, TimedCall
from compiler.graph.main import BufferCall, size
from compiler.graph.user_names import program_with_user_names
from compiler.pipeline.source import parse
from compiler.program.tree import Block, Loop, Program, blocks_in
from compiler.program.write import write
from compiler.schedule import Schedule
from compiler.support.origins import SourceOrigin, fused, origins
from compiler.support.text import counted, duration
from compiler.targets.arguments import Array
from compiler.targets.cpu import Kernel
from compiler.types.machines import host

NEAR = 1.25
"""The factor over the bound up to which a group counts as at its bound."""
MOSTLY, LEAST = 0.8, 0.1
"""The share of the cycles from which the busiest loop explains a group, and the least share that is listed."""
PEAK = 70
"""The percentage of peak operations from which the arithmetic of a machine loop is good."""
WAITS = 1.5
"""The factor over the time of the machine loops with all data in L1 from which a group waits for memory."""


@dataclass(frozen=True)
class Advice:
    """A primitive that would change the time of a group, and the figures from which that follows.

    primitive: its name, or several, perhaps with a remark in parentheses; `nothing` if the group is at its bound or
    limited by divisions, `unknown` if no cause is found or the group runs under a guard.
    """

    primitive: str
    reason: str


@dataclass(frozen=True)
class GroupCode:
    """A group's scheduled loops under the user's names, and its machine code. busiest: the machine loop with the most
    estimated cycles, None without one. cycles: by the blocks of a loop, joined by commas, the estimated cycles of their
    machine loops in a call with all data in L1, most first; without blocks that run once. origins: likewise of the
    parts of the model that the blocks compute, at the group's first call."""

    group: Group
    program: Program
    explanation: Explanation
    busiest: LoopCode | None
    cycles: Mapping[str, float]
    origins: Mapping[tuple[SourceOrigin, ...], float]

    @property
    def total(self) -> float:
        """The estimated cycles of a call."""
        return sum(self.cycles.values())


def scheduled_program(group: Group, scheduled: Scheduled | None) -> Program:
    """The loops of a group under its schedule, as written without one, with the user's names."""
    tree = group.tree
    if scheduled is not None and scheduled.script is not None:
        tree = scheduled.tree or Schedule(tree).apply(parse(scheduled.script, "the script")).program
        tree = replace(tree, constants=group.tree.constants)
    return program_with_user_names(replace(tree, name=group.name), group.names, {})


def prepared_blocks(program: Program) -> frozenset[str]:
    """The labels of the blocks that read constants, or what only such blocks write, and nothing else. They run once,
    before the first call."""
    known = {*program.constants, *(literal.buffer.name for literal in program.literals)}
    prepared = []
    for block in blocks_in(*program.body):
        writers = [b for name in block.targets for b in program.writers[name]]
        if block.reads and known.issuperset(block.sources) and all(known.issuperset(b.sources) for b in writers):
            prepared.append(block.label)
            known.update(block.targets)
    return frozenset(prepared)


def group_code(table: SourceTable, name: str, calls: int = 3) -> GroupCode:
    """Build a group of a table alone with marks, time `calls` calls on random inputs on one thread, and find its
    busiest machine loop. Raises InputError for an unknown group, and the errors of `builds`."""
    group = table.group(name)
    program = scheduled_program(group, table.scheduled.get(name))
    built = builds(ModuleOp([write(replace(program, constants=(), values=()))]), table.policy, threads=table.threads)
    explanation, prepared = explain(built, _draw, calls), prepared_blocks(program)
    codes = [code for code in explanation.codes if code.path and not prepared.issuperset(_stems(code.path[-1].blocks))]
    cycles: dict[str, float] = {}
    by_origin: dict[tuple[SourceOrigin, ...], float] = {}
    for code in sorted(codes, key=_cycles, reverse=True):
        blocks = code.path[-1].blocks
        locations = (program.blocks[label].location for label in _stems(blocks) if label in program.blocks)
        parts, label = origins(fused(locations)), ", ".join(blocks)
        cycles[label] = cycles.get(label, 0.0) + _cycles(code)
        by_origin[parts] = by_origin.get(parts, 0.0) + _cycles(code)
    return GroupCode(group, program, explanation, max(codes, key=_cycles, default=None), cycles, by_origin)


def _stems(labels: Sequence[str]) -> list[str]:
    """The labels without the suffix of a decomposed init."""
    return [label.removesuffix(".init") for label in labels]


def _draw(kernel: Kernel) -> list[Array]:
    import numpy as np

    random = np.random.default_rng(0)
    inputs = kernel.arguments[: len(kernel.arguments) - kernel.outputs]
    return [draw(argument, random) for argument in inputs]


def _cycles(code: LoopCode) -> float:
    """The estimated cycles that all iterations of a machine loop take in a call: from the operations of its source loop
    and of an iteration, else from the trip counts around it."""
    if not code.path:
        return 0.0
    nest = code.path[-1]
    inside = {unrolled.number for unrolled in code.unrolled}
    trips = 1.0
    for outer in (*code.path, *(n for n in preorder(nest.inner) if n.number in inside)):
        trips *= outer.trips or 1
    iterations = nest.flops / code.census.flops if nest.flops and code.census.flops else trips
    return iterations * code.estimate.cycles


@dataclass(frozen=True)
class Answer:
    """The advice for the time of a row of the table, the most promising first. parts: the shares of the estimated
    cycles of that call by the parts of the model that its loops compute; empty if the group was not built."""

    advice: tuple[Advice, ...]
    parts: tuple[tuple[tuple[SourceOrigin, ...], float], ...] = ()


def answer(table: SourceTable, row: SourceTime, calls: int = 3) -> Answer:
    """Return the primitives that would change the time of a row: of the call with most to win, whose group is built
    alone and timed for `calls` calls unless it is at its bound or runs under a guard."""
    call = row.slowest
    if call.factor is not None and call.bound is not None and call.factor <= NEAR:
        return Answer(tuple(_at_bound(table, call, call.bound.resource, call.factor)))
    if call.group not in {group.name for group in table.program.groups}:
        return Answer((Advice("unknown", f"{call.group} runs under a guard"),))
    code = group_code(table, call.group, calls)
    waiting = list(_waiting(table, call, code))
    in_registers = [] if waiting else [*_registers(code), *_elsewhere(code)]
    derived = [*_as_written(table, code), *_parallelism(table, code), *_vectors(code), *in_registers, *waiting]
    return Answer(tuple(derived) or (Advice("unknown", _figures(code)),), tuple(_shares(table, row, code)))


def _shares(table: SourceTable, row: SourceTime, code: GroupCode) -> Iterator[tuple[tuple[SourceOrigin, ...], float]]:
    """Yield the parts of the model at the slowest call of a row, with the shares of the group's cycles. The locations
    in a group are those of its first call: parts of other calls correspond by position."""
    first = next(call for call in table.calls if call.group == row.slowest.group).origins
    here = row.slowest.origins
    names = dict(zip(first, here, strict=True)) if len(first) == len(here) else {}
    for parts, cycles in code.origins.items():
        yield tuple(names.get(part, part) for part in parts), cycles / code.total if code.total else 0.0


def _figures(code: GroupCode) -> str:
    loop = code.busiest
    if loop is None:
        return "it has no innermost machine loop: its loops are unrolled, and a call is short"
    peak = "" if loop.percent is None else f", {loop.percent:.0f}% of peak operations with all data in L1"
    return f"its busiest machine loop takes {loop.estimate.cycles:.1f} cycles, limited by {loop.estimate.limit}{peak}"


def _at_bound(table: SourceTable, call: TimedCall, resource: str, factor: float) -> Iterator[Advice]:
    """The advice for a call at its bound: with the neighbour that shares most bytes, if memory is the bound."""
    at = "below its bound, since operands are in caches" if factor < 1 else f"at {factor:.2f} times its bound"
    neighbour = _neighbour(table, call) if resource == "memory" else None
    if neighbour is None:
        yield Advice("nothing", f"it is {at}; up to {NEAR} times counts as at the bound")
        return
    yield Advice(
        "fuse",
        f"it is {at}, which is memory: no schedule of its own helps; in one group with {neighbour.name} "
        f"{neighbour.bytes / 1e6:.3g} MB would not be written and read",
    )


@dataclass(frozen=True)
class _Neighbour:
    name: str
    bytes: int


def _neighbour(table: SourceTable, timed: TimedCall) -> _Neighbour | None:
    """The call that passes most bytes to or from a call; None without temporaries between calls."""
    main = table.program.constant_split.main
    calls, temporaries = main.calls, {buffer.name for buffer in main.temporaries}
    call = next(call for call, other in zip(calls, table.calls, strict=True) if other is timed)
    shared: dict[int, int] = {}
    for n, other in enumerate(calls):
        passed = (set(other.outputs) & set(call.inputs)) | (set(other.inputs) & set(call.outputs))
        if other is not call and passed & temporaries:
            shared[n] = sum(size(main.buffers[name]) for name in passed & temporaries)
    if not shared:
        return None
    best = max(shared, key=lambda n: shared[n])
    return _Neighbour(_name(calls[best]), shared[best])


def _name(call: BufferCall) -> str:
    return f"{call.callee}, {next(map(str, origins(call.location)), 'unknown')}"


def _as_written(table: SourceTable, code: GroupCode) -> Iterator[Advice]:
    scheduled = table.scheduled.get(code.group.name)
    if scheduled is None or scheduled.script is None:
        verdict = "" if scheduled is None or not scheduled.verdict else f": {scheduled.verdict}"
        yield Advice("a schedule", f"its loops run as written{verdict}")


def _parallelism(table: SourceTable, code: GroupCode) -> Iterator[Advice]:
    parallel = [loop for loop in code.program.loops.values() if loop.kind == "parallel"]
    seconds = scheduled_seconds(code.program)
    if table.threads > 1 and not parallel and seconds > PAYS:
        yield Advice("parallel", f"no loop is parallel, and it is built for {table.threads} threads")
    if parallel and max(loop.extent for loop in parallel) < table.threads:
        extent = max(loop.extent for loop in parallel)
        yield Advice("fuse, parallel", f"its parallel loop has {extent} iterations for {table.threads} threads")


def _vectors(code: GroupCode) -> Iterator[Advice]:
    loop = code.busiest
    if loop is None or not loop.path:
        return
    census, where = loop.census, f"the busiest machine loop ({_label(loop)})"
    is_scalar = bool(census.flops) and census.width == "scalar"
    if not is_scalar and not census.gathers:
        return
    strided = tuple(_strided_reads(code, loop))
    strides = f": {'; '.join(strided)}" if strided else ""
    how = "is scalar" if is_scalar else f"has {counted(census.gathers, 'gather')}"
    primitive = "cache_read, transform_layout" if strided else "vectorize, reorder"
    yield Advice(primitive, f"{where} {how}{strides}")


def _strided_reads(code: GroupCode, loop: LoopCode) -> Iterator[str]:
    """Yield the reads of the loop's reductions whose step along the vectorized, else the innermost loop is neither 0
    nor 1 element: `k steps 512 elements in B`."""
    blocks = [code.program.blocks[label] for label in loop.path[-1].blocks if label in code.program.blocks]
    for block in blocks:
        around = code.program.enclosing(block.label)
        inner = next((n for n in around if n.kind == "vectorized"), around[-1] if around else None)
        if inner is not None and block.combiners:
            yield from _steps(code.program, block, inner)


def _steps(program: Program, block: Block, loop: Loop) -> Iterator[str]:
    bindings = dict(enumerate(block.bindings))
    for access in block.reads:
        offset = lin.offset(access.index, program.buffers[access.buffer].shape)
        step = lin.substitute(offset, bindings, program.ranges).coefficient(loop.number)
        if step is None:
            yield f"loop {loop.label} steps by no constant in {access.buffer}"
        elif abs(step) > 1:
            yield f"loop {loop.label} steps {abs(step)} elements in {access.buffer}"


def _registers(code: GroupCode) -> Iterator[Advice]:
    """The advice for the register tile of a vector loop: spills, loads, stores or others for each fma, latency,
    shuffles, divisions."""
    loop = code.busiest
    if loop is None or loop.census.width in ("", "scalar"):
        return
    census, limit, where = loop.census, loop.estimate.limit, f"the busiest machine loop ({_label(loop)})"
    spills = census.stack_loads + census.stack_stores
    if spills and census.fma and spills * 8 >= census.fma:
        reason = f"{where} has {spills} accesses of the stack for {census.fma} fma"
        yield Advice("split (a smaller register tile)", reason)
    if limit in ("load", "store") and census.fma:
        kind = "loads" if limit == "load" else "stores"
        count = census.loads if limit == "load" else census.stores
        reason = f"{where} has {count} {kind} for {census.fma} fma: the {limit} unit limits it"
        yield Advice("split (a larger register tile)", reason)
    if limit == "vector" and census.fma and loop.percent is not None and loop.percent < PEAK:
        reason = f"{where} has {census.fma} fma among {census.instructions} instructions: others take the vector units"
        yield Advice("split (a larger register tile)", reason)
    if limit == "latency":
        yield Advice("split, unroll (more accumulators)", f"{where} waits for its own results")
    if limit == "shuffle":
        yield Advice("cache_read (a packed copy)", f"{where} is limited by {census.shuffles} shuffles")
    if limit == "divider":
        yield Advice("nothing", f"{where} is limited by {counted(census.divisions, 'division')}, which the model has")


def _elsewhere(code: GroupCode) -> Iterator[Advice]:
    """The advice for a group whose busiest machine loop is good, if other loops take a large part of the cycles."""
    shares = {blocks: cycles / code.total for blocks, cycles in code.cycles.items()} if code.total else {}
    if not shares or max(shares.values()) >= MOSTLY:
        return
    parts = [f"{100 * share:.0f}% in {blocks}" for blocks, share in shares.items() if share >= LEAST]
    reason = f"of its cycles, with all data in L1, {', '.join(parts)}: its busiest loop is not all"
    yield Advice("inline, compute_at, vectorize", reason)


def _waiting(table: SourceTable, call: TimedCall, code: GroupCode) -> Iterator[Advice]:
    """The advice for a group that takes longer than its machine loops with all data in L1: it waits for memory."""
    loop, machine, profile = code.busiest, host(), code.explanation.profile
    if loop is None or table.rates is None:
        return
    clock = table.rates.flops / table.threads / (4 * machine.vector_bits / 32)
    team = table.threads if any(n.kind == "parallel" for n in code.program.loops.values()) else 1
    seconds, inside = code.total / clock / team, call.seconds
    if inside < WAITS * seconds:
        return
    times = f"a call takes {duration(inside)}, and its machine loops {duration(seconds)} with all data in L1"
    outer = [nest for nest in loop.path if nest.bytes is not None and nest.bytes > machine.l2_bytes]
    if call.bound is not None and call.bound.resource == "memory":
        yield Advice("prefetch, parallel", f"{times}: memory is its bound, and each operand need be read only once")
    elif outer:
        nest = outer[-1]
        reason = f"{times}: a run of loop {nest.name} touches {(nest.bytes or 0) / 1e6:.3g} MB, more than L2"
        yield Advice("split, reorder, cache_read (tiles in L2)", reason)
    elif profile is not None and inside > NEAR * profile.plain:
        yield Advice(
            "fuse, prefetch", f"{times}; alone it takes {duration(profile.plain)}: its operands are not in caches"
        )
    else:
        yield Advice("unknown", f"{times}: the rest is outside of innermost loops, or a start")


def _label(loop: LoopCode) -> str:
    nest = loop.path[-1]
    return f"{', '.join(nest.blocks)}: {nest.name}"
