"""The target c: what its texts say, that gcc computes with them what the CPU does, and what is refused."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compiler
from compiler import te
from compiler.__main__ import main
from compiler.autotune.task import SearchTask
from compiler.interpret import te as evaluator
from compiler.schedule import Schedule
from compiler.support.errors import InputError, LoweringError, TargetError
from compiler.targets import compilers
from compiler.targets.c.kernel import CKernel
from compiler.targets.c.library import load_library
from compiler.targets.c.names import symbol
from compiler.types.machines import MACHINES, machine_facts
from tests.agreement import bound, error, widened
from tests.operators.catalogue import numpy_dtype
from tests.programs import applied
from tests.said import Strata

Array = np.ndarray[Any, Any]
Make = Callable[[str], te.Function]
needs_compiler = pytest.mark.skipif(compilers.compiler_command() is None, reason="there is no C compiler")


def matmul(dtype: str, shape: Sequence[int] = (37, 50, 41)) -> te.Function:
    m, k, n = shape
    A, B = te.placeholder((m, k), dtype, name="A"), te.placeholder((k, n), dtype, name="B")
    return te.function("mm", [A, B], te.nn.relu(te.nn.matmul(A, B, name="C"), name="Y"))


def softmax(dtype: str) -> te.Function:
    return applied(partial(te.nn.softmax, axis=1), (5, 33), dtype=dtype, name="rows")


def total(dtype: str) -> te.Function:
    return applied(partial(te.nn.sum, axis=1, name="S"), (7, 129), dtype=dtype, name="total")


def layer(dtype: str) -> te.Function:
    X, W = te.placeholder((1, 3, 9, 9), dtype, name="X"), te.placeholder((5, 3, 3, 3), dtype, name="W")
    return te.function("layer", [X, W], te.nn.conv2d(X, W, padding=1, name="C"))


def positive(dtype: str) -> te.Function:
    X = te.placeholder((6, 19), dtype, name="X")
    return te.function("positive", [X], te.nn.greater(X, te.nn.sub(X, X, name="Z"), name="Y"))


def both(dtype: str) -> te.Function:
    X, Z = (te.placeholder((6, 19), dtype, name=name) for name in "XZ")
    return te.function("both", [X, Z], te.nn.bitwise_and(X, te.nn.bitwise_not(Z, name="N"), name="Y"))


PROGRAMS: Sequence[tuple[Make, str]] = [
    *((make, dtype) for make in (matmul, total, layer) for dtype in ("f32", "f64", "i32", "i8", "f16", "bf16")),
    *((softmax, dtype) for dtype in ("f32", "f64", "f16", "bf16")),
    *((positive, dtype) for dtype in ("f32", "i8", "u8", "i64")),
    (both, "i1"),
]


def inputs(function: te.Function) -> list[Array]:
    random = np.random.default_rng(0)
    arrays = []
    for tensor in function.inputs:
        dtype = numpy_dtype(tensor.dtype)
        numbers = random.integers(-9 if dtype.kind == "i" else 0, 9, tensor.shape)
        is_float = dtype.kind not in "iub"
        arrays.append((random.standard_normal(tensor.shape) if is_float else numbers).astype(dtype))
    return arrays


def built(x: object, **options: Any) -> CKernel:
    kernel = compiler.build(x, target="c", **{"schedule": "auto"} | options)
    assert isinstance(kernel, CKernel)
    return kernel


@cache
def references(function: te.Function) -> list[Array]:
    """The result of the evaluator and that of the CPU."""
    (evaluated,) = evaluator.evaluate(function.module, inputs(function))
    return [evaluated, compiler.build(function)(*inputs(function))]


@cache
def made(make: Make, dtype: str) -> te.Function:
    return make(dtype)


def check(kernel: CKernel, function: te.Function, dtype: str) -> None:
    actual = kernel(*inputs(function))
    for expected in references(function):
        assert error(actual, widened(expected)) <= 4 * bound(dtype, actual)


@pytest.mark.sampled
@needs_compiler
@pytest.mark.parametrize(("make", "dtype"), PROGRAMS, ids=lambda x: x if isinstance(x, str) else x.__name__)
@pytest.mark.parametrize("way", ["auto", "written"])
def test_it_computes_what_the_cpu_does(make: Make, dtype: str, way: str) -> None:
    function = made(make, dtype)
    check(built(function, schedule=way), function, dtype)


_checked: set[str] = set()
"""The texts that compute what they should: those of several machines are the same."""


@pytest.mark.sampled
@needs_compiler
@pytest.mark.parametrize("machine", MACHINES)
def test_vectors_of_every_width(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of other machines, too: compilers make of wide vectors what the processor has."""
    monkeypatch.setenv("STRATA_MACHINE", machine_facts(MACHINES[machine]))
    kernels = {function: built(function) for function in (made(matmul, "f32"), made(softmax, "f32"))}
    monkeypatch.setenv("STRATA_MACHINE", "host")
    for function, kernel in kernels.items():
        assert f"f32x{MACHINES[machine].vector_bits // 32}" in kernel.text
        if kernel.text not in _checked:
            check(kernel, function, "f32")
            _checked.add(kernel.text)


