"""Each opcode of PTX by a text of one instruction, on numbers whose results are known."""

from __future__ import annotations

import struct
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from compiler.targets.ptx import PtxError, parse_ptx
from compiler.targets.ptx.values import bits_of, dtype_of_type
from tests.unit.targets.ptx import Array, indexed, kernel, run

NAN, INF = float("nan"), float("inf")
M = 2**32
REGISTER = {16: "%h", 32: "%r", 64: "%rd"}
CASES: list[tuple[str, str, list[list[Any]], list[Any]]] = [
    # opcode, type of the result, operands by thread, results by thread
    ("add.s32", "s32", [[2**31 - 1, -3], [1, 5]], [-(2**31), 2]),
    ("add.f32", "f32", [[1.5, INF], [2.25, -INF]], [3.75, NAN]),
    ("add.rz.f32", "f32", [[1.0, -1.0], [2.0**-30, -(2.0**-30)]], [1.0, -1.0]),
    ("add.rp.f32", "f32", [[1.0, 1.0], [2.0**-30, -(2.0**-30)]], [1 + 2.0**-23, 1.0]),
    ("add.rm.f32", "f32", [[1.0, 1.0], [2.0**-30, -(2.0**-30)]], [1.0, 1 - 2.0**-24]),
    ("sub.f64", "f64", [[1.0], [0.75]], [0.25]),
    ("sub.s16", "s16", [[-32768], [1]], [32767]),
    ("mul.lo.s32", "s32", [[65536, -7], [65537, 3]], [65536, -21]),
    ("mul.hi.s32", "s32", [[-1, 2**30], [5, 8]], [-1, 2]),
    ("mul.hi.u32", "u32", [[M - 1], [M - 1]], [M - 2]),
    ("mul.hi.u64", "u64", [[2**64 - 1], [2**64 - 1]], [2**64 - 2]),
    ("mul.wide.s16", "s32", [[-300], [300]], [-90000]),
    ("mul.wide.u32", "u64", [[M - 1], [2]], [2 * M - 2]),
    ("mul.f32", "f32", [[1e-30], [1e-30]], [0.0]),
    ("mad.lo.s32", "s32", [[7], [-3], [100]], [79]),
    ("mad.wide.u32", "u64", [[M - 1], [M - 1], [5]], [(M - 1) ** 2 + 5]),
    ("fma.rn.f32", "f32", [[1 + 2.0**-12], [1 + 2.0**-12], [-1.0]], [2.0**-11 + 2.0**-24]),
    ("fma.rm.f32", "f32", [[1.0], [1.0], [-(2.0**-30)]], [1 - 2.0**-24]),
    ("fma.rz.f32", "f32", [[-1.0], [1.0], [2.0**-30]], [-(1 - 2.0**-24)]),
    ("fma.rn.f64", "f64", [[1 + 2.0**-30], [1 - 2.0**-30], [-1.0]], [-(2.0**-60)]),
    ("fma.rn.f16", "f16", [[3.0], [0.5], [0.25]], [1.75]),
    ("add.f16", "f16", [[60000.0], [60000.0]], [INF]),
    ("div.s32", "s32", [[-7, 7, 7], [2, -2, 2]], [-3, -3, 3]),
    ("div.rn.f32", "f32", [[1.0, 1.0], [3.0, 0.0]], [np.float32(1) / np.float32(3), INF]),
    ("div.approx.f32", "f32", [[1.0], [2.0**127]], [0.0]),
    ("rem.s32", "s32", [[-7, 7], [2, -2]], [-1, 1]),
    ("rem.u16", "u16", [[65535], [10]], [5]),
    ("min.s32", "s32", [[-1], [1]], [-1]),
    ("min.u32", "u32", [[M - 1], [1]], [1]),
    ("max.f32", "f32", [[NAN, -0.0, 0.0], [1.0, 0.0, -0.0]], [1.0, 0.0, 0.0]),
    ("max.NaN.f32", "f32", [[NAN, 2.0], [1.0, 1.0]], [NAN, 2.0]),
    ("max.NaN.f32", "f32", [[-0.0, 0.0, -0.0], [0.0, -0.0, -0.0]], [0.0, 0.0, -0.0]),
    ("max.NaN.f16", "f16", [[NAN, -0.0, 2.0], [1.0, 0.0, 3.0]], [NAN, 0.0, 3.0]),
    ("min.NaN.bf16", "bf16", [[1.0, -0.0, 2.0], [NAN, 0.0, 3.0]], [NAN, -0.0, 2.0]),
    ("min.f32", "f32", [[0.0, NAN], [-0.0, 3.0]], [-0.0, 3.0]),
    ("neg.f32", "f32", [[0.0]], [-0.0]),
    ("abs.s32", "s32", [[-5]], [5]),
    ("abs.f16", "f16", [[-5.0]], [5.0]),
    ("copysign.f32", "f32", [[-1.0], [3.0]], [-3.0]),
    ("dp4a.s32.s32", "s32", [[0x01FF0203], [0x02030405], [10]], [10 + 1 * 2 - 1 * 3 + 2 * 4 + 3 * 5]),
    ("dp4a.u32.u32", "u32", [[0x01FF0203], [0x02030405], [10]], [10 + 1 * 2 + 255 * 3 + 2 * 4 + 3 * 5]),
    ("dp2a.lo.s32.s32", "s32", [[0xFFFF0002], [0x11220304], [1]], [1 + 2 * 4 - 3]),
    ("and.b32", "b32", [[0b1100], [0b1010]], [0b1000]),
    ("or.b16", "b16", [[0b1100], [0b1010]], [0b1110]),
    ("xor.b64", "b64", [[2**63 + 1], [1]], [2**63]),
    ("not.b32", "b32", [[0]], [M - 1]),
    ("shl.b32", "b32", [[1, 1, 1], [31, 32, 500]], [2**31, 0, 0]),
    ("shr.s32", "s32", [[-8, -8], [1, 40]], [-4, -1]),
    ("shr.u32", "u32", [[M - 8, M - 8], [1, 40]], [2**31 - 4, 0]),
    ("bfe.u32", "u32", [[0xABCD], [4], [8]], [0xBC]),
    ("bfe.s32", "s32", [[0xABCD, -1], [4, 28], [8, 10]], [0xBC - 256, -1]),
    ("bfi.b32", "b32", [[0xF, 5], [0xABCD0000, 1], [8, 32], [4, 4]], [0xABCD0F00, 1]),
    ("prmt.b32", "b32", [[0x33221100, 0x33221180], [0x77665544, 0], [0x7410, 0x8888]], [0x77441100, M - 1]),
    ("popc.b32", "u32", [[0xF0F0]], [8]),
    ("clz.b64", "u32", [[1, 0]], [63, 64]),
    ("brev.b32", "b32", [[1]], [2**31]),
    ("lop3.b32", "b32", [[0b1100], [0b1010], [0b0110], [0xE8]], [0b1110]),
    ("shf.l.wrap.b32", "b32", [[0x80000000], [1], [1]], [3]),
    ("rcp.rn.f32", "f32", [[3.0]], [np.float32(1) / np.float32(3)]),
    ("rcp.approx.ftz.f32", "f32", [[1e-40]], [INF]),
    ("sqrt.rn.f32", "f32", [[2.0, -1.0]], [np.sqrt(np.float32(2)), NAN]),
    ("rsqrt.approx.f32", "f32", [[4.0]], [0.5]),
    ("ex2.approx.ftz.f32", "f32", [[3.0, -INF]], [8.0, 0.0]),
    ("lg2.approx.f32", "f32", [[8.0, 0.0]], [3.0, -INF]),
    ("tanh.approx.f32", "f32", [[0.0]], [0.0]),
    ("add.f16x2", "b32", [[0x3C003C00], [0x40003C00]], [0x42004000]),
    ("fma.rn.bf16x2", "b32", [[0x40003F80], [0x40003F80], [0x3F803F80]], [0x40A04000]),
]
CONVERSIONS: list[tuple[str, str, str, list[Any], list[Any]]] = [
    ("cvt.rn.f16.f32", "f16", "f32", [1 + 2.0**-11, 1 + 3 * 2.0**-11, 1e6], [1.0, 1 + 2 * 2.0**-10, INF]),
    ("cvt.rn.bf16.f32", "bf16", "f32", [1 + 2.0**-8, 1 + 3 * 2.0**-8], [1.0, 1 + 2 * 2.0**-7]),
    ("cvt.f32.f16", "f32", "f16", [1.5], [1.5]),
    ("cvt.rzi.s32.f32", "s32", "f32", [-1.9, 3e9, NAN, -INF], [-1, 2**31 - 1, 0, -(2**31)]),
    ("cvt.rni.s32.f32", "s32", "f32", [2.5, 3.5], [2, 4]),
    ("cvt.rzi.u32.f32", "u32", "f32", [-1.0, 5e9], [0, M - 1]),
    ("cvt.rzi.s64.f64", "s64", "f64", [1e19, NAN], [2**63 - 1, -(2**63)]),
    ("cvt.rmi.f32.f32", "f32", "f32", [-1.5], [-2.0]),
    ("cvt.sat.f32.f32", "f32", "f32", [-1.0, 0.5, 7.0, NAN], [0.0, 0.5, 1.0, 0.0]),
    ("cvt.rn.f32.s32", "f32", "s32", [2**24 + 1], [2.0**24]),
    ("cvt.rn.f32.f64", "f32", "f64", [1 + 2.0**-25], [1.0]),
    ("cvt.rp.f32.f64", "f32", "f64", [1 + 2.0**-40], [1 + 2.0**-23]),
    ("cvt.s64.s32", "s64", "s32", [-5], [-5]),
    ("cvt.u64.u32", "u64", "u32", [M - 5], [M - 5]),
    ("cvt.s32.s8", "s32", "b16", [0x12FF], [-1]),
    ("cvt.u16.u32", "u16", "u32", [0x12345], [0x2345]),
    ("cvt.rna.tf32.f32", "b32", "f32", [1 + 2.0**-11], [0x3F802000]),
]


