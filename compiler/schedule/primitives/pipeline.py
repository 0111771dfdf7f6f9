"""prefetch, double_buffer and software_pipeline: moving data while working."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr, i64

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.analysis.legal import Step
from compiler.dialects.access import AxisAttr
from compiler.program.tree import (
    Access,
    Alloc,
    Block,
    Loop,
    Node,
    Program,
    blocks_in,
    fresh,
    map_blocks,
    rebound,
    touched,
)
from compiler.schedule.plan import (
    Plan,
    block_place,
    loop_place,
    new_label,
    no_table,
    only_target,
    refuse,
    require_serial,
)
from compiler.schedule.region import WINDOW, insert_axis, moved_alloc, with_buffer


def prefetch(program: Program, loop: int, buffer: str, ahead: int, over: int | None = None) -> Plan:
    """Ask for the elements of a buffer that a loop touches some iterations later.

        loop.for "k" { S(k) }                    // prefetch B ahead 8
      ->
        loop.for "k" { S(k) } attributes {prefetch = {B = 8}}

    Each iteration asks for the window of a later one at its start. `over` a loop inside, each iteration of that one
    asks for a share of the window instead: the attribute stands there, as {prefetch = {B = [8, "k"]}}.

    Requires a buffer that the loop's body touches and that outlives one iteration of it, and that `over` is inside the
    loop, which is not vectorized. What asks is a serial or parallel loop: unrolled or vectorized it asks for nothing.
    Elsewhere: Halide prefetch, TVM software prefetch, MLIR memref.prefetch.
    """
    node = program.loops[loop]
    place = loop_place(program, loop)
    reads, writes = touched([node])
    if buffer not in reads | writes:
        refuse("prefetch", place, f"its body does not touch '{buffer}'")
    if (buffer,) in program.places and _is_inside(program, (buffer,), loop):
        refuse("prefetch", place, f"'{buffer}' lives in one iteration of it; lift_alloc first")
    if over is not None and not _is_inside(program, over, loop):
        refuse("prefetch", loop_place(program, over), f"it is not inside loop '{node.label}'")
    if over is not None and node.kind == "vectorized":
        refuse("prefetch", place, "it is vectorized: no iteration is later")
    asking = node if over is None else program.loops[over]
    distance = IntegerAttr(ahead, i64)
    known = dict(asking.attributes).get("prefetch")
    asked = dict(known.data) if isinstance(known, DictionaryAttr) else {}
    asked[buffer] = distance if over is None else ArrayAttr([distance, StringAttr(node.label)])
    attributes = {**dict(asking.attributes), "prefetch": DictionaryAttr(asked)}
    new = replace(asking, attributes=tuple(sorted(attributes.items())))
    return Plan(Step(program.replaced(asking.number, lambda _: [new]), keeps_order=True))


def _is_inside(program: Program, place: int | tuple[str], loop: int) -> bool:
    return loop in [around.number for around in program.enclosing(place)]


def double_buffer(program: Program, block: str) -> Plan:
    """Give a block's buffer two halves, so that one is filled while the other is read.

        loop.for "i" { alloc T[8];  T = load(i);  use(T) }
      ->
        alloc T[2, 8];  loop.for "i" { T[i mod 2] = load(i);  use(T[i mod 2]) }

    Requires a temporary that lives in one iteration of a loop. Elsewhere: TVM double_buffer annotation, MLIR
    multi-buffering.
    """
    buffer = only_target("double_buffer", program.blocks[block])
    if buffer not in program.allocs:
        refuse("double_buffer", block_place(block), f"'{buffer}' is an argument, not a temporary")
    around = program.enclosing((buffer,))
    if not around:
        refuse("double_buffer", block_place(block), f"'{buffer}' lives outside all loops, not in one iteration")
    loop = around[-1]
    no_table("double_buffer", block_place(block), program.blocks.values(), buffer)
    half = lin.mod(lin.variable(loop.number), 2, program.ranges)

    def change(node: Block) -> Block:
        if all(a.buffer != buffer for a in (*node.reads, *node.writes)):
            return node
        position = node.spatial
        label = fresh(f"{WINDOW}0", [axis.label for axis in node.axes])
        new = insert_axis(node, position, AxisAttr(label, 2), half)

        def access(a: Access) -> Access:
            return replace(a, index=(lin.variable(position), *a.index)) if a.buffer == buffer else a

        return replace(new, reads=tuple(map(access, new.reads)), writes=tuple(map(access, new.writes)))

    old = program.buffers[buffer]
    after = with_buffer(program.map_blocks(change), buffer, replace(old, shape=(2, *old.shape)))
    after = moved_alloc(after, buffer, around[-2].number if len(around) > 1 else None)
    return Plan(Step(after, keeps_order=True))


def software_pipeline(program: Program, loop: int, stages: Sequence[int]) -> Plan:
    """Overlap the iterations of a loop: part number i of its body runs stages[i] iterations late.

        loop.for "i" = 8 { load(i)  use(i) }     // stages [0, 1]
      ->
        loop.for "i" = 9 { if i < 8: load(i)  if i >= 1: use(i - 1) }

    Requires a serial loop, one stage for each nest or block of its body, and no buffer that lives in one iteration
    and is used in several stages (double_buffer first). Refused where a dependence would be reversed. Elsewhere: TVM
    software_pipeline annotations, MLIR scf pipelining, Triton num_stages.
    """
    require_serial("software_pipeline", program, [loop])
    node = program.loops[loop]
    parts = [child for child in node.body if not isinstance(child, Alloc)]
    place = loop_place(program, loop)
    if len(stages) != len(parts):
        refuse("software_pipeline", place, f"{len(stages)} stages do not fit the {len(parts)} parts of its body")
    if min(stages) < 0:
        refuse("software_pipeline", place, f"the stages {list(stages)} are not all at least 0")
    _require_lifted(node, parts, stages, place)
    number = program.fresh_number()
    extent = node.extent + max(stages)
    ranges = dict(program.ranges) | {number: (0, extent - 1)}
    body: list[Node] = [child for child in node.body if isinstance(child, Alloc)]
    shifts: dict[str, dict[int, lin.Linear]] = {}
    for part, stage in zip(parts, stages, strict=True):
        late = lin.variable(number) - lin.constant(stage) if extent > 1 else lin.constant(0)
        limits = [Condition(late), Condition(lin.constant(node.extent - 1) - late)]
        limits = [c for c in limits if not c.always(ranges)]

        def change(block: Block, late: lin.Linear = late, limits: Sequence[Condition] = tuple(limits)) -> Block:
            new = rebound(block, {loop: late}, ranges)
            return replace(new, guard=tuple(dict.fromkeys((*new.guard, *limits))))

        body += map_blocks([part], change)
        shifts |= {block.label: {loop: late} for block in blocks_in(part)}
    taken = {n.label for n in program.enclosing(loop)}
    new = Loop(number, new_label(node.label, taken), extent, tuple(body), "serial", node.attributes)
    return Plan(Step(program.replaced(loop, lambda _: [new]), shifts=shifts), loops=(number,))


def _require_lifted(node: Loop, parts: Sequence[Node], stages: Sequence[int], place: str) -> None:
    for child in node.body:
        if isinstance(child, Alloc):
            name = child.buffer.name
            found = {s for part, s in zip(parts, stages, strict=True) if name in set.union(*touched([part]))}
            if len(found) > 1:
                reason = f"buffer '{name}' lives in one iteration and is used in several stages; double_buffer first"
                refuse("software_pipeline", place, reason)
