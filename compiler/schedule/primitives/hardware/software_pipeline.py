"""The primitive software_pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compiler.affine import linear as lin
from compiler.program.tree import Alloc, Loop, Node, Program, blocks_in, rebind, touched
from compiler.schedule.parameters import INTS, LOOP
from compiler.schedule.plan import Plan, loop_place, refuse, require_serial
from compiler.schedule.primitive import primitive
from compiler.schedule.region import inside


@primitive(
    "$loop `stages` $stages",
    "%late = sched.software_pipeline %k stages [0, 1]",
    "software-pipeline{block=C loop=k stages=0,1}",
    gives={"pipelined": "loop"},
    consumes=["loop"],
    loop=LOOP,
    stages=INTS.such_that(
        lambda stages: stages and min(stages) >= 0, "the stages {} are not one number of at least 0 a block"
    ),
)
def software_pipeline(program: Program, loop: int, stages: Sequence[int]) -> Plan:
    """Overlap the iterations of a loop: part number i of its body runs stages[i] iterations late.

        loop.for "i" = 8 { load(i)  use(i) }     // stages [0, 1]
      ->
        loop.for "i" = 9 { if i < 8: load(i)  if i >= 1: use(i - 1) }

    Requires a serial loop, one stage for each nest or block of its body, and no buffer that lives in one iteration
    and is used in several stages (double_buffer first). Refused where a dependence would be reversed. Elsewhere: TVM
    software_pipeline annotations, MLIR scf pipelining, Triton num_stages.
    """
    require_serial(program, [loop])
    node = program.loops[loop]
    statements = [child for child in node.body if not isinstance(child, Alloc)]
    place = loop_place(program, loop)
    if len(stages) != len(statements):
        refuse(place, f"{len(stages)} stages do not fit the {len(statements)} parts of its body")
    _require_lifted(node, statements, stages, place)
    pipelined = replace(node, number=program.fresh_number(), extent=node.extent + max(stages))
    ranges = program.ranges_with(pipelined)
    body: list[Node] = [child for child in node.body if isinstance(child, Alloc)]
    shifts: dict[str, dict[int, lin.Linear]] = {}
    for statement, stage in zip(statements, stages, strict=True):
        late = pipelined.variable - lin.constant(stage)
        body += rebind([statement], {loop: late}, ranges, inside([late], [node.extent], ranges))
        shifts |= {block.label: {loop: late} for block in blocks_in(statement)}
    after = program.replaced(loop, lambda _: [replace(pipelined, body=tuple(body))])
    return Plan(after, shifts=shifts, loops=(pipelined.number,))


def _require_lifted(node: Loop, parts: Sequence[Node], stages: Sequence[int], place: str) -> None:
    for child in node.body:
        if isinstance(child, Alloc):
            name = child.buffer.name
            stages_using = {s for part, s in zip(parts, stages, strict=True) if name in set.union(*touched([part]))}
            if len(stages_using) > 1:
                reason = f"buffer '{name}' lives in one iteration and is used in several stages; double_buffer first"
                refuse(place, reason)
