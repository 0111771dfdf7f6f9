"""Tensorized matmuls: exact or within their bound, on every shape; what the machine code is; tiles, emulated."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import compiler
from compiler import recipes, te, universe
from compiler.analysis import tensorized
from compiler.analysis.whole_nests import absorbed
from compiler.intrinsics import INTRINSICS
from compiler.lowering.low_to_llvm import emit
from compiler.schedule import Schedule
from compiler.support.errors import LoweringError, ScheduleError, TargetError
from compiler.targets.cpu import tiles
from compiler.targets.cpu.compile import compile_llvm
from compiler.types.machines import MACHINES, Machine, detect_machine, host
from strata.passes import parse, parse_passes, run
from tests.emulated_tiles import emulated
from tests.sample import pairs
from tests.scheduled import check, lacks

DTYPES = {"i32": ("u8", "i8", "i32"), "f32": ("bf16", "bf16", "f32")}
SIGNS = {"i8i8": ("i8", "i8", "i32"), "u8u8": ("u8", "u8", "i32")}
NEON = [name for name in INTRINSICS if name.startswith("dot.") and name.endswith(".neon")]
DOTS = [name for name in INTRINSICS if name.startswith("dot.") and name not in NEON]
SHAPES = [(16, 16, 64), (13, 11, 37), (1, 1, 1), (7, 33, 16), (3, 30, 100), (40, 5, 20), (6, 64, 130)]


def matmul(kind: str, m: int, k: int, n: int) -> te.Function:
    """C = A B, bf16 by bf16 in f32, or bytes in i32: u8 by i8, or those of `SIGNS`."""
    left, right, wide = {**DTYPES, **SIGNS}[kind]
    a, b = te.placeholder((m, k), left, name="A"), te.placeholder((k, n), right, name="B")
    return te.function("mm", [a, b], [te.nn.matmul(a, b, dtype=wide, name="C")])


def gebp(intrinsic: str, kc: int = 64) -> Callable[[Schedule], object]:
    """A small register tile, several cache tiles."""
    return lambda s: recipes.quantised_gebp(s, s.get_block("C"), intrinsic, 12, kc, 64, 3, 2)


def scheduled(function: te.Function, apply: Callable[[Schedule], object]) -> Schedule:
    s = Schedule(compiler.lower(function))
    apply(s)
    return s


def drawn(kind: str, m: int, k: int, n: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Operands over the whole range of bytes, or normal ones."""
    rng = np.random.default_rng(m * k + n)
    if kind == "i32":
        return rng.integers(0, 256, (m, k), np.uint8), rng.integers(-128, 128, (k, n), np.int8)
    left, right = (rng.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in ((m, k), (k, n)))
    return left, right


def present(intrinsic: str) -> None:
    """Skip where the processor lacks the instruction."""
    if lacks(intrinsic):
        pytest.skip(f"this processor has no {lacks(intrinsic)}")


def with_features(*names: str) -> Machine:
    """This machine, whatever code is made for, with other features."""
    features = [f for f in detect_machine().features.split(",") if f[1:] not in names]
    return replace(
        detect_machine(), cpu="sapphirerapids", features=",".join([*features, *(f"+{name}" for name in names)])
    )


def low(s: Schedule) -> Any:
    """The low-level module of a schedule, ready for emission."""
    module = s.module.clone()
    run(universe.context(), module, parse_passes("loop-to-low,promote-buffers,extend-floats,plan-buffers"))
    return module


# --- results --------------------------------------------------------------------------------------------------------


@pytest.mark.sampled
@pytest.mark.parametrize(("shape", "kind"), pairs(SHAPES, list(DTYPES)))
def test_a_matmul_of_any_shape(kind: str, shape: tuple[int, int, int]) -> None:
    name = "dot.i32.u8i8x4" if kind == "i32" else "dot.f32.bf16x2"
    done = check(matmul(kind, *shape), gebp(name), native=not lacks(name))
    assert done.verify()


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "kc"), pairs(DOTS, [16, 64]))
def test_every_width(name: str, kc: int) -> None:
    present(name)
    kind = name.split(".")[1]
    check(matmul(kind, 9, 40, 50), gebp(name, kc))


