"""The primitive reorder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compiler.program.tree import Program, nested
from compiler.schedule.parameters import LOOPS
from compiler.schedule.plan import Plan, loop_place, refuse, require_perfect
from compiler.schedule.primitive import primitive


@primitive("$loops", "sched.reorder %m, %k, %l", "reorder{block=C order=m,k,l}", loops=LOOPS.called("order"))
def reorder(program: Program, loops: Sequence[int]) -> Plan:
    """Permute loops of one nest into the order given, outermost first; loops between them stay where they are.

        loop.for "i" { loop.for "j" { loop.for "k" { S(i, j, k) } } }      // reorder k, i
      ->
        loop.for "k" { loop.for "j" { loop.for "i" { S(i, j, k) } } }

    Requires that the loops stand in one nest, perfectly nested from the outermost to the innermost. Refused where a
    dependence would be reversed. Elsewhere: TVM reorder, Halide reorder, Exo reorder_loops, MLIR interchange.
    """
    if len(set(loops)) != len(loops):
        refuse(loop_place(program, loops[0]), "a loop is named twice")
    deepest = max(loops, key=lambda n: len(program.enclosing(n)))
    chain = [*program.enclosing(deepest), program.loops[deepest]]
    numbers = [node.number for node in chain]
    for n in loops:
        if n not in numbers:
            refuse(loop_place(program, n), f"it is not in one nest with {loop_place(program, deepest)}")
    first = min(numbers.index(n) for n in loops)
    chain = chain[first:]
    require_perfect(chain)
    order = iter(loops)
    arranged = [program.loops[next(order)] if node.number in loops else node for node in chain]
    nest = nested(arranged[:-1], replace(arranged[-1], body=chain[-1].body))
    return Plan(program.replaced(chain[0].number, lambda _: [nest]))