def test_the_comment_says_what_a_caller_has_to_know() -> None:
    text = built(matmul("f32"), schedule="written").text
    assert "\n *   A  float32 37 x 50, input\n *   B  float32 50 x 41, input\n *   Y  float32 37 x 41, output\n" in text
    assert re.search(r"void mm\(\s*const float A\[restrict static 37\]\[50\],", text)
    assert "-ffp-contract=fast" in text
    assert "-ffp-contract=off" in built(matmul("f32"), schedule="written", policy="strict").text


@needs_compiler
@pytest.mark.parametrize("policy", ["strict", "contract", "fast"])
def test_strict_sums_have_the_bits_of_the_cpu(policy: str) -> None:
    function = matmul("f32")
    arrays = inputs(function)
    kernel = built(function, schedule="written", policy=policy)
    native = compiler.build(function, schedule="written", policy=policy)
    np.testing.assert_allclose(kernel(*arrays), native(*arrays), rtol=1e-5, atol=1e-5)
    if policy == "strict":
        np.testing.assert_array_equal(kernel(*arrays), native(*arrays))


@needs_compiler
def test_parallel_loops_are_openmps() -> None:
    function = matmul("f32", (64, 64, 64))
    s = Schedule(function)
    s.parallel(s.get_loops("C")[0])
    s.parallel(s.get_loops("Y")[0])
    kernel = built(s)
    assert kernel.text.count("#pragma omp parallel for\n") == 2
    check(kernel, function, "f32")
    plain = applied(lambda X: te.compute(X.shape, lambda i, j: X[i, j] * 2.0, name="Y"), (40, 30), name="plain")
    s = Schedule(plain)
    s.parallel(s.fuse(*s.get_loops("Y")))
    assert "#pragma omp parallel for simd\n" in built(s).text
    check(built(s), plain, "f32")


@needs_compiler
def test_loops_are_cut_for_threads() -> None:
    function = matmul("f32", (256, 128, 512))
    kernel = built(function, threads=2)
    assert "#pragma omp parallel for" in kernel.text
    assert "#pragma omp parallel" not in built(function).text
    check(kernel, function, "f32")
    with pytest.raises(TargetError, match="the number of threads is 0, expected an integer from 1 to"):
        built(function, threads=0)


