"""The primitive cache_write."""

from __future__ import annotations

from compiler.affine import linear as lin
from compiler.analysis.cover import covered
from compiler.program.tree import Access, Alloc, Buffer, Node, Program, blocks_in, key_of, map_blocks
from compiler.schedule.copies import copy_nest, redirected
from compiler.schedule.parameters import BLOCK, word
from compiler.schedule.plan import Plan, block_place, refuse
from compiler.schedule.primitive import primitive
from compiler.types.scopes import SCOPES


@primitive(
    "$block `in` $scope",
    '%copy = sched.cache_write %c in "local"',
    "cache-write{block=C scope=local at=C.m}",
    gives={"copy": "block"},
    placed_by="reverse_compute_at",
    block=BLOCK,
    scope=word("scope", SCOPES),
)
def cache_write(program: Program, block: str, scope: str = "local") -> Plan:
    """Compute a block's results in another scope and copy them out.

        loop.for "i" { S[i] = f(A[i]) }
      ->
        alloc S.local;  loop.for "i" { S.local[i] = f(A[i]) }  loop.for "ax0" { S[ax0] = S.local[ax0] }

    The copy is of the whole buffer, behind the outermost loop around the block to which no target is private;
    reverse_compute_at then makes it a copy of a tile. Several targets are copied by one nest. Requires targets of one
    shape that nothing has touched before that loop, and all of whose elements the block sets if the function changes
    them in place. Elsewhere: TVM cache_write, Halide in(), Exo stage_mem.
    """
    writer = program.blocks[block]
    targets = [program.buffers[name] for name in writer.targets]
    shape = targets[0].shape
    if any(target.shape != shape for target in targets):
        refuse(block_place(block), "its targets have different shapes")
    path: list[Node] = [*program.enclosing(block), writer]
    top = path[max(len(program.private_loops(target.name)) for target in targets)]
    for target in targets:
        _require_untouched(program, target.name, block, top)
    copies = {t.name: Buffer(program.fresh_buffer(f"{t.name}.{scope}"), shape, t.element, scope) for t in targets}
    top_key = key_of(top)
    assert not isinstance(top_key, tuple)
    pairs = [(Access(copies[t.name].name, lin.variables(len(shape))), t) for t in targets]
    label, nest = copy_nest(program, copies[targets[0].name].name, shape, pairs, top_key)

    names = {name: copy.name for name, copy in copies.items()}
    changed = map_blocks([top], lambda b: redirected(b, names))
    after = program.replaced(top_key, lambda _: [*map(Alloc, copies.values()), *changed, nest])
    for argument in program.arguments[: len(program.arguments) - program.outputs]:
        if argument.name in copies and not covered(after, copies[argument.name].name, 0):
            refuse(block_place(block), f"it does not set every element of '{argument.name}', which is changed in place")
    return Plan(after, blocks=(label,))


def _require_untouched(program: Program, buffer: str, block: str, top: Node) -> None:
    """Raise ScheduleError if a block outside `top` that runs before `block` uses `buffer`, which `block` writes."""
    inside_top = {b.label for b in blocks_in(top)}
    for user in program.readers[buffer] + program.writers[buffer]:
        before = program.places[user.label].positions < program.places[block].positions
        if user.label != block and before and user.label not in inside_top:
            refuse(block_place(block), f"block '{user.label}' uses '{buffer}' before it")
