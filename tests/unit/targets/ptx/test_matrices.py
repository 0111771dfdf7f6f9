"""mma.sync, ldmatrix and movmatrix against products of numpy, by the tables of the PTX ISA written down once more.

The tables are those of the sections "Matrix Fragments for mma.m16n8k4" to "m16n8k32" and of "ldmatrix" (PTX ISA 8.7).
"""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from compiler.targets.ptx import PtxError
from tests.unit.targets.ptx import Array, indexed, run

Place = tuple[int, int]
Table = Callable[[int, int, int], Place]
"""The row and the column of element i of a thread: by groupID, threadID_in_group and i."""


def half(i: int, *numbers: int) -> bool:
    return i in numbers


TABLES: dict[tuple[str, str], tuple[Table, int, Table, int]] = {
    ("m16n8k8", "f16"): (
        lambda g, t, i: (g if i in (0, 1) else g + 8, t * 2 + (i & 1)),
        4,
        lambda g, t, i: (t * 2 + i, g),
        2,
    ),
    ("m16n8k16", "f16"): (
        lambda g, t, i: (g if i < 2 or 4 <= i < 6 else g + 8, t * 2 + (i & 1) + (0 if i < 4 else 8)),
        8,
        lambda g, t, i: (t * 2 + (i & 1) + (0 if i < 2 else 8), g),
        4,
    ),
    ("m16n8k4", "tf32"): (lambda g, t, i: (g if i == 0 else g + 8, t), 2, lambda g, t, i: (t, g), 1),
    ("m16n8k8", "tf32"): (
        lambda g, t, i: (g if i in (0, 2) else g + 8, t if i in (0, 1) else t + 4),
        4,
        lambda g, t, i: (t if i == 0 else t + 4, g),
        2,
    ),
    ("m16n8k16", "s8"): (
        lambda g, t, i: (g if i < 4 else g + 8, t * 4 + (i & 3)),
        8,
        lambda g, t, i: (t * 4 + i, g),
        4,
    ),
    ("m16n8k32", "s8"): (
        lambda g, t, i: (g if i < 4 or 8 <= i < 12 else g + 8, t * 4 + (i & 3) + (0 if i < 8 else 16)),
        16,
        lambda g, t, i: (t * 4 + (i & 3) + (0 if i < 4 else 16), g),
        8,
    ),
}
TABLES[("m16n8k8", "bf16")], TABLES[("m16n8k16", "bf16")] = TABLES[("m16n8k8", "f16")], TABLES[("m16n8k16", "f16")]
DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "s8": np.int8}


def fragments(matrix: Array, table: Table, count: int) -> Array:
    """The registers (32, words) of the threads that hold a matrix by a table."""
    rows = [[matrix[table(lane >> 2, lane % 4, i)] for i in range(count)] for lane in range(32)]
    return np.ascontiguousarray(np.array(rows, matrix.dtype)).view(np.uint32)


def accumulators(registers: Array) -> Array:
    """The matrix 16 x 8 of the results."""
    matrix = np.zeros((16, 8), registers.dtype)
    for lane in range(32):
        group, thread = lane >> 2, lane % 4
        for i in range(4):
            matrix[group if i < 2 else group + 8, thread * 2 + (i & 1)] = registers[lane, i]
    return matrix


def names(first: int, count: int) -> str:
    return "{" + ", ".join(f"%r{number}" for number in range(first, first + count)) + "}"


def loaded(array: int, first: int, words: int) -> str:
    """Load the thread's words of an array into registers."""
    address = indexed(array, 4 * words, 10)
    return address + "".join(f"ld.global.nc.u32 %r{first + n}, [%rd10+{4 * n}];\n" for n in range(words))


