"""Programs with te.constant: built, scheduled, proved, run as kernels; numbers in the text where indices are known."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16
from xdsl.dialects.builtin import ModuleOp

import compiler
from compiler import te
from compiler.analysis.verify.prove import verify_schedule
from compiler.autotune.options import TuningOptions
from compiler.autotune.task import SearchTask
from compiler.dialects.functions import find_function
from compiler.dialects.numbers import array_of
from compiler.dialects.te import ConstantOp
from compiler.driver.reference.cases import reference
from compiler.driver.reference.subject import Subject
from compiler.fuzz.programs import arrays_for, program
from compiler.interpret import loop as interpreter
from compiler.interpret.te import evaluate
from compiler.passes.fold_constants import fold_constants
from compiler.passes.lift_constants import MAX_INLINE_BYTES, lift_constants
from compiler.program.read import read
from compiler.schedule import Schedule
from compiler.support.errors import InputError, ScheduleError
from compiler.targets import simt
from compiler.types.machines import host
from strata.passes import lower_to_kernels, parse
from tests import qemu_calls
from tests.fuzz.scripts import check, close
from tests.sample import some

Array = np.ndarray[Any, Any]

INPUT_4 = np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]], np.float32)
INPUT_6 = np.array(
    [
        [4, 0, -5, 0, 1, 0],
        [0, -4, -4, 1, 1, 0],
        [0, 4, -4, -1, 1, 0],
        [0, -2, -1, 2, 1, 0],
        [0, 2, -1, -2, 1, 0],
        [0, 4, 0, -5, 0, 1],
    ],
    np.float32,
)
FILTER_4 = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]], np.float32)


def drawn(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def transform(table: Array, channels: int = 32) -> te.Function:
    """Winograd's transform of a tile: B d B', for each channel."""
    rows, columns = table.shape
    d, t = te.placeholder((columns, columns, channels), name="D"), te.constant(table, name="T")
    a, b = te.reduce_axis(columns, "a"), te.reduce_axis(columns, "b")
    left = te.compute((rows, columns, channels), lambda i, j, c: te.sum(t[i, a] * d[a, j, c], axis=a), name="L")
    both = te.compute((rows, rows, channels), lambda i, j, c: te.sum(left[i, b, c] * t[j, b], axis=b), name="V")
    return te.function("transform", [d], both)


def unrolled(function: te.Function, lanes: bool = True) -> Schedule:
    """All loops but that of the channels unrolled, that one outside or vectorized."""
    s = Schedule(compiler.lower(function))
    for label in ("L", "V"):
        i, j, c, k = s.get_loops(s.get_block(label))
        s.reorder(c, i, j, k)
        for loop in (i, j, k):
            s.unroll(loop)
        if lanes:
            outer, inner = s.split(c, [None, 16])
            s.reorder(outer, i, j, k, inner)
            s.vectorize(inner)
    return s


def expected(table: Array, d: Array) -> Array:
    return np.asarray(np.einsum("ia,abc,jb->ijc", *(x.astype(np.float64) for x in (table, d, table))))


@pytest.mark.sampled
@pytest.mark.parametrize("policy", some(["strict", "contract", "fast"], 2))
@pytest.mark.parametrize("lanes", [False, True])
@pytest.mark.parametrize("table", some([INPUT_4, INPUT_6, FILTER_4], 2))
def test_winograd(table: Array, lanes: bool, policy: str) -> None:
    s = unrolled(transform(table), lanes)
    kernel = compiler.build(s, policy=policy)
    d = drawn(table.shape[1], table.shape[1], 32)
    np.testing.assert_allclose(kernel(d), expected(table, d), rtol=1e-4, atol=1e-4)
    assert "transform_T" not in kernel.text("llvm") and "get_global" not in kernel.text("low")
    if policy == "strict":
        return
    low = kernel.text("low")
    numbers = dict(re.findall(r"(%\w+) = arith.constant (?:dense<)?([-\d.e+]+)>? : ", low))
    for line in re.findall(r"arith\.mulf ([^\n]*?) (?:fastmath|:)", low):
        used = {float(numbers[name]) for name in line.split(", ") if name in numbers}
        assert not used & {0.0, 1.0, -1.0}, line
    products = len(re.findall(r"vmulp?s?s|vmulps", kernel.text("asm")))
    if table is INPUT_4:
        assert "arith.mulf" not in low and products == 0


def test_a_transform_takes_as_many_additions_as_its_table_has_terms() -> None:
    """F(2, 3) has 32 additions a tile: each sum of two terms is one, and the 0 that it begins with is none."""
    kernel = compiler.build(unrolled(transform(INPUT_4, 16)))
    sums = re.findall(r"v(?:add|sub)ps|f(?:add|sub)\tv", kernel.text("asm"))
    assert len(sums) == 32 * max(1, 512 // host().vector_bits)  # 16 lanes
    assert kernel.text("low").count("arith.addf") == 2 * 32  # one a term, those with the 0 among them
    assert not re.findall(r"vf(?:n?m)(?:add|sub)\d+ps|fml[as]", kernel.text("asm"))


@pytest.mark.parametrize("policy", ["strict", "contract"])
def test_products_with_zero(policy: str) -> None:
    """Under strict NaN times 0 is NaN; else the product with a constant's 0 is 0."""
    d = np.ones((4, 4, 16), np.float32)
    d[3, 3] = np.nan
    actual = compiler.build(unrolled(transform(INPUT_4, 16)), policy=policy)(d)
    assert np.isnan(actual[3, 3]).all()
    assert bool(np.isnan(actual[0, 0]).any()) == (policy == "strict")