def literal(value: Any, type_: str) -> str:
    """A number of a type as PTX spells it."""
    if type_ == "f32":
        return "0f" + struct.pack(">f", value).hex()
    if type_ == "f64":
        return "0d" + struct.pack(">d", value).hex()
    if type_ in ("f16", "bf16"):
        return hex(int(np.array([value], dtype_of_type(type_)).view(np.uint16)[0]))
    return str(value)


def of_register(type_: str) -> str:
    return {"f32": "%f", "f64": "%fd"}.get(type_, REGISTER[max(16, bits_of(type_))])


def computed(opcode: str, result_type: str, operands: list[str], width_of: str = "") -> Array:
    """The result_type of one instruction, by one thread."""
    to = f"{of_register(result_type)}5"
    body = f"{opcode} {to}, {', '.join(operands)}; st.global.b{bits_of(result_type)} [%rd1], {to};"
    outcome = run(width_of + body, [], [np.zeros(1, dtype_of_type(result_type))], threads=1)
    assert outcome.is_correct, [str(fault) for fault in outcome.faults]
    return outcome.arrays[0]


def assert_same(actual: Array, expected: Any, dtype: np.dtype[Any]) -> None:
    wanted = np.array([expected]).astype(dtype) if not isinstance(expected, int) else np.array([expected], dtype)
    assert np.array_equal(actual, wanted, equal_nan=wanted.dtype.kind in "fV"), (actual, wanted)
    if wanted.dtype.kind == "f" and expected == 0:
        assert np.signbit(actual[0]) == np.signbit(wanted[0])