@pytest.mark.parametrize(("shape", "type_"), TABLES, ids=lambda name: name)
def test_a_product_of_tiles(shape: str, type_: str) -> None:
    rng, depth = np.random.default_rng(0), int(shape.partition("k")[2])
    of_a, count_a, of_b, count_b = TABLES[shape, type_]
    if type_ == "s8":
        a, b = rng.integers(-128, 128, (16, depth)), rng.integers(-128, 128, (depth, 8))
        c, type_of_sum = rng.integers(-1000, 1000, (16, 8)).astype(np.int32), "s32"
    else:
        a, b = rng.integers(-9, 9, (16, depth)) / 4, rng.integers(-9, 9, (depth, 8)) / 4
        c, type_of_sum = rng.standard_normal((16, 8)).astype(np.float32), "f32"
    a, b = a.astype(DTYPES[type_]), b.astype(DTYPES[type_])
    frag_a, frag_b = fragments(a, of_a, count_a), fragments(b, of_b, count_b)
    frag_c = np.zeros((32, 4), c.dtype)
    for lane in range(32):
        for i in range(4):
            frag_c[lane, i] = c[lane // 4 + 8 * (i // 2), lane % 4 * 2 + i % 2]
    inputs = [frag_a, frag_b, frag_c]
    body = loaded(1, 1, frag_a.shape[1]) + loaded(2, 10, frag_b.shape[1]) + loaded(3, 16, 4)
    body += f"mma.sync.aligned.{shape}.row.col.{type_of_sum}.{type_}.{type_}.{type_of_sum} {names(20, 4)}, "
    body += f"{names(1, frag_a.shape[1])}, {names(10, frag_b.shape[1])}, {names(16, 4)};\n"
    outcome = run(body + indexed(4, 16) + f"st.global.v4.u32 [%rd10], {names(20, 4)};", inputs, [np.zeros_like(frag_c)])
    assert outcome.is_correct, outcome.faults
    exact = a.astype(np.float64) @ b.astype(np.float64) + c
    np.testing.assert_allclose(accumulators(outcome.arrays[3]), exact, rtol=1e-6)


def test_tf32_drops_digits() -> None:
    above_one = np.full((32, 2), 1 + 2.0**-11, np.float32)
    body = loaded(1, 1, 2) + "mov.u32 %r10, 0x3F800000; mov.f32 %f1, 0f00000000;\n"
    body += "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%f2, %f3, %f4, %f5}, "
    body += "{%r1, %r2}, {%r10}, {%f1, %f1, %f1, %f1};"
    outcome = run(body + indexed(2, 4) + "st.global.f32 [%rd10], %f2;", [above_one], [np.zeros(32, np.float32)])
    assert (outcome.arrays[1] == 4).all()


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_ldmatrix(count: int, transposed: bool) -> None:
    """Thread 8 m + r has the address of row r of tile m; thread t gets of each tile row t / 4, columns t % 4 * 2 and
    the next; of the transposed tile with .trans."""
    rng = np.random.default_rng(count)
    tiles = rng.integers(0, 2**16, (count, 8, 8)).astype(np.uint16)
    place = rng.permutation(32)[: 8 * count]  # each row of 16 bytes lies anywhere
    memory = np.zeros((32, 8), np.uint16)
    memory[place] = tiles.reshape(-1, 8)
    starts = np.zeros(32, np.uint32)
    starts[: 8 * count] = place * 16
    body = ".shared .align 16 .b8 tile[512];\n" + loaded(1, 1, 4) + loaded(2, 9, 1)
    body += "shl.b32 %r8, %r0, 4; mov.u32 %r7, tile; add.s32 %r8, %r8, %r7; add.s32 %r9, %r9, %r7;\n"
    body += "st.shared.v4.u32 [%r8], {%r1, %r2, %r3, %r4};\nbar.sync 0;\n"
    trans = ".trans" if transposed else ""
    body += f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {names(20, count)}, [%r9];\n" + indexed(
        3, 4 * count
    )
    body += "".join(f"st.global.u32 [%rd10+{4 * n}], %r{20 + n};\n" for n in range(count))
    outcome = run(body, [memory.view(np.uint32), starts], [np.zeros((32, count), np.uint32)])
    assert outcome.is_correct, outcome.faults
    fragments_found = outcome.arrays[2].view(np.uint16).reshape(32, count, 2)
    for lane in range(32):
        for number in range(count):
            tile = tiles[number].T if transposed else tiles[number]
            assert fragments_found[lane, number].tolist() == tile[lane // 4, lane % 4 * 2 : lane % 4 * 2 + 2].tolist()


def test_movmatrix_transposes() -> None:
    tile = np.arange(64, dtype=np.uint16).reshape(8, 8)
    body = loaded(1, 1, 1) + "movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r1;\n" + indexed(2, 4)
    outcome = run(body + "st.global.u32 [%rd10], %r2;", [tile.view(np.uint32)], [np.zeros((8, 4), np.uint32)])
    assert (outcome.arrays[1].view(np.uint16) == tile.T).all()


def test_warps_of_a_product_must_be_whole() -> None:
    mma = "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%f2, %f3, %f4, %f5}, "
    mma += "{%r0, %r0}, {%r0}, {%f1, %f1, %f1, %f1};"
    with pytest.raises(PtxError, match="by a warp of fewer than 32 threads"):
        run("mov.f32 %f1, 0f00000000;\n" + mma, [], threads=16)
    torn = "mov.f32 %f1, 0f00000000; setp.lt.u32 %p1, %r0, 40;\n@%p1 " + mma
    (fault,) = run(torn, [], threads=64).faults
    assert fault.kind == "divergent warp" and fault.threads == (40, 32)


def test_rows_of_ldmatrix_are_aligned_and_inside() -> None:
    body = ".shared .align 16 .b8 tile[128];\n"
    body += "shl.b32 %r1, %r0, 2; st.shared.u32 [%r1], %r0;\nbar.sync 0; and.b32 %r2, %r0, 7;\n"
    body += "shl.b32 %r2, %r2, 4; add.s32 %r2, %r2, OFF;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r3}, [%r2];"
    assert run(body.replace("OFF", "0"), []).is_correct
    assert [f.kind for f in run(body.replace("OFF", "8"), []).faults] == [
        "misaligned access",
        "access outside of memory",
    ]
    (fault,) = run(body.replace("OFF", "16"), []).faults
    assert fault.kind == "access outside of memory" and fault.place == "tile+128" and fault.threads == (28,)