def test_a_zero_of_the_program_itself_stays_a_factor() -> None:
    x = te.placeholder((4,), name="X")
    kernel = compiler.build(te.function("f", [x], te.compute((4,), lambda i: x[i] * 0.0, name="Y")))
    assert np.isnan(kernel(np.full(4, np.nan, np.float32))).all()


def folded(body: Any, table: Any, dtype: str = "f32") -> str:
    """The low level of a compute over an unrolled axis of constants."""
    c = te.constant(table, dtype, name="T")
    x = te.placeholder(c.shape, dtype, name="X")
    function = te.function("f", [x], te.compute(c.shape, lambda i: body(x[i], c[i]), name="Y"))
    s = Schedule(compiler.lower(function))
    s.unroll(s.get_loops(s.get_block("Y"))[0])
    kernel = compiler.build(s)
    given = np.arange(3, 3 + c.shape[0]).astype(kernel.arguments[0].dtype)
    np.testing.assert_array_equal(kernel(given), evaluate(function.module, [given])[0])
    return kernel.text("low")


@pytest.mark.parametrize(
    ("body", "table", "dtype", "gone", "left"),
    [
        (lambda x, c: x * c, [1.0], "f32", ["mulf"], []),
        (lambda x, c: c * x, [-1.0], "f32", ["mulf"], ["negf"]),
        (lambda x, c: x * c, [0.5], "f32", [], ["mulf"]),
        (lambda x, c: x + c, [-0.0], "f32", ["addf"], []),
        (lambda x, c: x - c, [0.0], "f32", ["subf"], []),
        (lambda x, c: c - x, [0.0], "f32", ["subf"], ["negf"]),
        (lambda x, c: x + x * c, [0.0], "f32", ["addf", "mulf"], []),
        (lambda x, c: x * (c * 2.0), [0.5], "f32", ["mulf"], []),
        (lambda x, c: x * (c + c), [0.5], "f16", ["mulf"], []),
        (lambda x, c: x * te.cast(c * 2.0, "f64"), [0.5], "f64", ["mulf"], []),
        (lambda x, c: x * c, [1], "i32", ["muli"], []),
        (lambda x, c: x * c, [0], "i32", ["muli", "memref.load"], []),
        (lambda x, c: x + c, [0], "i8", ["addi"], []),
        (lambda x, c: x + c * 100, [1], "u8", ["muli"], ["addi"]),
    ],
)
def test_arithmetic_with_numbers(body: Any, table: Any, dtype: str, gone: list[str], left: list[str]) -> None:
    text = folded(body, table, dtype)
    assert not [op for op in gone if op in text], text
    assert all(op in text for op in left), text


