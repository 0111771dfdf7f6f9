"""split and partition: one loop becomes several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.analysis.cover import overrun
from compiler.analysis.legal import Step
from compiler.dialects.access import AxisAttr
from compiler.program.tree import (
    Access,
    Alloc,
    Block,
    Buffer,
    Loop,
    Node,
    Program,
    blocks_in,
    fresh,
    map_blocks,
    rebound,
)
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
from compiler.schedule.region import inside


def split(program: Program, loop: int, factors: Sequence[int | None], tail: str = "guard") -> Plan:
    """Split a loop into a nest, outermost factor first; one factor may be None and is inferred.

        loop.for "i" = 100 { S(i) }              // split by [None, 16]
      ->
        loop.for "i.0" = 7 { loop.for "i.1" = 16 { if 16*i.0 + i.1 < 100: S(16*i.0 + i.1) } }

    Where the factors do not divide the extent, `tail` says what happens: "guard" guards each block, "partition"
    makes the remainder a loop of its own behind, "pad" lets the blocks run over into padded temporaries.

    Requires a serial loop; factors whose product covers the extent. Padding requires that the loop binds spatial
    axes of blocks that write temporaries only, and that what runs over lands on elements that nothing else uses: not
    where a layout wraps. Elsewhere: TVM split, Halide split, Exo divide_loop, MLIR
    tile_using_for.
    """
    require_serial("split", program, [loop])
    node = program.loops[loop]
    sizes = _inferred(program, node, factors)
    if tail == "partition" and prod(sizes) != node.extent:
        return _split_partitioned(program, node, sizes)
    if tail == "pad" and prod(sizes) != node.extent:
        program = _padded(program, node, prod(sizes))
        node = program.loops[loop]
    made, form, numbers = _nest(program, node, sizes)
    covered = prod(sizes) == node.extent
    limit = () if covered else (Condition(lin.constant(node.extent - 1) - form),)
    ranges = {**program.ranges, **{n: (0, size - 1) for n, size in zip(numbers, sizes, strict=True)}}
    body = map_blocks(node.body, lambda b: _guarded(b, rebound(b, {loop: form}, ranges), limit, ranges))
    nest = _filled(made, body)
    after = program.replaced(loop, lambda _: [nest])
    return Plan(Step(after, links={loop: form}, keeps_order=True), loops=tuple(numbers))


def _guarded(former: Block, block: Block, limit: Sequence[Condition], ranges: lin.Ranges) -> Block:
    """Every block under the loop gains the limit, also one that the loop does not bind: it runs once an iteration.

    An init does not see conditions on loops of the reduction only; where a loop has come apart into spatial and reduce
    loops, what a condition says of the spatial axes is said again for the init.
    """
    new = [c for c in limit if not c.always(ranges)]
    hides = _unseen(block, (*block.guard, *new)) > _unseen(former, former.guard)
    if block.has_init and hides:
        sizes = [axis.size for axis in block.axes[: block.spatial]]
        new += inside(block.bindings[: block.spatial], sizes, ranges)
    return replace(block, guard=tuple(dict.fromkeys((*block.guard, *new)))) if new else block


def _unseen(block: Block, conditions: Sequence[Condition]) -> int:
    """How many of some conditions the init of a block does not see."""
    reduce_only = block.loops_of(True) - block.loops_of(False)
    return sum(bool(c.form.variables() & reduce_only) for c in conditions)


def _inferred(program: Program, node: Loop, factors: Sequence[int | None]) -> list[int]:
    place = loop_place(program, node.number)
    known = [f for f in factors if f is not None]
    if not factors or any(f < 1 for f in known) or len(known) < len(factors) - 1:
        refuse("split", place, f"the factors {list(factors)} are not positive with at most one left open")
    missing = -(-node.extent // prod(known))
    sizes = [missing if f is None else f for f in factors]
    if prod(sizes) < node.extent:
        refuse("split", place, f"the factors {' x '.join(map(str, sizes))} do not cover its extent {node.extent}")
    return sizes


def _nest(program: Program, node: Loop, sizes: Sequence[int]) -> tuple[list[Loop], Linear, list[int]]:
    taken = labels_around(program, node.number)
    first = program.fresh_number()
    loops = [
        Loop(first + n, new_label(f"{node.label}.{n}", taken), size, (), "serial", node.attributes if n == 0 else ())
        for n, size in enumerate(sizes)
    ]
    form = lin.constant(0)
    for loop in loops:
        form = form.scaled(loop.extent) + (lin.variable(loop.number) if loop.extent > 1 else lin.constant(0))
    return loops, form, [loop.number for loop in loops]


def _filled(loops: Sequence[Loop], body: tuple[Node, ...]) -> Loop:
    for loop in reversed(loops):
        body = (replace(loop, body=body),)
    assert isinstance(body[0], Loop)
    return body[0]


def _split_partitioned(program: Program, node: Loop, sizes: Sequence[int]) -> Plan:
    whole = node.extent // prod(sizes[1:])
    if whole == 0:
        return split(program, node.number, [1, *sizes[1:]])
    parted = partition(program, node.number, whole * prod(sizes[1:]))
    head = parted.loops[0]
    assert head is not None
    inner = split(parted.step.program, head, [whole, *sizes[1:]])
    tree = inner.step.program
    step = replace(parted.step, program=tree, shifts=_composed(parted, inner.step))
    return Plan(step, inner.loops)


def _composed(parted: Plan, inner: Step) -> dict[str, dict[int, Linear]]:
    ranges = {**parted.step.program.ranges, **inner.program.ranges}
    return {
        label: {n: lin.substitute(form, inner.links, ranges) for n, form in links.items()}
        for label, links in parted.step.shifts.items()
    }


def _padded(program: Program, node: Loop, extent: int) -> Program:
    """The program with a longer loop, the axes that it binds extended, their temporaries padded."""
    place = loop_place(program, node.number)
    grown = dict(program.ranges) | {node.number: (0, extent - 1)}
    buffers: dict[str, Buffer] = {}
    longer: dict[str, Block] = {}
    for block in blocks_in(node):
        if block.guard:
            refuse("split", place, f"block '{block.label}' is guarded already and cannot be padded")
        no_gather("split", place, block)
        longer[block.label] = _longer(program, block, node.number, grown, place)
        no_table("split", place, program.blocks.values(), *(access.buffer for access in block.writes))
        for access in block.writes:
            _pad_target(program, access, longer[block.label], buffers, place)
    padded = program.replaced(node.number, lambda _: [replace(node, extent=extent)])

    def grow(nodes: Sequence[Node]) -> tuple[Node, ...]:
        made: list[Node] = []
        for inner in nodes:
            if isinstance(inner, Loop):
                made.append(replace(inner, body=grow(inner.body)))
            elif isinstance(inner, Alloc):
                made.append(Alloc(buffers.get(inner.buffer.name, inner.buffer)))
            else:
                made.append(longer.get(inner.label, inner))
        return tuple(made)

    padded = replace(padded, body=grow(padded.body))
    for name in buffers:
        clash = overrun(padded, node.number, node.extent, name)
        if clash is not None:
            refuse("split", place, f"padded, {clash}")
    return padded


def _longer(program: Program, block: Block, loop: int, ranges: lin.Ranges, place: str) -> Block:
    axes = list(block.axes)
    conditions: list[Condition] = []
    for number, (axis, form) in enumerate(zip(block.axes, block.bindings, strict=True)):
        high = lin.bounds(form, ranges)[1]
        if loop not in form.variables() or high < axis.size:
            continue
        if axis.is_reduce:
            refuse("split", place, f"it binds the reduction '{axis.label}' of block '{block.label}'; guard it instead")
        conditions.append(Condition(lin.constant(axis.size - 1) - lin.variable(number)))
        axes[number] = AxisAttr(axis.label, high + 1)
    if not conditions:
        refuse("split", place, f"block '{block.label}' would run more often, not on more elements")
    reads = []
    for access, type in zip(block.reads, block.read_types, strict=True):
        needed = tuple(c for c in conditions if any(c.form.variables() & f.variables() for f in access.index))
        reads.append(_conditional(access, needed, type))
    return replace(block, axes=tuple(axes), reads=tuple(reads))


def _conditional(access: Access, needed: tuple[Condition, ...], type: object) -> Access:
    from compiler.dialects.combiner import identity

    if not needed:
        return access
    otherwise = access.otherwise if access.otherwise is not None else identity("add", type)  # type: ignore[arg-type]
    return replace(access, where=tuple(dict.fromkeys((*access.where, *needed))), otherwise=otherwise)


def _pad_target(program: Program, access: Access, block: Block, buffers: dict[str, Buffer], place: str) -> None:
    buffer = buffers.get(access.buffer) or program.buffers[access.buffer]
    if access.buffer not in program.allocs:
        refuse("split", place, f"'{access.buffer}' is an argument of the function and cannot be padded")
    highs = [lin.bounds(form, block.axis_ranges)[1] + 1 for form in access.index]
    shape = tuple(max(size, high) for size, high in zip(buffer.shape, highs, strict=True))
    buffers[access.buffer] = replace(buffer, shape=shape)


def partition(program: Program, loop: int, position: int) -> Plan:
    """Cut a loop in two, one after the other: the iterations below a position, and the rest.

        loop.for "i" = 100 { S(i) }              // partition at 96
      ->
        loop.for "i.head" = 96 { S(i.head) }  loop.for "i.rest" = 4 { S(96 + i.rest) }

    The blocks of the rest are copies with new labels; where the loop belongs to a reduction they accumulate.

    Requires a serial loop and a position inside its extent. Elsewhere: Exo cut_loop, TVM loop partition, Halide
    TailStrategy, MLIR loop.peel.
    """
    require_serial("partition", program, [loop])
    node = program.loops[loop]
    if not 0 < position < node.extent:
        refuse("partition", loop_place(program, loop), f"position {position} is not inside its extent {node.extent}")
    for block in blocks_in(node):
        guarded = any(loop in c.form.variables() for c in block.guard)
        if block.has_init and loop in block.loops_of(True) and guarded:
            reason = f"it is in the guard of block '{block.label}', whose init would see it; decompose_reduction first"
            refuse("partition", loop_place(program, loop), reason)
        if block.has_init and loop in block.loops_of(True) & block.loops_of(False):
            reason = f"it binds spatial and reduce axes of block '{block.label}' alike; decompose_reduction first"
            refuse("partition", loop_place(program, loop), reason)
    number = program.fresh_number()
    taken = labels_around(program, loop)
    head_label, rest_label = new_label(f"{node.label}.head", taken), new_label(f"{node.label}.rest", taken)
    ranges = dict(program.ranges) | {number: (0, position - 1), number + 1: (0, node.extent - position - 1)}
    at_head = {loop: lin.variable(number) if position > 1 else lin.constant(0)}
    after = lin.variable(number + 1) if node.extent - position > 1 else lin.constant(0)
    at_rest = {loop: after + lin.constant(position)}
    body = map_blocks(node.body, lambda b: rebound(b, at_head, ranges))
    head = replace(node, number=number, label=head_label, extent=position, body=body)
    copier = _Copier(program, number + 2, at_rest, ranges, loop)
    rest = Loop(number + 1, rest_label, node.extent - position, copier.copy(node.body), node.kind, node.attributes)
    shifts: dict[str, dict[int, Linear]] = {b.label: dict(at_head) for b in blocks_in(head)}
    shifts |= {label: {**at_rest, **copier.former} for label in copier.labels.values()}
    sources = {(new, i): (old, i) for old, new in copier.labels.items() for i in (False, True)}
    step = Step(program.replaced(loop, lambda _: [head, rest]), shifts=shifts, sources=sources)
    return Plan(step, loops=(number, number + 1))


class _Copier:
    """Copies of nodes with new numbers, labels and buffers."""

    def __init__(self, program: Program, number: int, values: dict[int, Linear], ranges: lin.Ranges, loop: int) -> None:
        self.program = program
        self.next = number
        self.values = dict(values)
        self.ranges = dict(ranges)
        self.loop = loop
        self.labels: dict[str, str] = {}
        self.buffers: dict[str, str] = {}
        self.former: dict[int, Linear] = {}

    def copy(self, nodes: Sequence[Node]) -> tuple[Node, ...]:
        """The copied nodes."""
        return tuple(self._node(node) for node in nodes)

    def _node(self, node: Node) -> Node:
        match node:
            case Loop():
                number, self.next = self.next, self.next + 1
                self.values[node.number] = self.former[node.number] = lin.variable(number)
                self.ranges[number] = (0, node.extent - 1)
                return replace(node, number=number, body=self.copy(node.body))
            case Alloc():
                name = fresh(node.buffer.name, {*self.program.buffers, *self.buffers.values()})
                self.buffers[node.buffer.name] = name
                return Alloc(replace(node.buffer, name=name))
            case Block():
                return self._block(node)

    def _block(self, block: Block) -> Block:
        label = fresh(block.label, {*self.program.blocks, *self.labels.values()})
        self.labels[block.label] = label
        new = rebound(block, self.values, self.ranges)
        reduces = bool(block.combiners) and self.loop in block.loops_of(True)

        def renamed(access: Access) -> Access:
            return replace(access, buffer=self.buffers.get(access.buffer, access.buffer))

        return replace(
            new,
            label=label,
            reads=tuple(map(renamed, new.reads)),
            writes=tuple(map(renamed, new.writes)),
            table=new.table and replace(new.table, buffer=self.buffers.get(new.table.buffer, new.table.buffer)),
            accumulate=new.accumulate or reduces,
        )
