"""Extents, bytes and index expressions are signed 64-bit integers: in te, in text at every level, in schedules."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from io import StringIO
from math import gcd
from typing import Any

import numpy as np
import pytest
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError, VerifyException

import compiler
from compiler import te
from compiler.affine import linear as lin
from compiler.affine.limits import END, bad_index
from compiler.affine.linear import Linear
from compiler.pipeline.source import parse
from compiler.schedule import Schedule
from compiler.support.errors import LoweringError, ScheduleError, StrataError, TeError

PAST = (END, END + 8, 2 * END, 2 * END + 8, 10**29)
A = te.placeholder((8, 8), name="A")
IMAGE, KERNEL = te.placeholder((1, 4, 8, 8), name="X"), te.placeholder((4, 4, 3, 3), name="W")
INDICES = te.placeholder((8,), "i32", name="I")


def each(body: Callable[[Any], Any]) -> te.Tensor:
    return te.compute((8,), lambda i: body(i), name="T")


WRONG: dict[str, Callable[[int], Any]] = {
    "placeholder": lambda v: te.placeholder((8, v)),
    "placeholder of bytes": lambda v: te.placeholder((v,), "i8"),
    "reduce axis": lambda v: te.reduce_axis(v),
    "compute": lambda v: te.compute((v,), lambda i: A[i % 8, 0]),
    "gather": lambda v: te.gather((v,), lambda i: A.at(INDICES[i % 8], 0)),
    "value": lambda v: each(lambda i: te.cast(i * v, "i64")),
    "sum as a value": lambda v: each(lambda i: te.cast(i + v, "i64")),
    "condition": lambda v: each(lambda i: te.select(i * v >= 3, A[i, 0], A[0, i])),
    "condition's constant": lambda v: each(lambda i: te.select(i < v, A[i, 0], A[0, i])),
    "padded read": lambda v: each(lambda i: A.padded(0.0)[i * v, 0]),
    "pad": lambda v: te.nn.pad(A, [(v, 0), (0, 0)]),
    "padding": lambda v: te.nn.conv2d(IMAGE, KERNEL, padding=v),
    "dilation": lambda v: te.nn.conv2d(IMAGE, KERNEL, dilation=v),
    "stride of a gradient": lambda v: te.nn.conv2d_transpose(IMAGE, KERNEL, stride=v),
    "window": lambda v: te.nn.max_pool2d(IMAGE, v),
}


@pytest.mark.parametrize("value", PAST)
@pytest.mark.parametrize("what", WRONG)
def test_what_te_refuses(what: str, value: int) -> None:
    with pytest.raises(TeError, match=r"below 2\^63|does not fit"):
        WRONG[what](value)


def test_bytes_and_not_elements_are_counted() -> None:
    assert te.placeholder((END - 1,), "i8").shape == (END - 1,)
    assert te.placeholder((END // 8 - 1,), "f64").rank == 1
    for shape, dtype in (((END // 8,), "f64"), ((2**32, 2**31), "i8"), ((2**40, 2**30), "i1")):
        with pytest.raises(TeError, match=r"tensor 'arg' has \d+ bytes; offsets are signed 64-bit"):
            te.placeholder(shape, dtype)
    with pytest.raises(TeError, match="tensor 'T' has"):
        te.compute((2**31, 2**31), lambda i, j: A[i % 8, j % 8], name="T")


def test_large_and_right() -> None:
    """Numbers below the limit do what they say: no form wraps on the way."""
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    v = 2**59
    picked = te.compute((8,), lambda i: te.select(i * v >= 3 * v, A[i, 0], A[0, i]), name="P")
    number = te.compute((8,), lambda i: te.cast(i * v + 1, "i64"), name="N")
    kernel = compiler.build(te.function("f", [A], [picked, number]))
    first, second = kernel(x)
    np.testing.assert_array_equal(first, np.where(np.arange(8) >= 3, x[:, 0], x[0]))
    np.testing.assert_array_equal(second, np.arange(8) * v + 1)


LEVELS = {
    "te": """
func.func @f(%A: tensor<8x8xf32>) -> tensor<8xf32> {
  %C = te.compute "C" [m = 8, reduce k = 8] combine [add] (%a = %A[m, k mod 8] : tensor<8x8xf32>) -> tensor<8xf32> {
    %i = te.index "m" : index
    %z = arith.constant 8 : index
    te.yield %a : f32
  }
  func.return %C : tensor<8xf32>
}""",
    "loop": """
func.func @f(%A: memref<8xf32>, %C: memref<8xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 8 {
    loop.block "B" [m = 8 at %i] where (%i * 8 + 1 >= 0)
        (%a = %A[m mod 8] where (m * 8 >= 0) else 0.0 : memref<8xf32>) -> (%C[m] : memref<8xf32>) {
      loop.yield %a : f32
    }
  }
  func.return
}""",
    "low": """
