"""A scheduled program as an indented tree, to read between two steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from compiler.program.tree import Alloc, Block, Buffer, Loop, Node, Program

_SIGNS = {"add": "+=", "mul": "*="}


def outline(program: Program) -> str:
    """Print loops with their extents and kinds, allocations, and the computation of each block, one per line.

    alloc C.local: 8x16 local
    m = 12 parallel
      C += f(A, B), guarded

    >>> A, k = te.placeholder((12, 8), name="A"), te.reduce_axis(8, "k")
    >>> B = te.compute((12,), lambda m: te.sum(A[m, k], axis=k), name="B")
    >>> print(strata.schedule.outline(Schedule(te.function("f", [A], B)).program))
    m = 12
      k = 8
        B += f(A)
    """
    return "\n".join(_lines(program.body, ""))


def _lines(nodes: Iterable[Node], indent: str) -> Iterator[str]:
    for node in nodes:
        match node:
            case Alloc(buffer):
                yield f"{indent}alloc {buffer_text(buffer)}"
            case Loop():
                kind = "" if node.kind == "serial" else f" {node.kind}"
                yield f"{indent}{node.label} = {node.extent}{kind}"
                yield from _lines(node.body, indent + "  ")
            case Block():
                yield f"{indent}{block_text(node)}"


def buffer_text(buffer: Buffer) -> str:
    """A buffer's name and shape, and its scope unless it is global: `C.local: 8x16 local`."""
    scope = "" if buffer.scope == "global" else f" {buffer.scope}"
    return f"{buffer.name}: {'x'.join(map(str, buffer.shape))}{scope}"


def block_text(block: Block) -> str:
    """A block as an assignment to its targets from its sources, with its label if that is another name: `C += f(A, B),
    guarded`."""
    writes = ", ".join(block.targets)
    reads = ", ".join(block.sources)
    label = "" if block.label == writes else f"{block.label}: "
    return f"{label}{writes} {sign(block)} f({reads})" + (", guarded" if block.guard else "")


def sign(block: Block) -> str:
    """The assignment operator of a block by its first combiner, also of a joint reduction: `=` without one, `+=`,
    `max=`, or `combined with`."""
    if not block.combiners:
        return "="
    combiner = block.combiners[0]
    return _SIGNS.get(combiner, f"{combiner}=") if isinstance(combiner, str) else "combined with"