def test_lanes_of_a_table_are_a_vector_of_numbers() -> None:
    x, c = te.placeholder((4, 8), name="X"), te.constant(np.arange(32, dtype=np.float32).reshape(4, 8), name="T")
    s = Schedule(compiler.lower(te.function("f", [x], te.compute((4, 8), lambda i, j: x[i, j] * c[i, j], name="Y"))))
    i, j = s.get_loops(s.get_block("Y"))
    s.unroll(i)
    s.vectorize(j)
    kernel = compiler.build(s)
    assert "dense<[8.0" in kernel.text("low").replace("8.000000e+00", "8.0") and "get_global" not in kernel.text("low")
    np.testing.assert_array_equal(kernel(np.ones((4, 8), np.float32)), np.arange(32).reshape(4, 8))


def test_a_nan_is_read_with_its_bits() -> None:
    bits = np.array([0x7FC01234, 0x3F800000, 0xFFFFFFFF], np.uint32)
    c = te.constant(bits.view(np.float32), name="T")
    s = Schedule(compiler.lower(te.function("f", [], te.compute((3,), lambda i: c[i], name="Y"))))
    s.unroll(s.get_loops(s.get_block("Y"))[0])
    assert compiler.build(s)().view(np.uint32).tolist() == bits.tolist()


def weights(size: int = 64) -> tuple[te.Function, Array]:
    """x times the transpose of a constant, doubled."""
    w = drawn(size, size)
    x, c = te.placeholder((8, size), name="X"), te.constant(w, name="W")
    doubled = te.compute((size, size), lambda i, j: c[j, i] * 2.0, name="P")
    return te.function("f", [x], te.nn.matmul(x, doubled, name="Y")), w


def test_large_constants_are_arguments_that_a_kernel_passes() -> None:
    f, w = weights()
    x = drawn(8, 64, seed=1)
    for form in (f, str(f), compiler.lower(f), str(compiler.lower(f)), Schedule(compiler.lower(f))):
        kernel = compiler.build(form)
        assert [a.name for a in kernel.arguments] == ["X", "Y"]
        assert [a.shape for a in kernel.fixed.arrays.values()] == [(64, 64)] and kernel.fixed.preparation is not None
        np.testing.assert_allclose(kernel(x), x @ (2 * w.T), rtol=1e-4, atol=1e-4)
    assert 'loop.block "P"' not in compiler.build(f).text("loop")


def test_the_original_is_not_kept_where_the_prepared_one_is_read() -> None:
    import gc
    import weakref

    w = drawn(64, 64)
    function, _ = weights()
    attribute = next(o for o in function.module.walk() if o.name == "te.constant").properties["value"].data  # type: ignore[attr-defined]
    dead = weakref.ref(attribute)
    kernel = compiler.build(function)
    del attribute, function
    gc.collect()
    assert dead() is None
    assert "te.constant dense_resource<W>" in kernel.text("te") and w.size


def test_a_nest_that_depends_on_small_constants_alone_is_prepared() -> None:
    x, c = te.placeholder((64, 64), name="X"), te.constant(np.arange(64), name="c")
    mask = te.compute((64, 64), lambda i, j: te.select(c[i] >= c[j], te.const(0.0, "f32"), -np.inf), name="mask")
    f = te.function("f", [x], te.compute((64, 64), lambda i, j: te.exp(x[i, j] + mask[i, j]), name="Y"))
    kernel = compiler.build(f)
    given = drawn(64, 64)
    np.testing.assert_allclose(kernel(given), np.tril(np.exp(given)), rtol=1e-5)
    assert kernel.fixed.preparation is not None and "loop.constant" not in kernel.text("loop")


def test_names_of_known_constants_and_given_ones() -> None:
    f, w = weights()
    x = drawn(8, 64)
    np.testing.assert_allclose(compiler.build(f, constants={"X": x})(), x @ (2 * w.T), rtol=1e-4, atol=1e-4)
    with pytest.raises(InputError, match="'W' is a constant of the program"):
        compiler.build(f, constants={"W": w})


