"""Collective ops of a warp: ldmatrix, mma and shuffles.

The value of a fragment is (n, elements): each thread's registers in order. Source of the layouts: NVIDIA's PTX ISA,
"Matrix fragments for mma.m16n8k16" and "mma.m16n8k8".
"""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import Float32Type, VectorType
from xdsl.ir import Operation, SSAValue

from compiler.dialects.upstream import nvgpu
from compiler.dialects.upstream.gpu import ShuffleMode, ShuffleOp
from compiler.support.errors import InputError
from compiler.targets.simt.access import Bools, Fault, Ints, Values
from compiler.targets.simt.buffers import WARP
from compiler.targets.simt.threads import Threads

LANE = np.arange(WARP)[:, None, None]
ROW, COLUMN = LANE // 4, LANE % 4
"""The row of a thread's elements in an MMA tile, and its column among the four threads of the row."""
EDGE, BYTES = 8, 16
"""The rows of an 8x8 matrix of ldmatrix, and the bytes of a row."""


def load_matrix(lanes: Threads, op: nvgpu.LoadMatrixOp, active: Bools) -> None:
    """Load n matrices of 8 rows of 16 bytes; the first 8 n threads of a warp have the addresses of the rows. Thread t
    gets the elements of row t / 4 from column t % 4 on, as many as a register has, of each matrix, or of the transposed
    one if the op has `transpose`. Reports a partly active warp and misaligned rows."""
    _check_full_warps(lanes, op, active)
    memory, type_ = lanes.memories[op.source], op.result.type
    assert isinstance(type_, VectorType)
    count, register_elements = type_.get_shape()
    width = BYTES // memory.dtype.itemsize
    has_address = active & (np.arange(lanes.count) % WARP < EDGE * count)
    index = lanes.consecutive(op, memory, op.indices, width, has_address)
    rows = memory.read(index, lanes.access(op, has_address)).reshape(-1, WARP, width)
    matrices = rows[:, : EDGE * count].reshape(-1, count, EDGE, width)
    matrix, column = np.arange(count)[None, :, None], COLUMN * register_elements + np.arange(register_elements)
    loaded = matrices[:, matrix, column, ROW] if op.transpose.value.data else matrices[:, matrix, ROW, column]
    lanes.values[op.result] = loaded.reshape(lanes.count, count * register_elements)


def multiply(lanes: Threads, op: nvgpu.MmaOp, active: Bools) -> None:
    """Compute a b + c in f32 for each warp; tf32 operands lose their last 13 bits. Reports a partly active warp."""
    _check_full_warps(lanes, op, active)
    assert isinstance(op.a.type, VectorType)
    is_tf32 = isinstance(op.a.type.element_type, Float32Type)
    (a_index, b_index), register_elements = (_SINGLE, 1) if is_tf32 else (_PAIRS, 2)
    a, b = (
        _fragments(lanes, value, size) for value, size in ((op.a, 4 * register_elements), (op.b, 2 * register_elements))
    )
    if is_tf32:
        a, b = ((x.view(np.uint32) & 0xFFFFE000).view(np.float32) for x in (a, b))
    left, right, sums = (
        _matrix(a, a_index, (16, 8 * register_elements)),
        _matrix(b, b_index, (8 * register_elements, 8)),
        _fragments(lanes, op.c, 4),
    )
    product = _matrix(sums, _SUMS, (16, 8)) + left.astype(np.float32) @ right.astype(np.float32)
    lanes.values[op.result] = product[:, _SUMS[0], _SUMS[1]].reshape(lanes.count, 4)


def shuffle(lanes: Threads, op: ShuffleOp, active: Bools) -> None:
    """Set the result in each thread to the value of the thread of its warp whose lane is its own xor the offset, which
    all threads share. Reports a partly active warp. Raises InputError for a mode other than xor."""
    _check_full_warps(lanes, op, active)
    if op.mode.data != ShuffleMode.XOR:
        raise InputError(f"'{op.name}' has no meaning here but with xor")
    value = np.broadcast_to(lanes.values[op.value], (lanes.count,)).reshape(-1, WARP)
    lanes.values[op.result] = value[:, np.arange(WARP) ^ int(lanes.values[op.offset])].reshape(-1)
    lanes.values[op.there] = np.asarray(True)


def _check_full_warps(lanes: Threads, op: Operation, active: Bools) -> None:
    """Report a warp of which only some threads are active. Raises InputError for a block with a partial warp."""
    if lanes.count % WARP:
        raise InputError(f"'{op.name}' is for whole warps, and a block has {lanes.count} threads")
    warps = active.reshape(-1, WARP)
    is_partial = warps.any(axis=1) & ~warps.all(axis=1)
    if is_partial.any():
        first = int(np.argmax(is_partial)) * WARP
        active_thread, inactive_thread = (
            first + int(np.argmax(side)) for side in (warps[first // WARP], ~warps[first // WARP])
        )
        lanes.report(
            Fault("divergent warp", lanes.words(op), "", (), (lanes.number,), (active_thread, inactive_thread))
        )


def _fragments(lanes: Threads, value: SSAValue, size: int) -> Values:
    return np.ascontiguousarray(np.broadcast_to(lanes.values[value], (lanes.count, size)))


def _matrix(registers: Values, index: tuple[Ints, Ints], shape: tuple[int, int]) -> Values:
    """Return the matrix (warps, *shape) of each warp, assembled from registers (n, elements); `index` are the rows and
    columns of a warp's elements."""
    matrices = np.zeros((len(registers) // WARP, *shape), registers.dtype)
    matrices[:, index[0], index[1]] = registers.reshape(-1, *np.broadcast_shapes(index[0].shape, index[1].shape))
    return matrices


def _operand_indices(registers: tuple[Ints, int], columns: Ints) -> tuple[tuple[Ints, Ints], tuple[Ints, Ints]]:
    """Return rows and columns of the elements of the operands a and b, each (32, registers, elements of a register).
    Example: for f16, register 1 of a in thread 0 has row 8 and columns 0 and 1."""
    register, column_stride = registers
    a = (ROW + 8 * (register % 2), columns + column_stride * (register // 2))
    b = (columns + column_stride * np.arange(2)[None, :, None], ROW)
    return a, b


_FOUR, _TWO = np.arange(4)[None, :, None], np.arange(2)
_PAIRS = _operand_indices((_FOUR, 8), 2 * COLUMN + _TWO)
_SINGLE = _operand_indices((_FOUR, 4), COLUMN)
_SUMS = (ROW + 8 * _TWO[None, :, None], 2 * COLUMN + _TWO)