def kind_of(name: str) -> str:
    """The kind of matmul that a dot product computes."""
    _, wide, operands, *_ = name.split(".")
    return next((kind for kind in SIGNS if operands.startswith(kind)), wide)


@pytest.mark.parametrize("name", NEON)
def test_dot_products_of_neon(name: str) -> None:
    """Interpreted and proved; tests/e2e/test_aarch64.py runs them."""
    assert check(matmul(kind_of(name), 9, 40, 50), gebp(name, 16), native=False).verify()
    module = low(scheduled(matmul(kind_of(name), 9, 40, 50), gebp(name)))
    needed = INTRINSICS[name].features[0][0]
    with pytest.raises(LoweringError, match=f"needs {needed} of the processor, which 'cortex-a72' lacks"):
        emit(module, MACHINES["cortex-a72"])
    assert f"@{INTRINSICS[name].llvm}(" in emit(module, MACHINES["neoverse-v2"])


@pytest.mark.parametrize("shape", SHAPES)
def test_bytes_are_exact(shape: tuple[int, int, int]) -> None:
    present("dot.i32.u8i8x4")
    a, b = drawn("i32", *shape)
    kernel = compiler.build(scheduled(matmul("i32", *shape), gebp("dot.i32.u8i8x4")))
    np.testing.assert_array_equal(kernel(a, b), a.astype(np.int32) @ b.astype(np.int32))


@pytest.mark.parametrize("shape", SHAPES)
def test_bf16_is_within_its_bound(shape: tuple[int, int, int]) -> None:
    present("dot.f32.bf16x2")
    a, b = drawn("f32", *shape)
    kernel = compiler.build(scheduled(matmul("f32", *shape), gebp("dot.f32.bf16x2")))
    wide = a.astype(np.float64), b.astype(np.float64)
    bound = (shape[1] + 1) * 2.0**-23 * (np.abs(wide[0]) @ np.abs(wide[1]))
    assert (np.abs(kernel(a, b) - wide[0] @ wide[1]) <= bound).all()


def test_padding_keeps_infinities_out() -> None:
    present("dot.f32.bf16x2")
    a, b = drawn("f32", 3, 5, 7)
    a[1, 4] = b[4, 2] = np.inf
    kernel = compiler.build(scheduled(matmul("f32", 3, 5, 7), gebp("dot.f32.bf16x2")))
    with np.errstate(invalid="ignore"):
        want = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_array_equal(np.isnan(kernel(a, b)), np.isnan(want))


def test_interleaving() -> None:
    b = te.placeholder((8, 32), "i8", name="B")
    f = te.function("zip", [b], [te.compute((2, 32, 4), lambda k, j, g: b[4 * k + g, j], name="P")])

    def apply(s: Schedule) -> None:
        j = s.get_loops(s.get_block("P"))[1]
        s.tensorize(s.split(j, [None, 16])[1], "interleave.i8x4")

    assert "tensorized" in str(check(f, apply).module)


# --- machine code ---------------------------------------------------------------------------------------------------


def hot_loop(asm: str, mnemonic: str) -> list[str]:
    """The instructions of the innermost loop that has the mnemonic."""
    lines = [line.strip() for line in asm.splitlines() if not re.match(r"\t\.", line)]
    for end, line in enumerate(lines):
        label = re.fullmatch(r"j\w+\s+(\.LBB\S+)", line)
        start = lines.index(f"{label[1]}:") if label and f"{label[1]}:" in lines[:end] else end
        body = lines[start + 1 : end]
        if any(mnemonic in actual for actual in body) and not any(actual.startswith(".LBB") for actual in body):
            return body
    raise AssertionError(f"there is no loop with {mnemonic}")