func.func @f(%A: memref<8xf32>) {
  %c = arith.constant 8 : index
  %T = memref.alloc() : memref<8xf32>
  func.return
}""",
}
NUMBERS = [(level, match.start()) for level, text in LEVELS.items() for match in re.finditer(r"\b8(?=\D)", text)]


@pytest.mark.sampled
@pytest.mark.parametrize(("level", "place"), NUMBERS)
def test_no_number_in_a_text_is_past_the_limit(level: str, place: int) -> None:
    """Each number of each text in turn: one past 2^63 is refused, or simplified away, as in `k mod 2^64`."""
    compiler.build(LEVELS[level])
    for value in PAST:
        text = f"{LEVELS[level][:place]}{value}{LEVELS[level][place + 1 :]}"
        try:
            llvm = compiler.build(text).text("llvm")
        except (StrataError, VerifyException, ParseError):
            continue
        assert "mod" in LEVELS[level][place - 5 : place] and str(value) not in llvm


@pytest.mark.parametrize(
    ("level", "old", "new", "words"),
    [
        ("te", "reduce k = 8", f"reduce k = {END}", r"axis 'k' has extent \d+; extents are below 2\^63"),
        ("te", "constant 8", f"constant {END}", "no signed 64-bit integer"),
        ("loop", '"i" %i = 8', f'"i" %i = {END}', r"loop 'i' has extent \d+; extents are below 2\^63"),
        ("loop", "%i * 8 + 1", f"%i * {END} + 1", "the condition of block 'B' takes values up to"),
        ("loop", "m * 8", f"m * {END}", "the condition of the access to 'A' takes values up to"),
        ("low", "%A: memref<8xf32>", f"%A: memref<{END // 4}xf32>", r"memref<\d+xf32> has \d+ bytes"),
        ("low", "constant 8", f"constant {END}", "no signed 64-bit integer"),
    ],
)
def test_the_sentence(level: str, old: str, new: str, words: str) -> None:
    with pytest.raises((StrataError, VerifyException), match=words):
        compiler.build(LEVELS[level].replace(old, new))


def product() -> Schedule:
    b = te.placeholder((8, 8), name="B")
    return Schedule(compiler.lower(te.function("f", [A, b], [te.nn.matmul(A, b, name="C")])))


def rows(s: Schedule) -> Any:
    return s.get_loops(s.get_block("C"))[0]


STEPS: dict[str, Callable[[Schedule, int], Any]] = {
    "split": lambda s, v: s.split(rows(s), [2**40, v]),
    "split, padded": lambda s, v: s.split(s.get_loops(s.cache_read(s.get_block("C"), "A"))[0], [2, v], tail="pad"),
    "pack": lambda s, v: s.pack(s.get_block("C"), "A", [1, v], [1, 0, 2]),
    "storage_align": lambda s, v: s.storage_align(s.cache_read(s.get_block("C"), "A"), 0, v),
}


@pytest.mark.parametrize("value", (2**61, 2**62, 2**62 + 2**61, *PAST))
@pytest.mark.parametrize("step", STEPS)
def test_what_schedules_refuse(step: str, value: int) -> None:
    schedule = product()
    with pytest.raises(ScheduleError):
        STEPS[step](schedule, value)
    assert schedule.verify()


def test_large_factors_that_are_right() -> None:
    schedule = product()
    schedule.fuse(*schedule.split(rows(schedule), [None, 2**62]))
    assert schedule.verify()
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    np.testing.assert_array_equal(compiler.build(schedule)(x, x), x @ x)


def test_parallel_loops_that_are_counted_together() -> None:
    x = te.placeholder((8, 8, 8), name="X")
    schedule = Schedule(compiler.lower(te.function("f", [x], [te.nn.exp(x, name="E")])))
    for loop in schedule.get_loops(schedule.get_block("E")):
        schedule.parallel(loop)
    text = compiler.build(schedule).text("low")
    assert text.count("constant 8 ") == 1 and "scf.parallel" in text
    text = text.replace("constant 8 ", f"constant {2**40} ")
    text = re.sub(r"(memref.(?:load|store) [^\[]*)\[[^\]]*\]", r"\1[%c0, %c0, %c0]", text)
    with pytest.raises(LoweringError, match="the nested parallel loops have 1208925819614629174706176 iterations"):
        compiler.build(text)


def test_temporaries_that_are_counted_together() -> None:
    allocs = "".join(f"  %T{n} = memref.alloc() : memref<{2**62 - 64}xi8>\n" for n in range(3))
    uses = "".join(f"  memref.store %v, %T{n}[%z] : memref<{2**62 - 64}xi8>\n" for n in range(3))
    reads = "".join(f"  %r{n} = memref.load %T{n}[%z] : memref<{2**62 - 64}xi8>\n" for n in range(3))
    stores = "".join(f"  memref.store %r{n}, %A[%z] : memref<8xi8>\n" for n in range(3))
    head = "func.func @f(%A: memref<8xi8>) {\n  %z = arith.constant 0 : index\n"
    value = "  %v = memref.load %A[%z] : memref<8xi8>\n"
    with pytest.raises(LoweringError, match="the temporaries have 13835058055282163520 bytes together"):
        compiler.build(f"{head}{allocs}{value}{uses}{reads}{stores}  func.return\n}}")


def test_the_bound_of_a_form_holds_for_every_partial_sum() -> None:
    rng = random.Random(0)
    for _ in range(2000):
        extents = [rng.choice((1, 3, 8, 2**20)) for _ in range(3)]
        ranges = {n: (0, extent - 1) for n, extent in enumerate(extents)}
        form = lin.constant(rng.randint(-50, 50))
        for n in range(3):
            form += lin.variable(n).scaled(rng.randint(-9, 9))
        if rng.random() < 0.5:
            form = (lin.floordiv if rng.random() < 0.5 else lin.mod)(form, rng.randint(1, 12), ranges) + form
        bound = lin.largest(form, ranges)
        for _ in range(5):
            point = {n: rng.randrange(extent) for n, extent in enumerate(extents)}
            assert all(abs(value) <= bound for value in partial(form, point, rng))


def partial(form: Linear, point: dict[int, int], rng: random.Random) -> list[int]:
    """The sums on the way to a form's value, its terms added in some order, and those inside its quotients."""
    actual, total = [form.constant], form.constant
    for atom, factor in rng.sample(form.terms, len(form.terms)):
        if isinstance(atom, int):
            value = point[atom]
        else:
            actual += partial(atom.form, point, rng)
            inner = lin.evaluate(atom.form, point)
            value = inner % atom.divisor if atom.is_mod else inner // atom.divisor
        total += factor * value
        actual.append(total)
    return actual