@pytest.mark.parametrize(("opcode", "result_type", "operands", "expected"), CASES, ids=[case[0] for case in CASES])
def test_an_instruction(opcode: str, result_type: str, operands: list[list[Any]], expected: list[Any]) -> None:
    type_ = next(part for part in reversed(opcode.split(".")) if part[0] in "sufb" and part[-1].isdigit())
    for thread, want in enumerate(expected):
        texts = [literal(column[thread], type_) for column in operands]
        assert_same(computed(opcode, result_type, texts), want, dtype_of_type(result_type))


@pytest.mark.parametrize(("opcode", "to", "of", "values", "expected"), CONVERSIONS, ids=[c[0] for c in CONVERSIONS])
def test_a_conversion(opcode: str, to: str, of: str, values: list[Any], expected: list[Any]) -> None:
    for value, want in zip(values, expected, strict=True):
        move = f"mov.b{bits_of(of)} {of_register(of)}1, {literal(value, of)};"
        assert_same(computed(opcode, to, [f"{of_register(of)}1"], move), want, dtype_of_type(to))


def test_packed_conversions_put_the_first_operand_high() -> None:
    packed = computed("cvt.rn.f16x2.f32", "b32", [literal(2.0, "f32"), literal(1.0, "f32")])
    assert packed.view(np.float16).tolist() == [1.0, 2.0]


