"""`operator`: the main operator of a program, in a few words."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.arith import MulfOp, MuliOp

from compiler.analysis.cost import flops, instances
from compiler.program.body import Apply
from compiler.program.tree import Block, Program, blocks_in
from compiler.support.text import counted

Extents = Iterable[int]
PRODUCTS = (MulfOp, MuliOp)


def operator(program: Program) -> str:
    """Describe a program by its block with the most operations: its operator, window, reduce extents and result
    extents. If it is one of several products, they are counted and the extents are those of the largest. `nothing` for
    a program without blocks.

    `convolution 3x3, 64 to 1x128x28x28`, `2 products 768 to 128x768`, `reduction 768 to 128`, `elementwise 1x64x56x56`.
    """
    blocks = list(blocks_in(*program.body))
    main = max(blocks, key=lambda block: _operations(program, block), default=None)
    if main is None:
        return "nothing"
    name, windows = _kind(main), _windows(main)
    alike = sum(_kind(block) == name and _windows(block) == windows for block in blocks) if name == "product" else 1
    summed = [axis.size for n, axis in enumerate(main.axes) if axis.is_reduce and n not in windows]
    shape = _by([axis.size for axis in main.axes if not axis.is_reduce]) or "a scalar"
    extents = f"{_by(summed)} to {shape}" if summed else shape
    sizes = [main.axes[n].size for n in windows]
    window = f"{_by([size for size in sizes if size > 1] or sizes[-2:])}, " if windows else ""
    return f"{counted(alike, name)} {window}{extents}" if alike > 1 else f"{name} {window}{extents}"


def _operations(program: Program, block: Block) -> int:
    return instances(program, block) * max(1, flops(block))


def _kind(block: Block) -> str:
    """Classify a block by its axes and reads: elementwise, gather, pooling, convolution, depthwise convolution, product
    or reduction."""
    multiplies = len(block.reads) > 1 and any(
        isinstance(scalar, Apply) and scalar.kind in PRODUCTS for scalar in block.body
    )
    reduces = [n for n, axis in enumerate(block.axes) if axis.is_reduce]
    if not reduces:
        return "gather" if block.table is not None else "elementwise"
    if windows := _windows(block):
        if not multiplies:
            return "pooling"
        return "convolution" if len(windows) < len(reduces) else "depthwise convolution"
    return "product" if multiplies else "reduction"


def _windows(block: Block) -> list[int]:
    """The positions of the reduce axes of a window, ascending: those in an index together with a spatial axis. With
    several reads, only those that are also an index alone, as in a filter.

    y[i] += x[i + r] * w[r]: r is in i + r with the spatial i, and alone in w's index, so [r].
    """
    forms = [form.variables() for access in block.reads for form in access.index]
    spatial = {n for n, axis in enumerate(block.axes) if not axis.is_reduce}
    reduces = [n for n, axis in enumerate(block.axes) if axis.is_reduce]
    beside = [n for n in reduces if any(n in form and form & spatial for form in forms)]
    return beside if len(block.reads) == 1 else [n for n in beside if {n} in forms]


def _by(extents: Extents) -> str:
    return "x".join(map(str, extents))
