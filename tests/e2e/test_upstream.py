"""The second opinion: mlir-opt-22 lowers our low level its own way, mlir-runner-22 runs it, the numbers agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import compiler
from compiler.fuzz.programs import arrays_for
from compiler.interpret import te as evaluator
from compiler.support.errors import LoweringError
from compiler.types.dtypes import DTYPES
from tests import upstream
from tests.agreement import bound, error
from tests.fuzz.scripts import close, walk
from tests.low import with_constants
from tests.operator_runs import compiled, sample, upstream_case
from tests.operators import OPERATORS
from tests.operators.catalogue import numpy_dtype
from tests.sample import some
from tests.upstream import Case, Failure

pytestmark = pytest.mark.skipif(bool(upstream.missing()), reason=upstream.missing())

Array = np.ndarray[Any, Any]
SAMPLE = 100
"""The number of the one sample a pair of operator and dtype; docs/operators.md has those below."""

ABSENT: dict[tuple[str, str], str] = {}
"""What upstream cannot run, by operator and dtype, and the reason it gives."""


@pytest.mark.sampled
@pytest.mark.parametrize("name", some(OPERATORS, 8))
def test_upstream_agrees(name: str) -> None:
    samples = {dtype: sample(OPERATORS[name], dtype, SAMPLE) for dtype in OPERATORS[name].dtypes}
    checked = upstream.run([upstream_case(s) for s in samples.values()])
    for (dtype, s), theirs in zip(samples.items(), checked, strict=True):
        if (name, dtype) in ABSENT:
            assert isinstance(theirs, Failure)
            assert ABSENT[name, dtype] in str(theirs)
            continue
        assert not isinstance(theirs, Failure), f"{dtype}, {s.parameters}: {theirs}"
        for number, (got, ours, reference) in enumerate(zip(theirs, compiled(s), s.reference, strict=True)):
            allowed = bound(dtype, got)
            for output, who in ((got, "upstream"), (ours, "compiled")):
                wrong = error(output, reference)
                assert wrong <= allowed, f"{dtype}, {s.parameters}, result {number}, {who}: {wrong}"


def test_scheduled_programs_agree() -> None:
    """Random programs under random scripts: vectorized, unrolled and staged code as upstream lowers it."""
    cases, expected, seeds = [], [], some(range(60))
    for seed in seeds:
        function, walker = walk(seed)
        arrays = arrays_for(function, seed)
        try:
            text = compiler.build(walker.s).text("low")
        except LoweringError:  # loops bound to threads or parallel inside others, which test_schedules.py looks at
            continue
        cases.append(Case(text, function.name, arrays, [(t.shape, t.dtype) for t in function.outputs]))
        expected.append(list(evaluator.evaluate(function.module, arrays)))
    assert len(cases) > len(seeds) // 2
    for actual, want in zip(upstream.run(cases), expected, strict=True):
        assert not isinstance(actual, Failure), str(actual)
        assert close(actual, want)


def copy(dtype: str, count: int, name: str = "copy", body: str = "") -> str:
    """A low-level function that copies `count` elements, through the op in `body` if there is one (%x to %y)."""
    type = f"memref<{count}x{dtype}>"
    stored = "%y" if body else "%x"
    return with_constants(f"""builtin.module {{
  func.func @{name}(%A: {type}, %B: {type}) attributes {{outputs = 1 : i64}} {{
    %n = arith.constant {count} : index
    scf.for %i = %c0 to %n step %c1 {{
      %x = memref.load %A[%i] : {type}
      {body}
      memref.store {stored}, %B[%i] : {type}
    }}
    func.return
  }}
}}""")


def patterns(dtype: str) -> Array:
    """Every bit pattern of up to 16 bits, random ones of more: NaNs with their payloads and subnormals are there."""
    rng = np.random.default_rng(0)
    width = DTYPES[dtype].bits
    if width == 1:
        return rng.random(50) < 0.5
    kind = np.dtype(f"u{width // 8}")
    count = 2**width if width <= 16 else 4096
    bits = np.arange(count) if width <= 16 else rng.integers(0, 2**width, count, kind)
    return bits.astype(kind).view(numpy_dtype(dtype))


def test_bits_go_in_and_come_out_as_they_are() -> None:
    arrays = {dtype: patterns(dtype) for dtype in DTYPES}
    cases = [Case(copy(upstream.element(d), len(a)), "copy", [a], [((len(a),), d)]) for d, a in arrays.items()]
    for case, actual in zip(cases, upstream.run(cases), strict=True):
        assert not isinstance(actual, Failure), str(actual)
        assert actual[0].dtype == case.arrays[0].dtype
        assert actual[0].tobytes() == case.arrays[0].tobytes()


def test_one_bad_function_costs_only_itself() -> None:
    x = np.arange(4, dtype=np.float32)
    good = Case(copy("f32", 4), "copy", [x], [((4,), "f32")])
    unknown = Case(copy("f32", 4, body="%y = math.no_such %x : f32"), "copy", [x], [((4,), "f32")])
    declared = "func.func private @absent(f32) -> f32\n"
    calls = copy("f32", 4, body="%y = func.call @absent(%x) : (f32) -> f32")
    unlinked = Case(calls.replace("builtin.module {", f"builtin.module {{\n{declared}"), "copy", [x], good.results)
    checked = upstream.run([good, unknown, good, unlinked, good])
    for number in (0, 2, 4):
        assert not isinstance(checked[number], Failure)
        np.testing.assert_array_equal(checked[number][0], x)
    assert isinstance(checked[1], Failure)
    assert "math.no_such" in str(checked[1])
    assert isinstance(checked[3], Failure)
    assert str(checked[3]).startswith("mlir-runner-22: no function absent")


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_not_written_shows(dtype: str) -> None:
    count = 4
    array = np.zeros(count, numpy_dtype(dtype))
    text = copy(upstream.element(dtype), count).replace("%c0 to %n", "%c1 to %n")
    ((actual,),) = upstream.run([Case(text, "copy", [array], [((count,), dtype)])])
    assert not isinstance(actual, Failure)
    assert actual[0].tobytes() != array[0].tobytes()
    assert actual[1:].tobytes() == array[1:].tobytes()


def test_several_results_and_scalars() -> None:
    text = with_constants("""builtin.module {
  func.func @both(%A: memref<f64>, %B: memref<f64>, %C: memref<2x1xi32>) attributes {outputs = 2 : i64} {
    %x = memref.load %A[] : memref<f64>
    %n = arith.fptosi %x : f64 to i32
    memref.store %x, %B[] : memref<f64>
    memref.store %n, %C[%c0, %c0] : memref<2x1xi32>
    memref.store %n, %C[%c1, %c0] : memref<2x1xi32>
    func.return
  }
}""")
    case = Case(text, "both", [np.array(-3.7)], [((), "f64"), ((2, 1), "i32")])
    for actual in upstream.run([case, case]):
        assert not isinstance(actual, Failure), str(actual)
        assert actual[0] == -3.7
        np.testing.assert_array_equal(actual[1], np.array([[-3], [-3]], np.int32))