def test_a_fused_product_is_rounded_once() -> None:
    """Also where the sum in float64 is halfway between two float32."""
    rng = np.random.default_rng(0)
    a, b, c = (np.ldexp(rng.standard_normal(4096), rng.integers(-40, 40, 4096)).astype(np.float32) for _ in range(3))
    c[::2] = (a * b)[::2] * np.float32(2.0**23) * rng.choice([1, -1, 0.5], 2048).astype(np.float32)
    c = np.where(np.isfinite(c), c, np.float32(1))
    loads = "".join(indexed(n + 1, 4, 10 + n) + f"ld.global.nc.f32 %f{n}, [%rd{10 + n}];" for n in range(3))
    body = "mov.u32 %r1, %ctaid.x; mad.lo.s32 %r0, %r1, 256, %r0;" + loads
    body += indexed(4, 4) + "fma.rn.f32 %f4, %f0, %f1, %f2; st.global.f32 [%rd10], %f4;"
    outcome = run(body, [a, b, c], [np.zeros(4096, np.float32)], threads=256, blocks=16)
    assert outcome.is_correct
    for x, y, z, got in zip(a.tolist(), b.tolist(), c.tolist(), outcome.arrays[3].tolist(), strict=True):
        exact = Fraction(x) * Fraction(y) + Fraction(z)
        near = np.float32(got)
        distances = [abs(Fraction(float(n)) - exact) for n in (near, np.nextafter(near, -INF), np.nextafter(near, INF))]
        assert min(distances) == distances[0]


@pytest.mark.parametrize(
    ("name", "a", "b", "holds"),
    [
        ("lt.s32", -1, 1, True),
        ("lt.u32", M - 1, 1, False),
        ("hi.u32", M - 1, 1, True),
        ("eq.f32", NAN, NAN, False),
        ("ne.f32", NAN, 1.0, False),
        ("neu.f32", NAN, 1.0, True),
        ("ltu.f32", NAN, 1.0, True),
        ("ge.f32", 0.0, -0.0, True),
        ("num.f32", 1.0, NAN, False),
        ("nan.f32", 1.0, NAN, True),
        ("gt.s64", 5, -5, True),
        ("eq.f16", 1.0, 1.0, True),
    ],
)
def test_a_comparison(name: str, a: Any, b: Any, holds: bool) -> None:
    type_ = name.partition(".")[2]
    body = f"setp.{name} %p1|%p2, {literal(a, type_)}, {literal(b, type_)}; selp.b32 %r1, 1, 0, %p1;"
    body += "selp.b32 %r2, 10, 0, %p2; add.s32 %r1, %r1, %r2; st.global.u32 [%rd1], %r1;"
    assert run(body, [], [np.zeros(1, np.uint32)], threads=1).arrays[0][0] == (1 if holds else 10)


