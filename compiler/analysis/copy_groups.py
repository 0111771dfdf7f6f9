"""Groups of asynchronous copies: how many of the latest ones the barrier of a pipelined loop need not wait for.

At the barrier of each iteration the copies since the last one become a group, which may be empty. A copy of iteration p
that iteration p + d uses first, behind the barrier of that iteration, is complete if that barrier leaves at most d - 1
groups in flight where copies follow the barrier, and at most d where they precede it. Source: the PTX ISA,
cp.async.wait_group.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import product

from compiler.affine import linear as lin
from compiler.analysis.barriers import ASYNC
from compiler.analysis.sets import Undecided, points, sample
from compiler.analysis.stages import BLOCKS
from compiler.analysis.statements import Statement, Use, meetings, statements
from compiler.program.tree import Alloc, Loop, Node, Program, blocks_in, key_of, loops_in, touched, walk

FARTHEST = 8
"""The most iterations between a copy and its use that are told apart."""


@dataclass(frozen=True)
class CopyGroups:
    """The groups of a kernel's copies: the key of the node whose barrier waits for groups, and the number of latest
    groups for which it does not wait."""

    barrier: object
    in_flight: int


def copy_groups(program: Program, kernel: Loop, barriers: Collection[object]) -> CopyGroups | None:
    """Return the groups of a kernel's asynchronous copies; None if its barriers, before the nodes with the keys
    `barriers`, have to wait for all copies.

    They have to unless all copies are in one serial loop under the loops over blocks, whose iterations have one
    barrier, and all uses of the copied elements are in the loop behind that barrier; also if an element is used too
    early for a group to stay in flight, if isl does not decide, and without copies.
    """
    copies = [node for node in walk((kernel,)) if isinstance(node, Loop) and ASYNC in dict(node.attributes)]
    around = [[outer for outer in program.enclosing(node.number) if outer.kind not in BLOCKS] for node in copies]
    first = {loops[0].number if loops else None for loops in around}
    number = first.pop() if len(first) == 1 else None
    if number is None:
        return None
    loop = program.loops[number]
    parts = [node for node in loop.body if not isinstance(node, Alloc)]
    at = [number for number, node in enumerate(parts) if key_of(node) in barriers]
    inner = [key for node in parts for key in map(key_of, walk((node,))) if key in barriers]
    if loop.kind != "serial" or len(at) != 1 or len(inner) != 1:
        return None
    places = [n for n, node in enumerate(parts) if any(ASYNC in dict(each.attributes) for each in loops_in(node))]
    written = touched(copies)[1]
    users = [n for n, node in enumerate(parts) if n not in places and written & set().union(*touched([node]))]
    outside = [block for block in blocks_in(kernel) if loop.number not in program.outer(block.label)]
    if not users or min(users) < at[0] or written & set().union(*touched(outside)):
        return None
    is_before = max(places) < at[0]
    if not is_before and min(places) < at[0]:
        return None
    in_flight = _in_flight(program, loop, [[parts[n] for n in each] for each in (places, users)], is_before)
    return CopyGroups(key_of(parts[at[0]]), in_flight) if in_flight else None


def _in_flight(program: Program, loop: Loop, nodes: Sequence[Sequence[Node]], is_before: bool) -> int:
    """Return the number of groups for which the barrier need not wait, by the distances of copies and users, the two
    `nodes`, and of copies to one element; `is_before`: copies precede the barrier. 0 if isl does not decide."""
    every = statements(program)
    copies, users = ([s for node in each for b in blocks_in(node) for s in every.of_block(b.label)] for each in nodes)
    most = FARTHEST
    try:
        for later, is_copy in ((users, False), (copies, True)):
            for first, second in product(copies, later):
                distance = _distance(first, second, loop.number, is_copy)
                if distance is not None:
                    most = min(most, distance if is_before and not is_copy else distance - 1)
    except Undecided:
        return 0
    return max(0, most)


def _distance(first: Statement, second: Statement, loop: int, is_later: bool) -> int | None:
    """Return the fewest iterations of a loop between a write of one statement and a use of the same element by another;
    at least one if `is_later`, FARTHEST for more, None without such an element. Raises Undecided if isl does not
    decide."""
    uses = [pair for pair in meetings(first, second) if pair[0].how != "read"]
    for distance in range(int(is_later), FARTHEST) if uses else ():
        if any(_meets(first, second, pair, loop, distance) for pair in uses):
            return distance
    return FARTHEST if uses else None


def _meets(first: Statement, second: Statement, uses: tuple[Use, Use], loop: int, distance: int) -> bool:
    # T[k mod 3] in iteration p2 and T[(k - 2) mod 3] in iteration q2:
    #   p2 mod 3 = (q2 - 2) mod 3 and q2 = p2 + 2  ->  (p2, q2) = (0, 2)
    names = [{n: f"{v}{n}" for n in s.loops} for v, s in (("p", first), ("q", second))]
    text = [*first.domain(names[0], uses[0]), *second.domain(names[1], uses[1])]
    for f, g in zip(uses[0].index, uses[1].index, strict=True):
        if f is not None and g is not None:
            text.append(f"{lin.to_isl(f, names[0])} = {lin.to_isl(g, names[1])}")
    text.append(f"q{loop} = p{loop} + {distance}")
    for number in first.loops:
        if number != loop and number in second.loops and first.loops.index(number) < first.loops.index(loop):
            text.append(f"p{number} = q{number}")
    return sample(points([*names[0].values(), *names[1].values()], text)) is not None
