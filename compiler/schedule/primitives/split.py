"""The primitive split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.analysis.cover import overrun
from compiler.dialects.access import AxisAttr
from compiler.program.tree import Access, Block, Buffer, Loop, Program, blocks_in, map_blocks, nested, rebound
from compiler.schedule.parameters import FACTORS, LOOP, Value, word
from compiler.schedule.plan import (
    Plan,
    labels_around,
    loop_place,
    new_label,
    no_gather,
    no_table,
    refuse,
    require_serial,
)
from compiler.schedule.primitive import primitive
from compiler.schedule.primitives.partition import partition
from compiler.schedule.region import conditional, inside, with_buffer

TAILS = ("guard", "partition", "pad")


def _fits(stated: Mapping[str, Value], result_count: int) -> str:
    factors = len(stated["factors"])
    return "" if factors == result_count else f"{factors} factors give as many loops, not {result_count}"


@primitive(
    "$loop `by` custom<DynamicIndexList>($params, $factors) (`tail` $tail^)?",
    '%m0, %m1 = sched.split %m by [-1, 16] tail "pad" : !sched.loop, !sched.loop',
    "split{block=C loop=m factors=-1,16 tail=guard}",
    gives={"loops": "loop*"},
    consumes=["loop"],
    check=_fits,
    loop=LOOP,
    factors=FACTORS,
    tail=word("tail", TAILS).or_else("guard"),
)
def split(program: Program, loop: int, factors: Sequence[int | None], tail: str = "guard") -> Plan:
    """Split a loop into a nest, outermost factor first; one factor may be None and is inferred.

        loop.for "i" = 100 { S(i) }              // split by [None, 16]
      ->
        loop.for "i.0" = 7 { loop.for "i.1" = 16 { if 16*i.0 + i.1 < 100: S(16*i.0 + i.1) } }

    If the factors do not divide the extent, `tail` selects a strategy: "guard" guards each block, "partition" makes the
    remaining iterations a separate loop after the others, "pad" extends the blocks and pads their temporaries.

    Requires a serial loop; factors whose product covers the extent. Padding requires that the loop binds spatial axes
    of blocks that write temporaries only, and that the additional iterations write elements that nothing else uses: not
    where a layout wraps. Elsewhere: TVM split, Halide split, Exo divide_loop, MLIR tile_using_for.
    """
    require_serial(program, [loop])
    node = program.loops[loop]
    sizes = _inferred(program, node, factors)
    if tail == "partition" and prod(sizes) != node.extent:
        return _split_partitioned(program, node, sizes)
    if tail == "pad" and prod(sizes) != node.extent:
        program = _padded(program, node, prod(sizes))
        node = program.loops[loop]
    loops, form = _nest(program, node, sizes)
    limit = () if prod(sizes) == node.extent else (Condition(lin.constant(node.extent - 1) - form),)
    ranges = program.ranges_with(*loops)
    body = map_blocks(node.body, lambda b: _guarded(b, rebound(b, {loop: form}, ranges), limit, ranges))
    nest = nested(loops[:-1], replace(loops[-1], body=body))
    after = program.replaced(loop, lambda _: [nest])
    return Plan(after, links={loop: form}, keeps_order=True, loops=tuple(n.number for n in loops))


def _guarded(former: Block, block: Block, limit: Sequence[Condition], ranges: lin.Ranges) -> Block:
    """Add the limit to the guard of a block under the loop, also if no axis is bound to the loop.

    Conditions on loops that bind reduce axes only do not guard an init. If a loop was split into spatial and reduce
    loops, the bounds of the spatial axes are added for the init.
    """
    new = [c for c in limit if not c.always(ranges)]
    hides = _unseen(block, (*block.guard, *new)) > _unseen(former, former.guard)
    if block.has_init and hides:
        sizes = [axis.size for axis in block.axes[: block.spatial]]
        new += inside(block.bindings[: block.spatial], sizes, ranges)
    return replace(block, guard=tuple(dict.fromkeys((*block.guard, *new)))) if new else block


def _unseen(block: Block, conditions: Sequence[Condition]) -> int:
    """Number of conditions that do not guard a block's init: those with loops that bind reduce axes only."""
    reduce_only = block.loops_of(True) - block.loops_of(False)
    return sum(bool(c.form.variables() & reduce_only) for c in conditions)