@pytest.mark.parametrize(("name", "shape"), pairs(DOTS, [(24, 1024, 128), (23, 1023, 127)]))
def test_sums_stay_in_registers(name: str, shape: tuple[int, int, int]) -> None:
    intrinsic = INTRINSICS[name]
    s = scheduled(
        matmul(name.split(".")[1], *shape),
        lambda s: recipes.quantised_gebp(s, s.get_block("C"), name, 24, 4096, 128, 3, 2),
    )
    machine = with_features("avx512vnni", "avx512vl", "avx512bf16")
    loop = hot_loop(compile_llvm(emit(low(s), machine), machine).asm(), intrinsic.mnemonic)
    count = sum(intrinsic.mnemonic in line for line in loop)
    assert count % 6 == 0
    assert not [line for line in loop if "%rsp" in line]
    assert not [line for line in loop if re.match(r"v?mov\w+\s+%[xyz]mm\d+, .*\(", line)]
    assert len(loop) <= count * 2 + 8


def test_a_machine_without_the_instruction() -> None:
    module = low(scheduled(matmul("i32", 16, 16, 16), gebp("dot.i32.u8i8x4")))
    plain = replace(host(), features="+avx2", name="plain")
    with pytest.raises(LoweringError, match="needs avx512vnni of the processor, which 'plain' lacks"):
        emit(module, plain)


def test_strict_floating_point() -> None:
    s = scheduled(matmul("f32", 16, 16, 16), gebp("dot.f32.bf16x2"))
    with pytest.raises(LoweringError, match="rounds otherwise, and the policy is strict"):
        compiler.build(s, policy="strict")
    present("dot.i32.u8i8x4")
    compiler.build(scheduled(matmul("i32", 16, 16, 16), gebp("dot.i32.u8i8x4")), policy="strict")


# --- tiles ----------------------------------------------------------------------------------------------------------


def by_tiles(s: Schedule) -> None:
    """Two by two tiles."""
    recipes.tile_gebp(s, s.get_block("C"), 32, 32)


@pytest.mark.parametrize("shape", [(32, 32, 16), (33, 20, 17), (16, 3, 40)])
def test_tiles_compute_the_same(shape: tuple[int, int, int]) -> None:
    done = check(matmul("f32", *shape), by_tiles, native=False)
    assert done.verify()
    a, b = drawn("f32", *shape)
    machine = with_features("amx-tile", "amx-bf16")
    module = low(done)
    library = compile_llvm(emulated(emit(module, machine)), detect_machine())
    out = np.full((shape[0], shape[2]), np.nan, np.float32)
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(library.address("mm"))
    workspace = np.zeros(1 << 20, np.uint8)
    aligned = -(-workspace.ctypes.data // 64) * 64
    call(a.ctypes.data, b.ctypes.data, out.ctypes.data, aligned)
    np.testing.assert_allclose(out, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-4, atol=1e-4)


def test_tiles_stay_in_registers() -> None:
    s = scheduled(matmul("f32", 64, 1024, 64), by_tiles)
    machine = with_features("amx-tile", "amx-bf16")
    asm = compile_llvm(emit(low(s), machine), machine).asm()
    loop = hot_loop(asm, "tdpbf16ps")
    products = sum("tdpbf16ps" in line for line in loop)
    assert products % 4 == 0
    assert sum("tileloadd" in line for line in loop) == products, "two tiles of A and two of B for four products"
    assert not [line for line in loop if "tilestored" in line or "%rsp" in line]
    assert "ldtilecfg" in asm


def test_tiles_run() -> None:
    present("tile.f32.bf16")
    a, b = drawn("f32", 100, 70, 50)
    kernel = compiler.build(scheduled(matmul("f32", 100, 70, 50), by_tiles))
    np.testing.assert_allclose(kernel(a, b), a.astype(np.float64) @ b.astype(np.float64), rtol=1e-4, atol=1e-4)


def test_a_system_that_refuses_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    class Library:
        """A C library whose system calls fail."""

        class syscall:
            restype = None

            def __new__(cls, *_: object) -> int:  # type: ignore[misc]
                ctypes.set_errno(95)
                return -1

    monkeypatch.setattr(tiles.ctypes, "CDLL", lambda *_, **__: Library)
    tiles.permit_tiles.cache_clear()
    with pytest.raises(TargetError, match="Linux gives this process no tile registers"):
        tiles.permit_tiles()
    tiles.permit_tiles.cache_clear()


def test_what_tiles_refuse() -> None:
    with pytest.raises(ScheduleError, match="3 x 2 tiles of sums and those of the operands are more than 8"):
        scheduled(matmul("f32", 64, 64, 64), lambda s: recipes.tile_gebp(s, s.get_block("C"), 96, 64, rows=3))
    with pytest.raises(ScheduleError, match="5 x 16 is less than a tile of 16 x 16"):
        scheduled(matmul("f32", 5, 16, 16), by_tiles)
    with pytest.raises(ScheduleError, match=r"'tile\.f32\.bf16' is no dot product of groups"):
        scheduled(matmul("f32", 64, 64, 64), gebp("tile.f32.bf16"))


# --- guards ---------------------------------------------------------------------------------------------------------


def ragged() -> Schedule:
    """A matmul with k of 6 in groups of 4, both operands packed; rows run on threads."""
    s = Schedule(compiler.lower(matmul("i32", 4, 6, 16)))
    block = s.get_block("C")
    m, n, k = s.get_loops(block)
    k, g = s.split(k, [None, 4])
    s.reorder(m, k, n, g)
    s.pack(block, "B", [4, 16], [1, 0, 3, 2])
    s.pack(block, "A", [1, 4])
    s.parallel(m)
    return s


def tensorize(s: Schedule) -> None:
    """The nest of `ragged`."""
    s.tensorize(s.get_loops(s.get_block("C"))[2], "dot.i32.u8i8x4")


def test_the_guard_goes_in_the_lowering_only() -> None:
    s = ragged()
    tensorize(s)
    assert s.program.blocks["C"].guard
    assert not absorbed(s.program).blocks["C"].guard


def test_beyond_a_guard_no_other_thread_is_disturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensorized, "legal", lambda _: "a race")
    with pytest.raises(ScheduleError, match="what another iteration of a concurrent loop uses"):
        tensorize(ragged())


