"""What the threads of a warp do together: matrices loaded from shared memory, products of small ones, exchanges.

Of a small matrix a thread's value is (n, elements): its registers one behind the other. Source of the layouts: NVIDIA's
PTX ISA, "Matrix fragments for mma.m16n8k16" and "mma.m16n8k8".
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
"""The row of a thread, and which of its four it is."""
EDGE, BYTES = 8, 16
"""A loaded matrix has so many rows, of so many bytes."""


def load_matrix(lanes: Threads, op: nvgpu.LoadMatrixOp, active: Bools) -> None:
    """Matrices of 8 rows of 16 bytes, whose rows the first threads of a warp name."""
    _check_whole(lanes, op, active)
    memory, type_ = lanes.memories[op.source], op.result.type
    assert isinstance(type_, VectorType)
    count, each = type_.get_shape()
    width = BYTES // memory.dtype.itemsize
    named = active & (np.arange(lanes.count) % WARP < EDGE * count)
    index = lanes.side_by_side(op, memory, op.indices, width, named)
    rows = memory.read(index, lanes.access(op, named)).reshape(-1, WARP, width)
    matrices = rows[:, : EDGE * count].reshape(-1, count, EDGE, width)
    which, pair = np.arange(count)[None, :, None], COLUMN * each + np.arange(each)
    loaded = matrices[:, which, pair, ROW] if op.transpose.value.data else matrices[:, which, ROW, pair]
    lanes.values[op.result] = loaded.reshape(lanes.count, count * each)


def multiply(lanes: Threads, op: nvgpu.MmaOp, active: Bools) -> None:
    """c + a b, in f32; of tf32 the last 13 bits of operands do not count."""
    _check_whole(lanes, op, active)
    assert isinstance(op.a.type, VectorType)
    is_tf32 = isinstance(op.a.type.element_type, Float32Type)
    (a_at, b_at), each = (_SINGLE, 1) if is_tf32 else (_PAIRS, 2)
    a, b = (_held(lanes, value, size) for value, size in ((op.a, 4 * each), (op.b, 2 * each)))
    if is_tf32:
        a, b = ((x.view(np.uint32) & 0xFFFFE000).view(np.float32) for x in (a, b))
    left, right, sums = _matrix(a, a_at, (16, 8 * each)), _matrix(b, b_at, (8 * each, 8)), _held(lanes, op.c, 4)
    sums_after = _matrix(sums, _SUMS, (16, 8)) + left.astype(np.float32) @ right.astype(np.float32)
    lanes.values[op.result] = sums_after[:, _SUMS[0], _SUMS[1]].reshape(lanes.count, 4)


def shuffle(lanes: Threads, op: ShuffleOp, active: Bools) -> None:
    """The value of the thread whose number differs in a bit. Raises InputError for another mode."""
    _check_whole(lanes, op, active)
    if op.mode.data != ShuffleMode.XOR:
        raise InputError(f"'{op.name}' has no meaning here but with xor")
    value = np.broadcast_to(lanes.values[op.value], (lanes.count,)).reshape(-1, WARP)
    lanes.values[op.result] = value[:, np.arange(WARP) ^ int(lanes.values[op.offset])].reshape(-1)
    lanes.values[op.there] = np.asarray(True)


def _check_whole(lanes: Threads, op: Operation, active: Bools) -> None:
    """All threads of a warp take part, or none: that is reported, and that blocks have whole warps taken for granted.

    Raises InputError for blocks of parts of warps.
    """
    if lanes.count % WARP:
        raise InputError(f"'{op.name}' is for whole warps, and a block has {lanes.count} threads")
    warps = active.reshape(-1, WARP)
    torn = warps.any(axis=1) & ~warps.all(axis=1)
    if torn.any():
        first = int(np.argmax(torn)) * WARP
        taking_part, missing = (first + int(np.argmax(side)) for side in (warps[first // WARP], ~warps[first // WARP]))
        lanes.report(Fault("divergent warp", lanes.words(op), "", (), (lanes.number,), (taking_part, missing)))


def _held(lanes: Threads, value: SSAValue, size: int) -> Values:
    """The registers of each thread: (n, elements)."""
    return np.ascontiguousarray(np.broadcast_to(lanes.values[value], (lanes.count, size)))


def _matrix(registers: Values, at: tuple[Ints, Ints], shape: tuple[int, int]) -> Values:
    """What the threads of each warp hold as matrices."""
    made = np.zeros((len(registers) // WARP, *shape), registers.dtype)
    made[:, at[0], at[1]] = registers.reshape(-1, *np.broadcast_shapes(at[0].shape, at[1].shape))
    return made


def _places(registers: tuple[Ints, int], pair: Ints) -> tuple[tuple[Ints, Ints], tuple[Ints, Ints]]:
    """Rows and columns of the elements of operands, (32, registers, elements of one)."""
    first, second = registers
    a = (ROW + 8 * (first % 2), pair + second * (first // 2))
    b = (pair + second * np.arange(2)[None, :, None], ROW)
    return a, b


_FOUR, _TWO = np.arange(4)[None, :, None], np.arange(2)
_PAIRS = _places((_FOUR, 8), 2 * COLUMN + _TWO)
_SINGLE = _places((_FOUR, 4), COLUMN)
_SUMS = (ROW + 8 * _TWO[None, :, None], 2 * COLUMN + _TWO)
