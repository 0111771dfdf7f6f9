"""What users get wrong ends in a sentence that names it: Python, text, command line, arrays."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compiler
import strata
from compiler import te
from compiler.opt import main as strata_opt
from compiler.schedule import Schedule
from compiler.support.errors import StrataError

A = te.placeholder((4, 8), name="A")
B = te.placeholder((8, 6), name="B")
V = te.placeholder((8,), name="V")
INTS = te.placeholder((8,), "i32", name="I")
K = te.reduce_axis(8, "k")
nn = te.nn


def _relu() -> te.Function:
    return te.function("f", [A], nn.relu(A))


def tuple_of_reductions() -> Any:
    return te.compute((4,), lambda m: (te.sum(A[m, K], axis=K), A[m, 0]), "C")


def stranger() -> Any:
    second: list[Any] = []
    te.compute((3,), lambda q: second.append(q) or V[q], "T")
    return te.compute((4,), lambda m: A[m, second[0]], "C")


EXPRESSIONS: dict[str, tuple[Callable[[], Any], str]] = {
    "zero extent": (lambda: te.placeholder((0, 2), name="Z"), "dimension 0 of tensor 'Z' has extent 0"),
    "float extent": (lambda: te.placeholder((2.5,), name="Z"), "extents are integers"),
    "shape a string": (lambda: te.placeholder("4", name="Z"), "a shape is a tuple"),
    "dtype": (lambda: te.placeholder((2,), "f128", name="Z"), "unknown dtype 'f128'"),
    "name": (lambda: te.placeholder((2,), name=3), "3 cannot name a tensor"),
    "axis name": (lambda: te.reduce_axis(3, b"k"), "b'k' cannot name an axis"),
    "axis extent": (lambda: te.reduce_axis(-3, "k"), "axis 'k' has extent -3"),
    "rank": (lambda: te.compute((4,), lambda m: A[m], "C"), "'A' has 2 dimensions, indexed with 1"),
    "bounds": (
        lambda: te.compute((4,), lambda m: A[m, m + 5], "C"),
        r"in compute 'C': the read of 'A' is out of bounds in dimension 1: \(m \+ 5\) is 8 at m=3",
    ),
    "negative": (lambda: te.compute((8,), lambda i: V[i - 1], "C"), r"\(i - 1\) is -1 at i=0"),
    "guard too wide": (lambda: te.compute((9,), lambda i: te.select(i >= 0, V[i], 0.0), "C"), "out of bounds"),
    "float index": (lambda: te.compute((4,), lambda m: A[m, 1.5], "C"), "'A' is indexed with 1.5"),
    "data index": (lambda: te.compute((8,), lambda i: V[INTS[i]], "C"), "indexed with a data-dependent value"),
    "product of axes": (lambda: te.compute((2, 2), lambda i, j: V[i * j], "C"), "not quasi-affine"),
    "division by an axis": (lambda: te.compute((2, 2), lambda i, j: V[i // j], "C"), "not quasi-affine"),
    "division by zero": (lambda: te.compute((2,), lambda i: V[i // 0], "C"), "divides by an integer below 1"),
    "true division": (lambda: te.compute((2,), lambda i: V[i / 2], "C"), "use // on axes"),
    "axis and float": (lambda: te.compute((2,), lambda i: V[i] + (i + 0.5), "C"), "mixes an axis and a float"),
    "axis as value": (lambda: te.compute((2,), lambda i: V[i] + i, "C"), "'i' is used as a value: te.cast"),
    "if": (lambda: te.compute((2,), lambda i: V[i] if V[i] > 0 else 0.0, "C"), "use te.select instead of if"),
    "if on an axis": (lambda: te.compute((2,), lambda i: V[i] if i > 0 else 0.0, "C"), "use te.select"),
    "iteration": (lambda: te.compute((2,), lambda i: sum(V[i]), "C"), "cannot be iterated"),
    "range": (lambda: te.compute((2,), lambda i: V[range(i)[0]], "C"), "'i' has no value"),
    "dtypes": (lambda: te.compute((8,), lambda i: V[i] + INTS[i], "C"), "add of f32 and i32: dtypes do not mix"),
    "exp of int": (lambda: te.compute((8,), lambda i: te.exp(INTS[i]), "C"), "exp takes floats, got i32"),
    "int division": (lambda: te.compute((8,), lambda i: INTS[i] / 2, "C"), "integers divide by //"),
    "half an int": (lambda: te.compute((8,), lambda i: INTS[i] * 0.5, "C"), "0.5 is not a value of i32"),
    "logic of floats": (lambda: te.compute((8,), lambda i: V[i] & V[i], "C"), "only truth values"),
    "sum of truths": (lambda: te.compute((8,), lambda i: (V[i] > 0) + (V[i] < 0), "C"), "truth values"),
    "condition": (lambda: te.compute((8,), lambda i: te.select(V[i], V[i], V[i]), "C"), "is f32, expected i1"),
    "array": (lambda: te.compute((8,), lambda i: V[i] + te.cast([1], "f32"), "C"), "list is not an expression"),
    "nothing": (lambda: te.compute((8,), lambda i: None, "C"), "NoneType is not an expression"),
    "arity": (lambda: te.compute((8, 2), lambda i: V[i], "C"), "has 2 dimensions, the function takes 1"),
    "not a function": (lambda: te.compute((8,), 3, "C"), "3 is not a function of the axes"),
    "axis twice": (lambda: te.compute((2, 2), lambda *i: V[i[0]], "C", axes=("i", "i")), "occurs twice"),
    "reduce spatial": (lambda: te.compute((8,), lambda i: te.sum(V[i], axis=i), "C"), "which is a spatial axis"),
    "no axis": (lambda: te.sum(V[K], axis=None), "needs axis="),
    "reduce twice": (lambda: te.sum(V[K], axis=(K, K)), "runs twice over 'k'"),
    "nested": (lambda: te.compute((4,), lambda m: te.sum(A[m, K], axis=K) + 1.0, "C"), "inside an expression"),
    "free reduce axis": (lambda: te.compute((4,), lambda m: A[m, K], "C"), "reduce axis 'k' is not one of"),
    "half reduced": (tuple_of_reductions, "some results are reduced and some are not"),
    "foreign axis": (stranger, "axis 'q' is not one of this compute's axes"),
    "reduce name": (lambda: te.compute((8,), lambda k: te.sum(V[K], axis=K), "C"), "'k' occurs twice"),
    "whole tensor": (lambda: A + V[K], r"'A' is used whole with \+"),
    "whole tensors": (lambda: A + B, r"'A' \(4, 8\) and 'B' \(8, 6\) do not broadcast"),
    "bias": (
        lambda: te.placeholder((1, 8, 5, 6), name="image") + V,
        r"do not broadcast, as numpy aligns the last axes; te.nn.reshape\(V, \(8, 1, 1\)\) fits axis 1",
    ),
    "bias first": (lambda: B - te.placeholder((8,), name="b"), r"te.nn.reshape\(b, \(8, 1\)\) fits axis 0"),
    "dtypes of tensors": (lambda: V * INTS, "'V' \\* 'I': f32 and i32 do not mix; te.nn.cast converts"),
    "an array": (lambda: np.ones(8, np.float32) + V, "'V' \\+ an array: te.constant makes a tensor"),
    "a word": (lambda: V / "x", "'V' / 'x'"),  # type: ignore[operator]
    "matrix times number": (lambda: A @ 2, "@ is the product of two tensors"),
    "matrices": (lambda: A @ A, "extents of k in 'A' and 'A' differ"),
    "half an integer tensor": (lambda: INTS + 0.5, "0.5 is not a value of i32"),
    "integer tensors divided": (lambda: INTS / INTS, "integers divide by //"),
    "truth of a comparison": (lambda: max(V, V), "has no value while the program is built"),
    "not an input": (lambda: te.function("f", [A], nn.matmul(A, B)), "uses the placeholder 'B'"),
    "same names": (lambda: te.function("f", [A, te.placeholder((2,), name="A")], A), "two inputs .* named 'A'"),
    "no outputs": (lambda: te.function("f", [A], []), "'f' has no outputs"),
    "output": (lambda: te.function("f", [A], [3]), "3 is not a tensor"),  # type: ignore[list-item]
    "computed input": (lambda: te.function("f", [nn.relu(A)], A), "is computed, not a placeholder"),
    "function name": (lambda: te.function(2, [A], A), "2 cannot name a function"),
    "matmul shapes": (lambda: nn.matmul(A, A), "extents of k in 'A' and 'A' differ: 8 and 4"),
    "matmul rank": (lambda: nn.matmul(A, V), r"'V' has shape \(8,\), expected 2 dimensions"),
    "broadcast": (lambda: nn.add(A, B), "do not broadcast"),
    "axis of softmax": (lambda: nn.softmax(A, 2), "has no axis 2"),
    "permutation": (lambda: nn.transpose(A, (0, 0)), "is not a permutation"),
    "pad widths": (lambda: nn.pad(A, [(1, 1)]), "are not \\(before, after\\) for each dimension"),
    "padding value": (lambda: INTS.padded(0.5), "0.5 is not a value of i32"),
    "window": (
        lambda: nn.max_pool2d(te.placeholder((1, 1, 2, 2), name="X"), 3),
        "a window of 3 does not fit an extent of 2",
    ),
    "groups": (
        lambda: nn.conv2d(te.placeholder((1, 3, 4, 4), name="X"), te.placeholder((4, 1, 1, 1), name="W"), groups=2),
        "2 groups do not divide 3 channels",
    ),
    "stride": (
        lambda: nn.conv2d(te.placeholder((1, 3, 4, 4), name="X"), te.placeholder((4, 3, 1, 1), name="W"), stride=0),
        "stride is 0",
    ),
    "target": (lambda: compiler.build(te.function("f", [A], nn.relu(A)), target="tpu"), "unknown target 'tpu'"),
    "policy": (lambda: compiler.build(te.function("f", [A], nn.relu(A)), policy="loose"), "unknown policy"),
    "threads": (lambda: compiler.build(te.function("f", [A], nn.relu(A)), threads=0), "threads=0"),
    "build a number": (lambda: compiler.build(3), "cannot build a int"),
    "missing file": (lambda: compiler.build(Path("nowhere.mlir")), "nowhere.mlir cannot be read"),
    "array of numpy": (
        lambda: nn.relu(np.zeros((4, 6))),
        r"relu: an array \(ndarray\) is not a tensor: te.placeholder",
    ),
    "matrix": (lambda: nn.matmul(np.zeros((4, 6)), A), r"matmul: an array \(ndarray\) is not a tensor"),
    "long name": (lambda: compiler.build("x" * 5000), r"^cannot build 'x+\.\.\.x+': give the path"),
    "schedule of a path": (lambda: Schedule("a.mlir"), "not of a str: strata.lower reads a file"),
    "seed of a schedule": (lambda: Schedule(_relu(), seed=object()), "seed is <object .*, expected an integer"),
    "name of a schedule": (lambda: Schedule(_relu()).python("1s"), "name of the schedule is '1s'"),
    "workload": (lambda: strata.workload("x"), "'x' is no function: @workload stands above"),
    "no function": (lambda: compiler.build("builtin.module {\n}"), "no function at all"),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_python(name: str) -> None:
    make, sentence = EXPRESSIONS[name]
    with pytest.raises(StrataError, match=sentence):
        make()


F32 = np.float32
frozen = np.zeros((4, 6), F32)
frozen.flags.writeable = False
odd = np.zeros(4 * 6 * 4 + 1, np.uint8)[1:].view(F32).reshape(4, 6)
a, b = np.ones((4, 8), F32), np.ones((8, 6), F32)
big = np.zeros(200, F32)

CALLS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "count": (lambda k: k(a), "takes 2 arrays, got 1"),
    "shape": (lambda k: k(b, b), r"argument 'A' has shape \(8, 6\), expected \(4, 8\)"),
    "dtype": (lambda k: k(a.astype(np.float64), b), "argument 'A' has dtype float64, expected float32"),
    "list": (lambda k: k(a.tolist(), b), "argument 'A' .*list, expected a numpy array"),
    "out shape": (lambda k: k(a, b, out=np.zeros((6, 4), F32)), "has shape"),
    "out dtype": (lambda k: k(a, b, out=np.zeros((4, 6))), "has dtype float64"),
    "out strided": (lambda k: k(a, b, out=np.zeros((6, 4), F32).T), "is not contiguous"),
    "out frozen": (lambda k: k(a, b, out=frozen), "is read-only"),
    "out misaligned": (lambda k: k(a, b, out=odd), "is not aligned"),
    "out count": (lambda k: k(a, b, out=(np.zeros((4, 6), F32),) * 2), "gives 1 array, out= has 2"),
    "out list": (lambda k: k(a, b, out=[[1.0]]), "list, expected (a )?numpy array"),
    "overlap": (lambda k: k(big[:32].reshape(4, 8), b, out=big[8:32].reshape(4, 6)), "shares memory with 'A'"),
    "level": (lambda k: k.text("ptx"), r"no level 'ptx' \(there are te, loop, low, llvm, asm, certificate\)"),
    "calls": (lambda k: k.time(a, b, repeats=0), "0"),
}


@pytest.fixture(scope="module")
def kernel() -> Any:
    return compiler.build(te.function("f", [A, B], nn.matmul(A, B)))


@pytest.mark.parametrize("name", CALLS)
def test_calls(name: str, kernel: Any) -> None:
    call, sentence = CALLS[name]
    with pytest.raises(StrataError, match=sentence):
        call(kernel)


GOOD = "func.func @f() {\n  func.return\n}\n"
COMMANDS: dict[str, tuple[list[str], str, str]] = {
    "unknown pass": (["-p", "te-to-lop"], GOOD, "no pass 'te-to-lop'; did you mean 'te-to-loop'"),
    "unknown option": (["-p", "loop-to-low{polcy=fast}"], GOOD, "does not take these options"),
    "option type": (["-p", "loop-to-low{policy=3}"], GOOD, "does not take these options"),
    "option twice": (["-p", "loop-to-low{policy=fast policy=strict}"], GOOD, "given twice"),
    "braces": (["-p", "loop-to-low{policy=fast"], GOOD, "unbalanced braces"),
    "empty pass": (["-p", "te-to-loop,,cse"], GOOD, "an empty name"),
    "pipeline": (["--pass-pipeline", "te-to-loop"], GOOD, "is written 'builtin.module"),
    "nesting": (["--pass-pipeline", "builtin.module(gpu.module(cse))"], GOOD, "passes nest in"),
    "missing file": (["nowhere.mlir"], "", "nowhere.mlir cannot be read"),
    "directory": (["."], "", ". cannot be read"),
    "output": (["-o", "/nowhere/x"], GOOD, "/nowhere/x cannot be written"),
    "syntax": ([], "func.func @f( {", "Expected"),
    "junk": ([], "\x00\x01", ""),
    "dialect": ([], '"no.such"() : () -> ()', "no.such is not registered"),
    "undefined value": ([], "func.func @f() {\n  func.return %x : i32\n}", "not defined"),
    "unknown axis": (
        [],
        'func.func @f(%A: tensor<4xf32>) {\n %B = te.compute "B" [i = 4] (%a = %A[j] : tensor<4xf32>) -> '
        "tensor<4xf32> {\n te.yield %a : f32\n }\n func.return\n}",
        "<stdin>:2:.*unknown axis 'j'",
    ),
    "level": (
        ["-p", "te-to-loop"],
        "func.func @f() -> tensor<2xf32> {\n%0 = tensor.empty() : tensor<2xf32>\nfunc.return %0 : tensor<2xf32>\n}",
        "'tensor.empty' is not an op of the te level, which te-to-loop takes",
    ),
    "dynamic": (
        [],
        'func.func @f(%A: tensor<?xf32>) {\n %B = te.compute "B" [i = 4] (%a = %A[i] : tensor<?xf32>)'
        " -> tensor<4xf32> {\n te.yield %a : f32\n }\n func.return\n}",
        "dynamic or empty dimension",
    ),
    "to llvm": (["-t", "llvm"], 'func.func @f() {\n loop.for "i" %i = 4 {\n }\n func.return\n}', "at the loop level"),
    "deep": ([], "func.func @f() {\n" + 'loop.for "i" %i = 4 {\n' * 2000, ""),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_commands(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import io

    arguments, text, sentence = COMMANDS[name]
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert strata_opt(arguments) == 1
    err = capsys.readouterr().err
    assert "error: " in err
    assert "Traceback" not in err
    assert re.search(sentence, err), err


def test_binary_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.mlir"
    path.write_bytes(b"\xff\xfe\x00")
    assert strata_opt([str(path)]) == 1
    assert "is not text" in capsys.readouterr().err