def _inferred(program: Program, node: Loop, factors: Sequence[int | None]) -> list[int]:
    place = loop_place(program, node.number)
    stated = [f for f in factors if f is not None]
    if not factors or any(f < 1 for f in stated) or len(stated) < len(factors) - 1:
        refuse(place, f"the factors {list(factors)} are not positive with at most one left open")
    missing = -(-node.extent // prod(stated))
    sizes = [missing if f is None else f for f in factors]
    if prod(sizes) < node.extent:
        refuse(place, f"the factors {' x '.join(map(str, sizes))} do not cover its extent {node.extent}")
    return sizes


def _nest(program: Program, node: Loop, sizes: Sequence[int]) -> tuple[list[Loop], Linear]:
    """Build loops of the extents `sizes`, outermost first, and the value of the loop `node`, which they replace."""
    used_labels, first = labels_around(program, node.number), program.fresh_number()
    loops, form = [], lin.constant(0)
    for n, size in enumerate(sizes):
        label = new_label(f"{node.label}.{n}", used_labels)
        loops.append(Loop(first + n, label, size, (), "serial", () if n else node.attributes))
        form = form.scaled(size) + loops[-1].variable
    return loops, form


def _split_partitioned(program: Program, node: Loop, sizes: Sequence[int]) -> Plan:
    full_tiles = node.extent // prod(sizes[1:])
    if full_tiles == 0:
        return split(program, node.number, [1, *sizes[1:]])
    parted = partition(program, node.number, full_tiles * prod(sizes[1:]))
    head = parted.loops[0]
    assert head is not None
    inner = split(parted.program, head, [full_tiles, *sizes[1:]])
    return replace(parted, program=inner.program, shifts=_composed(parted, inner), loops=inner.loops)


def _composed(parted: Plan, inner: Plan) -> dict[str, dict[int, Linear]]:
    ranges = {**parted.program.ranges, **inner.program.ranges}
    return {
        label: {n: lin.substitute(form, inner.links, ranges) for n, form in links.items()}
        for label, links in parted.shifts.items()
    }


def _padded(program: Program, node: Loop, extent: int) -> Program:
    """Lengthen a loop to `extent`, extend the axes that it binds, and pad their temporaries. Raises ScheduleError if a
    block or a buffer cannot be padded."""
    place = loop_place(program, node.number)
    grown = dict(program.ranges) | {node.number: (0, extent - 1)}
    buffers: dict[str, Buffer] = {}
    longer: dict[str, Block] = {}
    for block in blocks_in(node):
        if block.guard:
            refuse(place, f"block '{block.label}' is guarded already and cannot be padded")
        no_gather(place, block)
        longer[block.label] = _longer(program, block, node.number, grown, place)
        no_table(place, program.blocks.values(), *(access.buffer for access in block.writes))
        for access in block.writes:
            _pad_target(program, access, longer[block.label], buffers, place)
    padded = program.replaced(node.number, lambda _: [replace(node, extent=extent)])
    padded = padded.map_blocks(lambda block: longer.get(block.label, block))
    for name, buffer in buffers.items():
        padded = with_buffer(padded, name, buffer)
    for name in buffers:
        clash = overrun(padded, node.number, node.extent, name)
        if clash is not None:
            refuse(place, f"padded, {clash}")
    return padded


def _longer(program: Program, block: Block, loop: int, ranges: lin.Ranges, place: str) -> Block:
    axes = list(block.axes)
    extended: set[int] = set()
    for number, (axis, form) in enumerate(zip(block.axes, block.bindings, strict=True)):
        high = lin.bounds(form, ranges)[1]
        if loop not in form.variables() or high < axis.size:
            continue
        if axis.is_reduce:
            refuse(place, f"it binds the reduction '{axis.label}' of block '{block.label}'; guard it instead")
        extended.add(number)
        axes[number] = AxisAttr(axis.label, high + 1)
    longer = lin.box([axis.size for axis in axes])
    if not extended:
        refuse(place, f"block '{block.label}' would run more often, not on more elements")
    reads = []
    for access, type in zip(block.reads, block.read_types, strict=True):
        missing = _leaving(access, program.buffers[access.buffer], extended, longer)
        reads.append(conditional(access, (*access.where, *missing), type))
    return replace(block, axes=tuple(axes), reads=tuple(reads))


def _leaving(access: Access, buffer: Buffer, extended: set[int], ranges: lin.Ranges) -> list[Condition]:
    """The missing conditions that an access stays in its buffer on the longer axes `extended`: A[i] of 10, i in [0,
    16): 9 - i >= 0. The value read if they fail does not matter: nothing uses the additional elements."""
    left_bounds: list[Condition] = []
    for form, size in zip(access.index, buffer.shape, strict=True):
        if form.variables() & extended:
            left_bounds += [bound for bound in inside([form], [size], ranges) if bound not in access.where]
    return left_bounds


def _pad_target(program: Program, access: Access, block: Block, buffers: dict[str, Buffer], place: str) -> None:
    buffer = buffers.get(access.buffer) or program.buffers[access.buffer]
    if access.buffer not in program.allocs:
        refuse(place, f"'{access.buffer}' is an argument of the function and cannot be padded")
    highs = [lin.bounds(form, block.axis_ranges)[1] + 1 for form in access.index]
    shape = tuple(max(size, high) for size, high in zip(buffer.shape, highs, strict=True))
    buffers[access.buffer] = replace(buffer, shape=shape)