def test_comparisons_are_joined() -> None:
    body = "setp.lt.s32 %p1, 1, 2; setp.lt.and.s32 %p2, 3, 2, %p1; setp.lt.or.s32 %p3, 3, 2, %p1;"
    body += "xor.pred %p4, %p2, %p3; @!%p4 bra L; mov.u32 %r1, 7; st.global.u32 [%rd1], %r1; L:"
    assert run(body, [], [np.zeros(1, np.uint32)], threads=1).arrays[0][0] == 7


def test_carries_run_through_words() -> None:
    body = """
        add.cc.u32 %r1, 0xFFFFFFFF, 1; addc.cc.u32 %r2, 0xFFFFFFFF, 0; addc.u32 %r3, 5, 0;
        sub.cc.u32 %r4, 0, 1; subc.u32 %r5, 5, 0;
        mad.lo.cc.u32 %r6, 0x10000, 0x10000, 0xFFFFFFFF; madc.hi.u32 %r7, 0x10000, 0x10000, 1;
        st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4};
        st.global.v2.u32 [%rd1+16], {%r5, %r6}; st.global.u32 [%rd1+24], %r7;
    """
    words = run(body, [], [np.zeros(7, np.uint32)], threads=1).arrays[0].tolist()
    assert words == [0, 0, 6, M - 1, 4, M - 1, 2]


def test_registers_are_packed_and_taken_apart() -> None:
    body = """
        mov.b32 %r1, {0x1111, 0x2222}; mov.b64 %rd5, {%r1, 7}; mov.b64 {_, %r3}, %rd5; mov.b32 {%h1, %h2}, %r1;
        cvt.u32.u16 %r4, %h2; st.global.v2.u32 [%rd1], {%r3, %r4};
    """
    assert run(body, [], [np.zeros(2, np.uint32)], threads=1).arrays[0].tolist() == [7, 0x2222]


def test_loads_extend_by_their_type() -> None:
    bytes_ = np.array([0xFF, 0x80, 0x7F, 0x01], np.uint8)
    body = """
        ld.global.nc.s8 %r1, [%rd1]; ld.global.nc.u8 %r2, [%rd1+1]; ld.global.nc.s16 %r3, [%rd1];
        ld.global.u32 %rd5, [%rd1];
        st.global.v2.u32 [%rd2], {%r1, %r2}; st.global.u32 [%rd2+8], %r3; st.global.u64 [%rd2+16], %rd5;
    """
    out = run(body, [bytes_], [np.zeros(6, np.uint32)], threads=1).arrays[1]
    assert out[:3].tolist() == [M - 1, 0x80, M - 0x7F01] and out[4:].tolist() == [0x017F80FF, 0]


def test_generic_addresses_know_their_space() -> None:
    body = """
        .local .align 4 .b8 depot[4]; .shared .align 4 .b8 tile[4];
        mov.u64 %rd5, depot; cvta.local.u64 %rd6, %rd5; mov.u64 %rd7, tile; cvta.shared.u64 %rd8, %rd7;
        st.u32 [%rd6], 5; st.u32 [%rd8], 6; ld.local.u32 %r1, [depot]; cvta.to.shared.u64 %rd9, %rd8;
        ld.shared.u32 %r2, [%rd9]; st.u32 [%rd1], %r1; st.global.u32 [%rd1+4], %r2;
    """
    outcome = run(body, [], [np.zeros(2, np.uint32)], threads=1)
    assert outcome.is_correct and outcome.arrays[0].tolist() == [5, 6]


FACTORIAL = """
.const .align 4 .b8 one[4] = {1, 0, 0, 0};
.func (.param .b32 result) factorial(.param .b32 n)
{
    .reg .pred %p<3>; .reg .b32 %r<6>;
    ld.param.u32 %r1, [n];
    setp.gt.u32 %p1, %r1, 1;
    @%p1 bra MORE;
    ld.const.u32 %r2, [one];
    st.param.b32 [result+0], %r2;
    ret;
MORE:
    sub.s32 %r3, %r1, 1;
    { .param .b32 param0; st.param.b32 [param0+0], %r3; .param .b32 retval0;
      call.uni (retval0), factorial, (param0);
      ld.param.b32 %r4, [retval0+0]; }
    mul.lo.s32 %r5, %r4, %r1;
    st.param.b32 [result+0], %r5;
    ret;
}
"""


