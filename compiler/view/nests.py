"""The loops of a program as a tree for a page, and the memory that each loop touches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import prod

from xdsl.dialects.builtin import LocationAttr

from compiler.analysis.cost import instances, touched_boxes
from compiler.explain.nests import LoopNest
from compiler.program.tree import Alloc, Block, Loop, Node, Program, blocks_in
from compiler.schedule.show import block_text, buffer_text
from compiler.support.origins import origins
from compiler.types.elements import element_bytes
from compiler.view.records import Json


def tree(nodes: Iterable[Node]) -> list[Json]:
    """Loops (`loop`: the number, `name`, `extent`, `kind`, `body`), blocks (`block`: the label, `text`, `origin`: the
    parts of the user's model that it computes) and allocations (`alloc`: the text)."""
    return [_node(node) for node in nodes]


def _node(node: Node) -> Json:
    match node:
        case Alloc(buffer):
            return {"alloc": buffer_text(buffer)}
        case Block():
            return {"block": node.label, "text": block_text(node), "origin": origin_text(node.location)}
    body = tree(node.body)
    return {"loop": node.number, "name": node.label, "extent": node.extent, "kind": node.kind, "body": body}


def origin_text(location: LocationAttr) -> str:
    """The modules, nodes and lines of a user's model in a location; those of texts without a file are left out."""
    return ", ".join(str(origin) for origin in origins(location) if not origin.file.startswith("<"))


def low_tree(nests: Iterable[LoopNest]) -> list[Json]:
    """The loops of a low-level function, whose innermost ones have a line with the buffers that they write."""
    return [
        {
            "loop": nest.number,
            "name": nest.name,
            "extent": nest.trips,
            "kind": "serial",
            "body": low_tree(nest.inner) or [{"block": ", ".join(nest.blocks), "text": ", ".join(nest.blocks)}],
        }
        for nest in nests
    ]


def memory(program: Program) -> dict[int, Json]:
    """The memory that one iteration of each loop, and one run of it, touch, by the loop's number.

    Of each buffer: its name, scope, shape and bytes of an element; the boxes of the first iteration (`first`), of the
    second (`second`) and of the run (`run`), each a list of the first and last index of a dimension; and the accesses
    of an average run (`accesses`). Bytes are those of boxes, an upper bound. Loops around the loop are at iteration 0.
    """
    return {loop.number: _loop_memory(program, loop) for loop in program.loops.values()}


def _loop_memory(program: Program, loop: Loop) -> Json:
    first = touched_boxes(program, loop.body)
    second = touched_boxes(program, loop.body, {loop.number: 1}) if loop.extent > 1 else {}
    run, accesses = touched_boxes(program, [loop]), _accesses(program, loop)
    buffers = list[Json]()
    for name, box in run.items():
        buffer = program.buffers[name]
        buffers.append(
            {
                "name": name,
                "scope": buffer.scope,
                "shape": list(buffer.shape),
                "element": element_bytes(buffer.element),
                "first": first.get(name, []),
                "second": second.get(name, []),
                "run": box,
                "accesses": accesses[name],
            }
        )
    return {"buffers": buffers}


def _accesses(program: Program, loop: Loop) -> Counter[str]:
    """The reads and writes of each buffer in one run of a loop, on average over its runs."""
    runs = prod(around.extent for around in program.enclosing(loop.number))
    counts: Counter[str] = Counter()
    for block in blocks_in(loop):
        executed = instances(program, block) / max(1, runs)
        uses = [access.buffer for access in (*block.reads, *block.writes)]
        uses += [] if block.table is None else [block.table.buffer]
        uses += list(block.targets) if block.combiners else []  # an update reads its target too
        for name in uses:
            counts[name] += round(executed)
    return counts