def test_lifting_gives_the_arrays_by_name() -> None:
    f, w = weights()
    module = f.module.clone()
    arrays = lift_constants(find_function(module))
    assert list(arrays) == ["W"] and not arrays["W"].flags.writeable
    np.testing.assert_array_equal(arrays["W"], w)
    np.testing.assert_array_equal(evaluate(module, [drawn(8, 64), w])[0], evaluate(f.module, [drawn(8, 64)])[0])
    small, _ = weights(int(np.sqrt(MAX_INLINE_BYTES // 4)))
    assert lift_constants(find_function(small.module.clone())) == {}
    assert len(lift_constants(find_function(small.module.clone()), MAX_INLINE_BYTES - 1)) == 1


def table_product() -> te.Function:
    x, c = te.placeholder((20, 24), name="X"), te.constant(drawn(24, 16), name="C")
    y = te.nn.matmul(x, c, name="Y")
    return te.function("f", [x], te.compute((20, 16), lambda i, j: y[i, j] + c[0, j], name="Z"))


def same(s: Schedule, function: te.Function) -> None:
    """A schedule is proved, its text is replayed, and it gives the results of the evaluator at each level."""
    verdict = verify_schedule(s.program, read(find_function(compiler.lower(function))))
    assert verdict.answer == "proved", verdict
    assert str(parse(str(s.module))) == str(s.module)
    x = drawn(20, 24, seed=3)
    want = evaluate(function.module, [x])[0]
    output = np.zeros((20, 16), np.float32)
    interpreter.run(s.module, [x, output])
    np.testing.assert_allclose(output, want, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(compiler.build(s)(x), want, rtol=1e-5, atol=1e-5)


def cached(s: Schedule) -> None:
    copy = s.cache_read(s.get_block("Y"), "C", "local")
    s.compute_at(copy, s.get_loops(s.get_block("Y"))[0])


def packed(s: Schedule) -> None:
    s.pack(s.get_block("Y"), "C", [1, 8], [1, 0, 2])


def placed(s: Schedule) -> None:
    s.compute_at(s.get_block("Y"), s.get_loops(s.get_block("Z"))[0])


def inlined(s: Schedule) -> None:
    m, n, k = s.get_loops(s.get_block("Y"))
    s.reorder(k, m, n)
    s.parallel(s.get_loops(s.get_block("Z"))[0])
    s.vectorize(s.get_loops(s.get_block("Z"))[1])


def staged(s: Schedule) -> None:
    m, n, k = s.get_loops(s.get_block("Y"))
    outer, inner = s.split(k, [None, 5])
    s.reorder(outer, m, n, inner)
    s.stage(outer, "C")


@pytest.mark.parametrize("change", [cached, packed, placed, inlined, staged])
def test_schedules_of_programs_with_constants(change: Any) -> None:
    function = table_product()
    s = Schedule(compiler.lower(function))
    change(s)
    same(s, function)


def test_a_constant_is_no_temporary() -> None:
    s = Schedule(compiler.lower(table_product()))
    before = str(s.module)
    with pytest.raises(ScheduleError, match="buffer 'C': it is a constant, not a temporary"):
        s.lift_alloc("C", None)
    with pytest.raises(ScheduleError, match="buffer 'C': it is a constant, not a temporary"):
        s.transform_layout(s.get_block("Y"), "C", tiles=[1, 8], order=[1, 0, 2])
    assert str(s.module) == before


def test_other_elements_are_refuted() -> None:
    function = table_product()
    s = Schedule(compiler.lower(function))
    second = read(find_function(compiler.lower(table_product_of(drawn(24, 16, seed=9)))))
    assert verify_schedule(second, s.program).answer == "refuted"


def table_product_of(table: Array) -> te.Function:
    x, c = te.placeholder((20, 24), name="X"), te.constant(table, name="C")
    y = te.nn.matmul(x, c, name="Y")
    return te.function("f", [x], te.compute((20, 16), lambda i, j: y[i, j] + c[0, j], name="Z"))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.uint8, bfloat16])
def test_kernels_of_gpus(dtype: Any) -> None:
    names = {"float32": "f32", "float16": "f16", "int8": "i8", "uint8": "u8", "bfloat16": "bf16"}
    w = np.random.default_rng(0).integers(0, 9, 32).astype(dtype)
    x, c = te.placeholder((16, 32), names[np.dtype(dtype).name], name="X"), te.constant(w, name="W")
    f = te.function("f", [x], te.compute((16, 32), lambda i, j: x[i, j] * c[j] + c[0], name="Y"))
    s = Schedule(compiler.lower(f))
    i, j = s.get_loops(s.get_block("Y"))
    s.bind(i, "block_x")
    s.bind(j, "thread_x")
    given = np.random.default_rng(1).integers(0, 9, (16, 32)).astype(dtype)
    module, _, _ = lower_to_kernels(s.module.clone())
    checked = simt.run(module, [given.view(np.int8) if dtype is np.uint8 else given])
    assert checked.is_correct
    want = evaluate(f.module, [given])[0]
    np.testing.assert_array_equal(checked.outputs[0].view(want.dtype), want)
    kernel = compiler.build(s, target="cuda")
    assert "__constant__ __align__(16) unsigned" in kernel.text
    if kernel.can_compile:
        assert kernel.cubin("sm_90").resources


def test_kernels_of_gpus_read_numbers_where_loops_are_unrolled() -> None:
    function = transform(INPUT_4)
    s = Schedule(compiler.lower(function))
    for label in ("L", "V"):
        i, j, c, k = s.get_loops(s.get_block(label))
        s.reorder(c, i, j, k)
        s.bind(c, "thread_x")
        for loop in (i, k) if label == "L" else (j, k):
            s.unroll(loop)
    text = compiler.build(s, target="cuda").text
    assert "constant" not in text and " * -1" not in text and "1.0f" not in text
    d = drawn(4, 4, 32)
    checked = simt.run(lower_to_kernels(s.module.clone())[0], [d])
    assert checked.is_correct
    np.testing.assert_allclose(checked.outputs[0], expected(INPUT_4, d), rtol=1e-4, atol=1e-4)


def test_parallel_loops_read_constants(monkeypatch: pytest.MonkeyPatch) -> None:
    function = table_product()
    s = Schedule(compiler.lower(function))
    for label in ("Y", "Z"):
        s.parallel(s.get_loops(s.get_block(label))[0])
    kernel = compiler.build(s, threads=2)
    x = drawn(20, 24)
    np.testing.assert_allclose(kernel(x), evaluate(function.module, [x])[0], rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(kernel(x, threads=1), kernel(x, threads=2))


def test_tables_of_gathers_are_constants_too() -> None:
    i, table = te.placeholder((5,), "i64", name="I"), te.constant(drawn(7, 4), name="T")
    f = te.function("f", [i], te.gather((5, 4), lambda n, d: table.at(i[n], d), name="Y", otherwise=-1.0))
    given = np.array([0, 6, -1, 7, 3])
    np.testing.assert_array_equal(compiler.build(f)(given), evaluate(f.module, [given])[0])


def test_the_low_level_with_constants_is_text(tmp_path: Any) -> None:
    function = table_product()
    kernel = compiler.build(function)
    low = kernel.text("low")
    again = compiler.build(low)
    x = drawn(20, 24)
    np.testing.assert_array_equal(again(x), kernel(x))
    assert isinstance(parse(low), ModuleOp)


@pytest.mark.parametrize("chunk", some(range(20), 5))
def test_random_programs_with_constants(chunk: int) -> None:
    for seed in range(10 * chunk, 10 * chunk + 10):
        function = program(random.Random(seed), constants=0.6)
        arrays = arrays_for(function, seed)
        want = evaluate(function.module, arrays)
        text = str(function)
        assert str(parse(text)) == text
        folded = function.module.clone()
        fold_constants(find_function(folded))
        for exact, left in zip(want, evaluate(folded, arrays), strict=True):
            np.testing.assert_array_equal(exact, left)
        lifted = function.module.clone()
        known = lift_constants(find_function(lifted), rng_least(seed))
        for exact, left in zip(want, evaluate(lifted, [*arrays, *known.values()]), strict=True):
            np.testing.assert_array_equal(exact, left)
        actual = compiler.build(lifted if seed % 2 else function)(*arrays)
        assert close(list(actual) if isinstance(actual, tuple) else [actual], want), seed


def rng_least(seed: int) -> int:
    """From which size constants are large, so that some of the random ones are."""
    return (0, 16, 64)[seed % 3]


@pytest.mark.parametrize("chunk", some(range(10), 10))
def test_random_scripts_of_programs_with_constants(chunk: int) -> None:
    for seed in range(20000 + 10 * chunk, 20000 + 10 * chunk + 10):
        check(seed, native=seed % 2 == 0, constants=0.6)


def product(large: bool) -> te.Function:
    """A product with a constant, large or small."""
    size = 64 if large else 16
    x, w = te.placeholder((24, size), name="X"), te.constant(drawn(size, size), name="W")
    return te.function("product", [x], te.nn.matmul(x, w, name="Y"))


def with_other_elements(large: bool) -> te.Function:
    size = 64 if large else 16
    x, w = te.placeholder((24, size), name="X"), te.constant(drawn(size, size, seed=5), name="W")
    return te.function("product", [x], te.nn.matmul(x, w, name="Y"))


@pytest.mark.parametrize("large", [False, True])
def test_tasks_know_small_constants_by_their_elements(large: bool) -> None:
    task, second = (SearchTask(make(large), threads=1) for make in (product, with_other_elements))
    assert (task.key == second.key) == large
    assert ("dialect_resources" in task.program) == ("loop.constant" in task.program) == (not large)
    assert task.key == SearchTask(product(large), threads=1).key


@pytest.mark.skipif(qemu_calls.is_needed(), reason="worker processes measure on this processor")
@pytest.mark.parametrize("large", some([False, True], 2))
def test_a_task_with_constants_is_tuned(large: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    function, database = product(large), tmp_path / "tuned.db"
    task = SearchTask(function, threads=1)
    record = task.tune(TuningOptions(trials=3, batch=3, database=database, builders=1))
    assert record is not None and record.outcome.ok
    kernel = task.apply_best(database)
    x = drawn(*kernel.arguments[0].shape)
    assert [a.name for a in kernel.arguments] == ["X", "Y"]
    np.testing.assert_allclose(kernel(x), evaluate(function.module, [x])[0], rtol=1e-4, atol=1e-4)
    task.print_best(database, "llvm")
    assert "product" in capsys.readouterr().out


def test_candidates_are_measured_with_the_elements_of_constants() -> None:
    """Rows that a constant picks: other indices would be outside the table, or other rows."""
    index = te.constant(np.arange(1000) % 7, name="I")
    table = te.placeholder((7, 4), name="T")
    gathered = te.gather((1000, 4), lambda n, d: table.at(index[n], d), name="Y", otherwise=-1.0)
    task = SearchTask(te.function("rows", [table], gathered), threads=1)
    cases = reference(Subject(str(task.module), "rows")).cases
    for case in cases:
        np.testing.assert_array_equal(case.inputs[1], np.arange(1000) % 7)
        np.testing.assert_allclose(case.expected[0].strict, case.inputs[0][np.arange(1000) % 7])


@pytest.mark.parametrize("dtype", ["f32", "f16", "i8"])
def test_one_number_is_no_array(dtype: str) -> None:
    x, ones = te.placeholder((8, 2000), dtype, name="X"), te.constant(np.ones((8, 2000)).astype(int), dtype, name="one")
    zeros = te.constant(np.zeros(2000, int), dtype, name="bias")
    f = te.function("f", [x], te.compute((8, 2000), lambda i, j: x[i, j] * ones[i, j] + zeros[j], name="Y"))
    s = Schedule(compiler.lower(f))
    s.vectorize(s.split(s.get_loops(s.get_block("Y"))[1], [None, 16])[1])
    for form in (f, s):
        kernel = compiler.build(form)
        given = np.arange(16000).reshape(8, 2000).astype(kernel.arguments[0].dtype)
        np.testing.assert_array_equal(kernel(given), given)
        arithmetic = r"get_global|(mul|add)[fi] .* : (vector<16x)?(f|i8)"
        assert not kernel.fixed.arrays and not re.search(arithmetic, kernel.text("low"))


def test_kernels_copy_the_elements_of_programs() -> None:
    x, w = te.placeholder((8, 64), name="X"), te.constant(drawn(64, 64), name="W")
    f = te.function("f", [x], te.nn.matmul(x, w, name="Y"))
    (fixed,) = compiler.build(f).fixed.arrays.values()
    held = next(op.value.data for op in f.module.walk() if isinstance(op, ConstantOp))
    np.testing.assert_array_equal(fixed, array_of(held))
    assert not fixed.flags.writeable and fixed.ctypes.data % 64 == 0