LOW = """
func.func @low(%A: memref<{n}xf32>, %B: memref<{n}xf32>) attributes {{outputs = 1 : i64}} {{
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant dense<0.0> : vector<{n}xf32>
  %mask = vector.create_mask %c3 : vector<{n}xi1>
  %a = vector.load %A[%c0] : memref<{n}xf32>, vector<{n}xf32>
{ops}
  vector.store %r, %B[%c0] : memref<{n}xf32>, vector<{n}xf32>
  func.return
}}
"""
VECTORS: dict[str, tuple[str, Callable[[Array], Array]]] = {
    "sum": ("%r = arith.addf %a, %a : vector<{n}xf32>", lambda a: a + a),
    "negation": ("%r = arith.negf %a : vector<{n}xf32>", lambda a: -a),
    "masked load": (
        "%r = vector.maskedload %A[%c0], %mask, %zero : memref<{n}xf32>, vector<{n}xi1>, vector<{n}xf32> "
        "into vector<{n}xf32>",
        lambda a: np.where(np.arange(len(a)) < 3, a, 0),
    ),
    "compared": (
        "%c = arith.cmpf ogt, %a, %zero : vector<{n}xf32>\n"
        "  %r = arith.select %c, %a, %zero : vector<{n}xi1>, vector<{n}xf32>",
        lambda a: np.maximum(a, 0),
    ),
    "a mask and a comparison": (
        "%c = arith.cmpf ogt, %a, %zero : vector<{n}xf32>\n"
        "  %both = arith.andi %c, %mask : vector<{n}xi1>\n"
        "  %r = vector.maskedload %A[%c0], %both, %zero : memref<{n}xf32>, vector<{n}xi1>, vector<{n}xf32> "
        "into vector<{n}xf32>",
        lambda a: np.where((np.arange(len(a)) < 3) & (a > 0), a, 0),
    ),
    "a mask that is chosen": (
        "%s = memref.load %A[%c3] : memref<{n}xf32>\n  %f = arith.constant 0.0 : f32\n"
        "  %is = arith.cmpf ogt, %s, %f : f32\n  %all = vector.broadcast %is : i1 to vector<{n}xi1>\n"
        "  %both = arith.andi %all, %mask : vector<{n}xi1>\n"
        "  %r = vector.maskedload %A[%c0], %both, %zero : memref<{n}xf32>, vector<{n}xi1>, vector<{n}xf32> "
        "into vector<{n}xf32>",
        lambda a: np.where((np.arange(len(a)) < 3) & (a[3] > 0), a, 0),
    ),
    "extracted, inserted": (
        "%e = vector.extract %a[1] : f32 from vector<{n}xf32>\n"
        "  %r = vector.insert %e, %a[0] : f32 into vector<{n}xf32>",
        lambda a: np.concatenate([a[1:2], a[1:]]),
    ),
    "reduced": (
        "%s = vector.reduction <maximumf>, %a : vector<{n}xf32> into f32\n"
        "  %r = vector.broadcast %s : f32 to vector<{n}xf32>",
        lambda a: np.full_like(a, a.max()),
    ),
    "shuffled": ("%r = vector.shuffle %a, %zero [{picks}] : vector<{n}xf32>, vector<{n}xf32>", lambda a: a[::-1]),
    "gathered": (
        "%at = arith.constant dense<[{picks}]> : vector<{n}xindex>\n"
        "  %all = arith.constant dense<true> : vector<{n}xi1>\n"
        "  %r = vector.gather %A[%c0] [%at], %all, %zero : memref<{n}xf32>, vector<{n}xindex>, vector<{n}xi1>, "
        "vector<{n}xf32> into vector<{n}xf32>",
        lambda a: a[::-1],
    ),
    "bits": (
        "%i = arith.bitcast %a : vector<{n}xf32> to vector<{n}xi32>\n"
        "  %m = arith.constant dense<2147483647> : vector<{n}xi32>\n"
        "  %j = arith.andi %i, %m : vector<{n}xi32>\n"
        "  %r = arith.bitcast %j : vector<{n}xi32> to vector<{n}xf32>",
        np.abs,
    ),
    "fused": ("%r = vector.fma %a, %a, %zero : vector<{n}xf32>", lambda a: a * a),
    "a number of bf16": (
        "%h = arith.truncf %a : vector<{n}xf32> to vector<{n}xbf16>\n"
        "  %r = arith.extf %h : vector<{n}xbf16> to vector<{n}xf32>",
        lambda a: a.astype(numpy_dtype("bf16")).astype(np.float32),
    ),
    "scaled": (
        "%two = arith.constant dense<2> : vector<{n}xi32>\n"
        '  %r = llvm.call_intrinsic "llvm.ldexp.v{n}f32.v{n}i32"(%a, %two) : '
        "(vector<{n}xf32>, vector<{n}xi32>) -> vector<{n}xf32>",
        lambda a: a * 4,
    ),
}


@pytest.mark.sampled
@needs_compiler
@pytest.mark.parametrize("name", VECTORS)
@pytest.mark.parametrize("n", [8, 5])
def test_operations_on_vectors(name: str, n: int) -> None:
    """Of lengths that compilers have, and of one that they have not."""
    ops, expected = VECTORS[name]
    text = LOW.format(n=n, ops="  " + ops.format(n=n, picks=", ".join(map(str, reversed(range(n))))))
    a = np.random.default_rng(3).standard_normal(n).astype(np.float32)
    np.testing.assert_allclose(built(text)(a), expected(a), rtol=1e-6)


@needs_compiler
def test_large_temporaries_are_on_the_heap() -> None:
    function = matmul("f32", (100, 20, 100))
    kernel = built(function, schedule="written")
    assert re.search(r"float \(\*C\)\[100\] = aligned_alloc\(64, 40000\);\n  if \(!C\) abort\(\);", kernel.text)
    assert "free(C);" in kernel.text
    check(kernel, function, "f32")