def test_what_an_expression_s_value_hides() -> None:
    """A sum that leaves 64 bits on the way and comes back is refused; one whose canonical form stays inside is not."""
    from xdsl.ir.affine import AffineExpr

    i, j = AffineExpr.dimension(0), AffineExpr.dimension(1)
    assert bad_index("x", i * 2**62 + j * 2**62 * -1, [8, 8])
    assert not bad_index("x", i * 2**62 + i * 2**62 * -1, [8, 8])
    assert not bad_index("x", (i * 2**62) % 8, [8])
    assert bad_index("x", (i * 2**62) % (2**62 + 1), [8])


def test_lengths_that_align_a_stride() -> None:
    """The least length, as a search finds it."""
    rng = random.Random(0)
    for _ in range(60):
        inner, factor, length, offset = rng.randint(1, 6), rng.randint(1, 12), rng.randint(1, 9), rng.randint(0, 11)
        x = te.placeholder((2, length, inner), name="X")
        copy = te.compute((2, length, inner), lambda i, j, k, x=x: x[i, j, k] + 1.0, name="T")
        twice = te.compute((2, length, inner), lambda i, j, k, t=copy: t[i, j, k] * 2.0, name="Y")
        schedule = Schedule(compiler.lower(te.function("f", [x], [twice])))
        lengths = range(length, length + factor)
        wanted = next((n for n in lengths if n * inner % factor == offset % factor), None)
        assert (wanted is None) == (offset % gcd(inner, factor) != 0)
        if wanted is None:
            with pytest.raises(ScheduleError, match="no length of dimension 1 gives that stride"):
                schedule.storage_align(schedule.get_block("T"), 0, factor, offset)
        else:
            schedule.storage_align(schedule.get_block("T"), 0, factor, offset)
            assert schedule.program.buffers["T"].shape == (2, wanted, inner)


@pytest.mark.parametrize(
    ("level", "old", "new", "words"),
    [
        ("loop", "affine_set<(d0) : ", "affine_set<(d0, d1, d2) : ", "must be over 1 values, without symbols"),
        ("loop", "affine_set<(d0) : ", "affine_set<(d0)[s0] : ", "must be over 1 values, without symbols"),
        ("loop", "affine_map<(d0) -> (d0)>", "affine_map<(d0)[s0] -> (s0)>", "needs one binding an axis"),
        ("te", "(d0, d1) -> (d0, (d1 mod 8))", "(d0, d1)[s0] -> (s0, (d1 mod 8))", "is indexed by symbols"),
    ],
)
def test_forms_over_other_values(level: str, old: str, new: str, words: str) -> None:
    """The generic form can say what the custom one cannot: dimensions that are not there, and symbols."""
    stream = StringIO()
    Printer(stream, print_generic_format=True).print_op(parse(LEVELS[level]))
    text = stream.getvalue()
    assert old in text
    with pytest.raises(VerifyException, match=words):
        compiler.build(text.replace(old, new))
