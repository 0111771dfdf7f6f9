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
def multiply_matrices(at: PtxInstruction) -> Prepared:
    """`mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 d, a, b, c`: d = a b + c, summed in float64 or int64."""
    types = types_of(at)
    shapes = modifiers_of(at, "sync", "aligned", "row", "col", *SHAPES, "satfinite") & set(SHAPES)
    if len(shapes) != 1 or len(types) != 4 or types[1] not in SHAPES[shape := shapes.pop()] or "satfinite" in at.parts:
        raise at.refused("a shape with other types")
    depth, (result, of_a, of_b, of_c) = int(shape.partition("k")[2]), types
    layouts = left(of_a, depth), right(of_b, depth), accumulator()
    to, *operands = at.operands
    wide = np.int64 if result == "s32" else np.float64

    def run(lanes: PtxLanes, mask: Mask) -> None:
        warps = whole_warps(lanes, mask, at)
        a, b, c = (
            _gathered(lanes, operand, type_, layout, warps, mask, at).astype(wide)
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
    at: PtxInstruction,
) -> Array:
    """The matrix (warps, rows, columns) of the fragments in an operand's registers."""
    registers = [lanes.read(item, "b32", mask, at)[warps] for item in _items(operand)]
    words = np.ascontiguousarray(np.stack(registers, axis=2))
    if type_ == "tf32":
        words = words & _TF32
    elements = words.view(dtype_of_type(type_)).reshape(len(warps), WARP, -1)
    if elements.shape[2] != layout.rows.shape[1]:
        raise at.refused("another number of registers")
    matrix = np.zeros((len(warps), *layout.shape), elements.dtype)
    matrix[:, layout.rows, layout.columns] = elements
    return matrix


def whole_warps(lanes: PtxLanes, mask: Mask, at: PtxInstruction) -> Array:
    """Return the lanes (warps, 32) of the warps that run. Raises PtxError for a warp of fewer threads."""
    active = lanes.lanes_of(mask)
    if len(active) % WARP or lanes.per_block % WARP:
        raise at.refused("by a warp of fewer than 32 threads")
    return active.reshape(-1, WARP)


@effect("ldmatrix")
def load_matrices(at: PtxInstruction) -> Prepared:
    """`ldmatrix.sync.aligned.m8n8.x4{.trans}.shared.b16 d, [a]`: 8 x 8 tiles of 16 bits, tile n by the rows at the
    addresses of threads 8n to 8n + 7; thread t gets row t / 4, columns t % 4 * 2 and the next; of the transposed tile
    with `.trans`."""
    modifiers = modifiers_of(at, "sync", "aligned", "m8n8", "x1", "x2", "x4", "trans", "shared", "shared::cta")
    count = next(int(part[1]) for part in (*at.parts, "x1") if part in ("x1", "x2", "x4"))
    to, address = _items(at.operands[0]), at.operands[1]
    if types_of(at) != ["b16"] or len(to) != count or "m8n8" not in modifiers:
        raise at.refused("other tiles than of 8 x 8 times 16 bits")

    def run(lanes: PtxLanes, mask: Mask) -> None:
        warps = whole_warps(lanes, mask, at)
        rows = lanes.addresses(address, mask, at)[warps]
        starts = rows[:, : 8 * count].reshape(-1)
        given = lanes.access(warps[:, : 8 * count].reshape(-1), at)
        given.report("misaligned access", starts % 16 != 0, lambda n: lanes.shared.place(int(starts[n])))
        flat = warps.reshape(-1)
        for number, register in enumerate(to):
            tile = _tile(lanes, at, rows[:, 8 * number : 8 * number + 8], flat, "trans" in modifiers)
            lanes.write(register, spread(lanes, tile, mask, flat), "b32", mask)

    return run


def _tile(lanes: PtxLanes, at: PtxInstruction, rows: Array, flat: Array, is_transposed: bool) -> Array:
    """The words that the threads of warps get of one tile, by its rows' addresses (warps, 8)."""
    lane, access = np.arange(WARP), lanes.access(flat, at)
    if not is_transposed:
        addresses = rows[:, lane // 4] + lane % 4 * 4
        return loaded(lanes, "shared", addresses.reshape(-1), access, 4, 1)[:, 0]
    halves = [
        loaded(lanes, "shared", (rows[:, lane % 4 * 2 + half] + lane // 4 * 2).reshape(-1), access, 2, 1)[:, 0]
        for half in (0, 1)
    ]
    return np.ascontiguousarray(np.stack(halves, axis=1)).view(np.uint32)[:, 0]


@effect("movmatrix")
def transpose_matrix(at: PtxInstruction) -> Prepared:
    """`movmatrix.sync.aligned.m8n8.trans.b16 d, a`: the fragment of the transposed 8 x 8 tile."""
    if modifiers_of(at, "sync", "aligned", "m8n8", "trans") != {"sync", "aligned", "m8n8", "trans"}:
        raise at.refused()

    def run(lanes: PtxLanes, mask: Mask) -> None:
        warps = whole_warps(lanes, mask, at)
        words = np.ascontiguousarray(lanes.read(at.operands[1], "b32", mask, at)[warps])
        tiles = words.view(np.uint16).reshape(-1, 8, 8).transpose(0, 2, 1)
        moved = np.ascontiguousarray(tiles).reshape(-1).view(np.uint32)
        lanes.write(at.operands[0], spread(lanes, moved, mask, warps.reshape(-1)), "b32", mask)

    return run