@pytest.mark.sampled
@needs_compiler
@pytest.mark.parametrize("dtype", ["f32", "f64", "i8", "i64", "f16", "bf16", "i1"])
@pytest.mark.parametrize("rows", [3, 3000])
def test_constants_are_arrays_of_the_text(dtype: str, rows: int) -> None:
    """Small ones, which the program has inside, and large ones, which are arguments of it."""
    random = np.random.default_rng(0)
    numbers = random.integers(0, 2 if dtype == "i1" else 100, (rows, 5)).astype(numpy_dtype(dtype))
    X = te.placeholder((rows, 5), dtype, name="X")
    W = te.constant(numbers, name="W")
    value = te.nn.bitwise_and(X, W, name="Y") if dtype == "i1" else te.nn.add(X, W, name="Y")
    function = te.function("constants", [X], value)
    kernel = built(function)
    assert "static const" in kernel.text
    assert [argument.name for argument in kernel.arguments] == ["X", "Y"]
    check(kernel, function, dtype)


def test_a_constant_may_be_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compiler.targets.c.constants.MAX_BYTES", 1000)
    X = te.placeholder((40, 50), name="X")
    W = te.constant(np.arange(2000, dtype=np.float32).reshape(40, 50), name="W")
    with pytest.raises(LoweringError, match="has 8000 bytes, more than 1000: give it as an input"):
        built(te.function("f", [X], te.nn.add(X, W, name="Y")))


@needs_compiler
@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1), (1, 17)])
def test_small_shapes(shape: tuple[int, ...]) -> None:
    function = applied(lambda X: te.compute(shape, lambda *i: X[i] + 1.0, name="Y"), shape, name="small")
    x = np.arange(prod(shape), dtype=np.float32).reshape(shape)
    np.testing.assert_array_equal(built(function)(x), x + 1)


NAMES = "exp double restrict lane f32x8 load_f32x16 memcpy INFINITY __x 0 max_i64 é y0".split()  # noqa: SIM905


@needs_compiler
@pytest.mark.parametrize("name", NAMES)
def test_names_that_c_keeps_to_itself(name: str) -> None:
    X = te.placeholder((4, 33), name=name)
    Y = te.compute((4, 33), lambda i, j: te.exp(X[i, j] * X[i, j]), name=f"{name}_1")
    function = te.function(name, [X], Y)
    check(built(function), function, "f32")


@pytest.mark.parametrize(("name", "expected"), [("mm", "mm"), ("exp", "strata_exp"), ("isnan", "strata_isnan")])
def test_the_name_of_the_function(name: str, expected: str) -> None:
    assert symbol(name) == expected


def test_an_op_without_a_form_is_refused_by_its_name() -> None:
    text = """func.func @f(%A: memref<4xi32>) {
  %c0 = arith.constant 0 : index
  %a = memref.load %A[%c0] : memref<4xi32>
  %b = math.ctpop %a : i32
  memref.store %b, %A[%c0] : memref<4xi32>
  func.return
}"""
    with pytest.raises(LoweringError, match=r"^'math.ctpop' has no form in C$"):
        built(text)


