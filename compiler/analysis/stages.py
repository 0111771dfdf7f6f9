"""The stages of a kernel: nests of thread loops that run one after another, and which of them all threads run alike.

A stage that writes local buffers alone is *replicated*: along a thread dimension without a loop of its own, each thread
runs it for a copy of its own. So a result that all threads need is computed by each of them, without a barrier.

    S (no thread loop) writes S.local[0];  thread_x { D[tx] reads S.local[0] }  ->  each thread computes its S.local[0]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

from compiler.intrinsics import find
from compiler.intrinsics.warp import LANES
from compiler.program.tree import Alloc, Block, Loop, Node, Program, blocks_in, key_of, loops_in

THREADS = ("thread_x", "thread_y", "thread_z")
BLOCKS = ("block_x", "block_y", "block_z")
UNIFORM = ("serial", "unrolled", "vthread", *BLOCKS)
"""The kinds of uniform loops: around thread loops, all threads of a block are in the same iteration."""


@dataclass(frozen=True)
class Arrival:
    """The point of a kernel behind which one block of threads of several goes on: the last one to arrive.

        i block_x { k block_y { .. };  S }  ->  S runs for each i in the last of the blocks along y to arrive

    around: the loop whose body it is in, bound to blocks as are all around it. parts: the loops over the blocks that
    arrive, outermost first. before, rest: the other nodes of that body but allocations, before and behind these loops.
    """

    around: Loop
    parts: tuple[Loop, ...]
    before: tuple[Node, ...]
    rest: tuple[Node, ...]

    @property
    def count(self) -> int:
        """The number of blocks that arrive."""
        return prod(loop.extent for loop in self.parts)


def arrival_in(kernel: Node) -> Arrival | None:
    """Return the arrival in a kernel: a loop over blocks that other nodes follow, inside loops over blocks alone; None
    without one."""
    node = kernel
    while isinstance(node, Loop) and node.kind in BLOCKS:
        inner = [child for child in node.body if not isinstance(child, Alloc)]
        at = next((n for n, child in enumerate(inner) if isinstance(child, Loop) and child.kind in BLOCKS), None)
        if at is None:
            return None
        first = inner[at]
        if at + 1 < len(inner):
            return Arrival(node, tuple(_block_loops(first)), tuple(inner[:at]), tuple(inner[at + 1 :]))
        node = first
    return None


def _block_loops(node: Node) -> list[Loop]:
    """Return a loop over blocks with those perfectly nested in it; none for another node."""
    if not isinstance(node, Loop) or node.kind not in BLOCKS:
        return []
    return [node, *(_block_loops(node.body[0]) if len(node.body) == 1 else [])]


def is_stage(node: Node) -> bool:
    """Whether a node under block loops is a stage: a block, or a loop that is not uniform."""
    return isinstance(node, Block) or (isinstance(node, Loop) and node.kind not in UNIFORM)


def stages_in(nodes: Iterable[Node]) -> list[Loop | Block]:
    """Return the stages at or inside nodes, in order."""
    found: list[Loop | Block] = []
    for node in nodes:
        if isinstance(node, Block) or (isinstance(node, Loop) and is_stage(node)):
            found.append(node)
        elif isinstance(node, Loop):
            found += stages_in(node.body)
    return found


def bound_kinds(*nodes: Node) -> frozenset[str]:
    """Return the thread dimensions to which loops at or inside nodes are bound; x for a tensorized loop of a warp."""
    kinds = {loop.kind for loop in loops_in(*nodes)}
    return frozenset(kinds & {*THREADS} | ({THREADS[0]} if "tensorized" in kinds else set()))


def replicated(program: Program, kernel: Node) -> Mapping[str, frozenset[str]]:
    """Map each block in a replicated stage of a kernel to the thread dimensions along which all threads run it alike.

    A stage is replicated if it writes local buffers alone, and all local buffers that it reads or writes are written by
    stages that are replicated or bound to all dimensions of the kernel.
    """
    stages = {key_of(stage): stage for stage in stages_in([kernel])}
    idle = {key: bound_kinds(kernel) - bound_kinds(stage) for key, stage in stages.items()}
    is_local = {name for name, buffer in program.buffers.items() if buffer.scope == "local"}
    read = {key: {name for b in blocks_in(stage) for name in b.sources} for key, stage in stages.items()}
    written = {key: {name for b in blocks_in(stage) for name in b.targets} for key, stage in stages.items()}
    found = {key for key in stages if idle[key] and written[key] <= is_local}
    while True:
        partial = {name for key in stages if idle[key] and key not in found for name in written[key] & is_local}
        refuted = {key for key in found if (read[key] | written[key]) & partial}
        if not refuted:
            return {block.label: idle[key] for key in found for block in blocks_in(stages[key])}
        found -= refuted


def copied_along(program: Program, buffer: str, alike: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Return the thread dimensions along which each thread has a copy of a local buffer: all blocks that write it
    (perhaps none) are replicated along them (`alike`: the result of `replicated`). The sum of a warp is a copy in each
    thread."""
    copied = frozenset(THREADS)
    for block in program.writers[buffer]:
        sums = any(is_warp_sum(loop) and loop.extent == LANES for loop in program.enclosing(block.label))
        copied &= alike.get(block.label, frozenset()) | ({THREADS[0]} if sums else set())
    return copied


def is_warp_sum(loop: Loop) -> bool:
    """Whether a loop runs over values of a warp's threads, one each, that shuffles combine: over all of a warp, or over
    rows of four."""
    return bool(loop.intrinsic) and find(loop.intrinsic).form == "sum"
