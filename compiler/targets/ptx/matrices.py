"""Tiles of a warp: mma.sync, ldmatrix, movmatrix. Which thread holds which element is written in fragments.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from compiler.targets.ptx.fragments import SHAPES, FragmentLayout, accumulator, left, right
from compiler.targets.ptx.loads import loaded, spread
from compiler.targets.ptx.shadow import WARP
from compiler.targets.ptx.syntax import PtxInstruction, PtxOperand, RegisterList
from compiler.targets.ptx.table import Prepared, effect, modifiers_of, types_of
from compiler.targets.ptx.values import Array, Mask, dtype_of_type

if TYPE_CHECKING:
    from compiler.targets.ptx.lanes import PtxLanes

_TF32 = np.uint32(0xFFFFE000)


@effect("mma")
def multiply_matrices(instruction: PtxInstruction) -> Prepared:
    """Prepare `mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 d, a, b, c` or another shape: d = a b + c for each
    warp, summed in float64 or int64, then rounded or wrapped to the result's type. Raises PtxError for `.satfinite` and
    for combinations of shape and types that are not implemented."""
    types = types_of(instruction)
    shapes = modifiers_of(instruction, "sync", "aligned", "row", "col", *SHAPES, "satfinite") & set(SHAPES)
    if (
        len(shapes) != 1
        or len(types) != 4
        or types[1] not in SHAPES[shape := shapes.pop()]
        or "satfinite" in instruction.parts
    ):
        raise instruction.refused("a shape with other types")
    depth, (result, of_a, of_b, of_c) = int(shape.partition("k")[2]), types
    layouts = left(of_a, depth), right(of_b, depth), accumulator()
    to, *operands = instruction.operands
    wide = np.int64 if result == "s32" else np.float64

    def run(lanes: PtxLanes, mask: Mask) -> None:
        warps = whole_warps(lanes, mask, instruction)
        a, b, c = (
            _gathered(lanes, operand, type_, layout, warps, mask, instruction).astype(wide)
            for operand, type_, layout in zip(operands, (of_a, of_b, of_c), layouts, strict=True)
        )
        product = c + a @ b
        rows, columns = layouts[2].rows, layouts[2].columns
        fragments = product[:, rows, columns].astype(dtype_of_type(result))
        registers = _items(to)
        bits = np.ascontiguousarray(fragments).view(np.uint32).reshape(-1, len(registers))
        for number, register in enumerate(registers):
            lanes.write(register, spread(lanes, bits[:, number], mask, warps.reshape(-1)), "b32", mask)

    return run


def _items(operand: PtxOperand) -> tuple[PtxOperand, ...]:
    return operand.items if isinstance(operand, RegisterList) else (operand,)


def _gathered(
    lanes: PtxLanes,
    operand: PtxOperand,
    type_: str,
    layout: FragmentLayout,
    warps: Array,
    mask: Mask,
    instruction: PtxInstruction,
) -> Array:
    """Return the matrices (warps, rows, columns) in an operand's registers, distributed by a layout. Raises PtxError
    for a number of registers other than the layout's."""
    registers = [lanes.read(item, "b32", mask, instruction)[warps] for item in _items(operand)]
    words = np.ascontiguousarray(np.stack(registers, axis=2))
    if type_ == "tf32":
        words = words & _TF32
    elements = words.view(dtype_of_type(type_)).reshape(len(warps), WARP, -1)
    if elements.shape[2] != layout.rows.shape[1]:
        raise instruction.refused("another number of registers")
    matrix = np.zeros((len(warps), *layout.shape), elements.dtype)
    matrix[:, layout.rows, layout.columns] = elements
    return matrix


def whole_warps(lanes: PtxLanes, mask: Mask, instruction: PtxInstruction) -> Array:
    """Return the numbers of the lanes of a mask (None: all) as (warps, 32). Raises PtxError if blocks, or the active
    lanes, are no whole number of warps."""
    active = lanes.lanes_of(mask)
    if len(active) % WARP or lanes.per_block % WARP:
        raise instruction.refused("by a warp of fewer than 32 threads")
    return active.reshape(-1, WARP)