REFUSED = {
    "view": (
        "%s = memref.alloc() : memref<64xi8>\n  %v = memref.view %s[%c0][] : memref<64xi8> to memref<16xf32>",
        "'memref.view' has no form in C",
    ),
    "lanes": (
        "%v = vector.load %A[%c0] : memref<16xi32>, vector<16xi32>\n  %b = math.ctpop %v : vector<16xi32>",
        "'math.ctpop' has no form in C",
    ),
    "type": ("%a = arith.constant 0 : i128\n  %b = arith.addi %a, %a : i128", "the type i128 has no form in C"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    ops, sentence = REFUSED[name]
    text = f"func.func @f(%A: memref<16xi32>) {{\n  %c0 = arith.constant 0 : index\n  {ops}\n  func.return\n}}"
    with pytest.raises((LoweringError, InputError), match=sentence):
        built(text)


def test_arguments_of_the_cpu_are_refused() -> None:
    function = matmul("f32")
    with pytest.raises(TargetError, match="constants are the CPU's, not c's"):
        built(function, constants={"A": np.zeros((37, 50), np.float32)})
    with pytest.raises(TargetError, match=r"the database 'x\.db' is the CPU's, not c's"):
        built(function, schedule=_database())
    with pytest.raises(TargetError, match="programs for c are not tuned: tune for cpu, and build its script"):
        SearchTask(function, target="c")


def _database() -> Path:
    Path("x.db").touch()
    return Path("x.db")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@needs_compiler
def test_arrays_that_do_not_fit() -> None:
    kernel = built(matmul("f32"))
    a, b = inputs(matmul("f32"))
    out = np.empty((37, 41), np.float32)
    assert kernel(a, b, out=out) is out
    np.testing.assert_array_equal(kernel(a, b), out)
    np.testing.assert_array_equal(kernel(np.asfortranarray(a), b), out)
    for given, sentence in (
        ((a,), "mm: takes 2 arrays, got 1"),
        ((a, b[:3]), r"argument 'B' has shape \(3, 41\), expected \(50, 41\)"),
        ((a.astype(np.float64), b), "argument 'A' has dtype float64, expected float32"),
    ):
        with pytest.raises(TargetError, match=sentence):
            kernel(*given)
    with pytest.raises(TargetError, match="mm: gives 1 arrays, got 2 for them"):
        kernel(a, b, out=(out, out))
    square = built(matmul("f32", (8, 8, 8)))
    x = np.ones((8, 8), np.float32)
    with pytest.raises(TargetError, match="'Y' is written, but shares memory with 'A'"):
        square(x, np.eye(8, dtype=np.float32), out=x)


@needs_compiler
def test_a_kernel_is_data(tmp_path: Path) -> None:
    kernel = built(matmul("f32"))
    arrays = inputs(matmul("f32"))
    expected = kernel(*arrays)
    copy = pickle.loads(pickle.dumps(kernel))
    assert copy == kernel and copy.text == kernel.text
    np.testing.assert_array_equal(copy(*arrays), expected)
    assert repr(kernel) == "<CKernel mm(A: float32[37, 50], B: float32[50, 41], Y: float32[37, 41]), 1 output>"
    assert "<table" in kernel._repr_html_()
    assert built(matmul("f32")).text == kernel.text


def test_without_a_compiler_there_is_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    compilers.compiler_command.cache_clear()
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(compilers, "find_spec", lambda name: None)
    try:
        kernel = built(total("f32"))
        assert not kernel.can_compile and "void total(" in kernel.text
        with pytest.raises(TargetError, match="there is no C compiler"):
            kernel(np.zeros((7, 129), np.float32))
    finally:
        compilers.compiler_command.cache_clear()


@needs_compiler
def test_nothing_is_left_behind_and_wrong_text_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    library = load_library("int f(void) { return 42; }", contracts=True)
    assert library.f() == 42 and list(tmp_path.iterdir()) == []
    with pytest.raises(TargetError, match=r"refuses the text: .*error: "):
        load_library("int f(void) { return x; }", contracts=True)


def test_the_command(tmp_path: Path, strata: Strata) -> None:
    Path("mm.mlir").write_text(str(matmul("f32").module))
    printed = strata("build", "mm.mlir", "--target", "c", "--schedule", "written")
    assert printed == built(matmul("f32"), schedule="written").text
    assert main(["build", "mm.mlir", "--target", "c", "--schedule", "written", "-o", "mm.c"]) == 0
    assert Path("mm.c").read_text() == printed
    assert "the target c has no text 'asm' (it has c)" in strata(
        "build", "mm.mlir", "--target", "c", "--emit", "asm", status=1
    )
    assert main(["build", "mm.mlir", "--target", "cuda", "-o", "mm.cu"]) == 0
    assert "__global__" in Path("mm.cu").read_text()
    assert "it is not said what to build" in strata("build", "mm.mlir", "-o", "mm.txt", status=1)
    assert "unknown target 'moon'" in strata("build", "mm.mlir", "--target", "moon", status=1)


FAULTS = {"a comparison": ("a > b ? a", "a < b ? a"), "a sum": ("v += ", "v -= "), "a lane": ("[lane] = ", "[0] = ")}


@needs_compiler
@pytest.mark.parametrize("name", FAULTS)
def test_a_wrong_text_is_seen(name: str) -> None:
    """The comparison with the CPU sees faults that are put into a text."""
    right, wrong = FAULTS[name]
    function = matmul("f32") if name == "a lane" else te_rows()
    kernel = built(function, schedule="auto" if name == "a lane" else "written")
    assert right in kernel.text
    spoilt = replace(kernel, source=replace(kernel.source, text=kernel.text.replace(right, wrong)))
    with pytest.raises(AssertionError):
        check(spoilt, function, "f32")


def te_rows() -> te.Function:
    return applied(lambda X: te.nn.relu(te.nn.sum(X, axis=1, name="S"), name="Y"), (4, 20), name="rows")