def test_functions_call_themselves() -> None:
    """Threads that recurse to different depths meet again."""
    body = (
        indexed(1, 4)
        + """
        { .param .b32 param0; st.param.b32 [param0+0], %r0; .param .b32 retval0;
          call.uni (retval0), factorial, (param0); ld.param.b32 %r4, [retval0+0]; }
        st.global.u32 [%rd10], %r4;
    """
    )
    outcome = run(body, [], [np.zeros(8, np.uint32)], threads=8, declarations=FACTORIAL)
    assert outcome.is_correct and outcome.arrays[0].tolist() == [1, 1, 2, 6, 24, 120, 720, 5040]


def test_threads_that_part_meet_again() -> None:
    """A loop whose number of rounds differs from thread to thread."""
    body = (
        indexed(1, 4)
        + """
        mov.u32 %r1, 0; mov.u32 %r2, 0;
        LOOP: setp.ge.u32 %p1, %r1, %r0; @%p1 bra END; add.s32 %r2, %r2, %r1; add.s32 %r1, %r1, 1; bra.uni LOOP;
        END: st.global.u32 [%rd10], %r2;
    """
    )
    outcome = run(body, [], [np.zeros(40, np.uint32)], threads=40)
    assert outcome.arrays[0].tolist() == [n * (n - 1) // 2 for n in range(40)]


def test_threads_know_where_they_are() -> None:
    body = """
        mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mad.lo.s32 %r3, %r1, %r2, %r0; mov.u32 %r4, %laneid;
        mov.u32 %r5, %nctaid.x;
        mul.wide.u32 %rd5, %r3, 8; add.s64 %rd5, %rd1, %rd5;
        mad.lo.s32 %r6, %r5, 100, %r4; st.global.v2.u32 [%rd5], {%r3, %r6};
    """
    out = run(body, [], [np.zeros((120, 2), np.uint32)], threads=40, blocks=3).arrays[0]
    assert out[:, 0].tolist() == list(range(120)) and out[:, 1].tolist() == [300 + n % 40 % 32 for n in range(120)]


SHUFFLES = {
    "bfly.b32 %r2|%p1, %r0, 5, 31": [n ^ 5 for n in range(32)],
    "down.b32 %r2|%p1, %r0, 3, 31": [n + 3 if n + 3 < 32 else n for n in range(32)],
    "up.b32 %r2|%p1, %r0, 3, 0": [n - 3 if n >= 3 else n for n in range(32)],
    "idx.b32 %r2|%p1, %r0, 9, 31": [9] * 32,
    "bfly.b32 %r2|%p1, %r0, 4, 6175": [n ^ 4 for n in range(32)],  # segments of 8
    "idx.b32 %r2|%p1, %r0, 1, 6175": [n // 8 * 8 + 1 for n in range(32)],
    "down.b32 %r2|%p1, %r0, 4, 6175": [n + 4 if n % 8 < 4 else n for n in range(32)],
}


@pytest.mark.parametrize("text", SHUFFLES)
def test_a_shuffle(text: str) -> None:
    body = indexed(1, 4) + f"shfl.sync.{text}, -1; st.global.u32 [%rd10], %r2;"
    outcome = run(body, [], [np.zeros(32, np.uint32)])
    assert outcome.is_correct and outcome.arrays[0].tolist() == SHUFFLES[text]


@pytest.mark.parametrize(
    ("name", "type_", "start", "value", "end"),
    [
        ("add", "f32", 1.0, 2.0, 65.0),
        ("add", "u64", 5, 3, 101),
        ("max", "s32", -5, -3, -3),
        ("exch", "b32", 5, 9, 9),
        ("inc", "u32", 2, 4, 4),
        ("xor", "b32", 5, 3, 5),
    ],
)
def test_atomic_operations(name: str, type_: str, start: Any, value: Any, end: Any) -> None:
    bits, to = bits_of(type_), of_register(type_)
    body = f"mov.b{bits} {to}15, {literal(value, type_)}; red.global.{name}.{type_} [%rd1], {to}15;"
    cell = np.array([start], dtype_of_type(type_))
    outcome = run(body, [cell], threads=32)
    assert outcome.is_correct and outcome.arrays[0][0] == end
    body = (
        indexed(2, 8)
        + f"mov.b{bits} {to}15, {literal(value, type_)}; atom.global.{name}.{type_} {to}16, [%rd1], {to}15;"
    )
    outcome = run(body + f"st.global.b{bits} [%rd10], {to}16;", [cell], [np.zeros((4, 8), np.uint8)], threads=4)
    assert outcome.is_correct and outcome.arrays[1][0, : bits // 8].view(cell.dtype)[0] == start


def test_atomics_are_checked() -> None:
    (fault,) = run("red.global.add.u32 [%rd1], 1;", [], [np.zeros(1, np.uint32)], threads=2).faults
    assert fault.kind == "read of memory that nobody has set"
    (fault,) = run("red.global.add.u32 [%rd1+4], 1;", [np.zeros(1, np.uint32)], threads=2).faults
    assert fault.kind == "access outside of memory"
    body = "atom.global.cas.b32 %r1, [%rd1], 0, 7; st.global.u32 [%rd2], %r1;"
    assert [a[0] for a in run(body, [np.zeros(1, np.uint32)], [np.ones(1, np.uint32)], threads=1).arrays] == [7, 0]


def test_votes() -> None:
    body = (
        indexed(1, 16)
        + """
        setp.lt.u32 %p1, %r0, 3; vote.sync.ballot.b32 %r1, %p1, -1; vote.sync.any.pred %p2, %p1, -1;
        vote.sync.all.pred %p3, %p1, -1;
        selp.u32 %r2, 1, 0, %p2; selp.u32 %r3, 1, 0, %p3; activemask.b32 %r4;
        st.global.v4.u32 [%rd10], {%r1, %r2, %r3, %r4};
    """
    )
    out = run(body, [], [np.zeros((32, 4), np.uint32)]).arrays[0]
    assert (out == [7, 1, 0, M - 1]).all()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("\nwgmma.fence.sync.aligned;", "'wgmma.fence.sync.aligned' is not implemented"),
        ("\nadd.wrong.s32 %r1, %r0, 1;", "'add.wrong.s32' is not implemented: '.wrong' is unknown"),
        ("\nbra NOWHERE;", "'bra' is not implemented: there is no such label"),
        ("\nbar.sync 0, 64;", "a barrier for some of the threads"),
        ("\nadd.s32 %r1, %zz, 1;", "'add.s32' is not implemented: the register %zz"),
        ("\nadd.s32 %r1, %r0;", "'add.s32' is not implemented: it has 2 operands"),
        ("\nmov.u64 %rd5, nothing;", "the variable 'nothing'"),
        ("\nmma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%f1}, {%f1}, {%f1}, {%f1};", "'.m8n8k4' is unknown"),
    ],
)
def test_what_is_unknown_is_refused_with_its_line(body: str, message: str) -> None:
    line = kernel("@", 0).partition("@")[0].count("\n") + 2
    with pytest.raises(PtxError) as caught:
        run(body, [], threads=1)
    assert str(caught.value).startswith(f"PTX line {line}: ") and message in str(caught.value)


def test_syntax_errors_have_their_line() -> None:
    with pytest.raises(PtxError, match="PTX line 3: 'what is this' is not understood"):
        parse_ptx(".version 8.0\n\nwhat is this;\n")
    with pytest.raises(PtxError, match="the text ends inside of a function"):
        parse_ptx(".entry k() {\n")


def test_bf16_has_its_own_rounding() -> None:
    assert computed("cvt.rn.bf16.f32", "bf16", [literal(1.00390625, "f32")])[0] == ml_dtypes.bfloat16(1.0)