@effect("ldmatrix")
def load_matrices(instruction: PtxInstruction) -> Prepared:
    """Prepare `ldmatrix.sync.aligned.m8n8.x4{.trans}.shared.b16 d, [a]`, which loads up to four 8 x 8 tiles of 16 bits.
    Threads 8n to 8n + 7 have the addresses of the rows of tile n. Thread t gets the elements of row t / 4 and columns t
    % 4 * 2 and t % 4 * 2 + 1, with `.trans` of the transposed tile. A row that is not at a multiple of 16 bytes is a
    fault. Raises PtxError for other tiles."""
    modifiers = modifiers_of(instruction, "sync", "aligned", "m8n8", "x1", "x2", "x4", "trans", "shared", "shared::cta")
    count = next(int(part[1]) for part in (*instruction.parts, "x1") if part in ("x1", "x2", "x4"))
    to, address = _items(instruction.operands[0]), instruction.operands[1]
    if types_of(instruction) != ["b16"] or len(to) != count or "m8n8" not in modifiers:
        raise instruction.refused("other tiles than of 8 x 8 times 16 bits")

    def run(lanes: PtxLanes, mask: Mask) -> None:
        warps = whole_warps(lanes, mask, instruction)
        rows = lanes.addresses(address, mask, instruction)[warps]
        starts = rows[:, : 8 * count].reshape(-1)
        given = lanes.access(warps[:, : 8 * count].reshape(-1), instruction)
        given.report("misaligned access", starts % 16 != 0, lambda n: lanes.shared.place(int(starts[n])))
        flat = warps.reshape(-1)
        for number, register in enumerate(to):
            tile = _tile(lanes, instruction, rows[:, 8 * number : 8 * number + 8], flat, "trans" in modifiers)
            lanes.write(register, spread(lanes, tile, mask, flat), "b32", mask)

    return run


def _tile(lanes: PtxLanes, instruction: PtxInstruction, rows: Array, flat: Array, is_transposed: bool) -> Array:
    """Return the 32-bit word (lanes,) of a tile, or of the transposed tile, for each of the lanes `flat`, which are
    whole warps; `rows` (warps, 8) are the addresses of the tile's rows."""
    lane, access = np.arange(WARP), lanes.access(flat, instruction)
    if not is_transposed:
        addresses = rows[:, lane // 4] + lane % 4 * 4
        return loaded(lanes, "shared", addresses.reshape(-1), access, 4, 1)[:, 0]
    halves = [
        loaded(lanes, "shared", (rows[:, lane % 4 * 2 + half] + lane // 4 * 2).reshape(-1), access, 2, 1)[:, 0]
        for half in (0, 1)
    ]
    return np.ascontiguousarray(np.stack(halves, axis=1)).view(np.uint32)[:, 0]


@effect("movmatrix")
def transpose_matrix(instruction: PtxInstruction) -> Prepared:
    """Prepare `movmatrix.sync.aligned.m8n8.trans.b16 d, a`: each warp gets the fragments of the transposed 8 x 8 tile
    of 16 bits. Raises PtxError for other forms."""
    if modifiers_of(instruction, "sync", "aligned", "m8n8", "trans") != {"sync", "aligned", "m8n8", "trans"}:
        raise instruction.refused()

    def run(lanes: PtxLanes, mask: Mask) -> None:
        warps = whole_warps(lanes, mask, instruction)
        words = np.ascontiguousarray(lanes.read(instruction.operands[1], "b32", mask, instruction)[warps])
        tiles = words.view(np.uint16).reshape(-1, 8, 8).transpose(0, 2, 1)
        moved = np.ascontiguousarray(tiles).reshape(-1).view(np.uint32)
        lanes.write(instruction.operands[0], spread(lanes, moved, mask, warps.reshape(-1)), "b32", mask)

    return run