def test_beyond_a_guard_reads_must_be_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object) -> None:
        raise tensorized.Unknown

    monkeypatch.setattr(tensorized.Flow, "content", unknown)
    with pytest.raises(ScheduleError, match="beyond its guard could not be told"):
        tensorize(ragged())


NEST = """func.func @f(%A: memref<4xui8>, %B: memref<16x4xi8>, %C: memref<16xi32>) attributes {outputs = 1 : i64} {
  loop.for "o" %o = 1 OUTER {
    loop.for "j" %j = 16 tensorized "dot.i32.u8i8x4" {
      loop.for "k" %k = 4 tensorized {
        loop.block "C" [j = 16 at %j, reduce k = 4 at %k] combine [add] accumulate
            (%a = %A[k] : memref<4xui8>, %b = %B[j, k] : memref<16x4xi8>) -> (%C[j] : memref<16xi32>) {
          %0 = arith.extui %a : i8 to i32
          %1 = arith.extsi %b : i8 to i32
          %2 = arith.muli %0, %1 : i32
          loop.yield %2 : i32
        }
      }
    }
  }
  func.return
}"""


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("OUTER", "vectorized", "but it stands inside the vectorized loop 'o'"),
        ("(%a = %A[k]", "(%a = %A[k] where (2 - k >= 0) else 0", "reads 'A' under a condition; pack it first"),
        ("%B: memref<16x4xi8>", "%B: memref<16x5xi8>", "'B' steps by 5 along loop 'j', where .* steps by 4"),
        ("-> (%C[j]", "-> (%C[15 - j]", "'C' steps by -1 along loop 'j', where .* steps by 1"),
    ],
)
def test_a_nest_by_hand_is_matched_too(old: str, new: str, sentence: str) -> None:
    text = NEST.replace(old, new).replace("OUTER", "")
    if "16x5" in new:
        text = text.replace("16x4xi8", "16x5xi8")
    with pytest.raises(LoweringError, match=sentence):
        compiler.build(parse(text))


def test_an_unknown_kind_of_dot() -> None:
    text = """func.func @f(%c: vector<16xi32>, %a: vector<4xi8>, %b: vector<64xi8>) {
      %d = unit.dot "dot" %c, %a, %b : vector<16xi32>, vector<4xi8>, vector<64xi8> -> vector<16xi32>
      func.return
    }"""
    with pytest.raises(LoweringError, match="there is no intrinsic 'dot'"):
        emit(parse(text), host())
