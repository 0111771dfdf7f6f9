"""CUDA's default: what the rules of GPUs prefer runs every block on several threads, is proved, without a fault on
numpy, and right there and in the text that runs on the host."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compiler
from compiler import recipes, te
from compiler.fuzz.programs import arrays_for
from compiler.interpret import te as evaluator
from compiler.recipes.gpu.reduction import products_of_few, reduced_together
from compiler.recipes.rules import GPU_RULES
from compiler.schedule import Schedule, replay
from compiler.space.derivation import derive
from compiler.space.gpu_features import extract
from compiler.space.space import SketchSpace, work
from compiler.support.errors import ScheduleError
from compiler.targets import simt
from compiler.targets.cuda import CudaKernel, representative_gpu
from strata.passes import lower_to_kernels, parse
from tests.fuzz import gpu
from tests.fuzz.programs import agree
from tests.gpu_schedules import default, serial_blocks, threads_of
from tests.host_cuda import OnHost, needs_gxx
from tests.sample import some

P = te.placeholder
Reduce = Callable[..., Any]


def reduced(shape: tuple[int, ...], axes: tuple[int, ...], dtype: str = "f32", by: Reduce = te.sum) -> te.Function:
    """A tensor reduced along some axes."""
    x = P(shape, dtype, name="X")
    along = {d: te.reduce_axis(shape[d], f"r{d}") for d in axes}
    kept = [d for d in range(len(shape)) if d not in axes]

    def element(*i: Any) -> Any:
        at = dict(zip(kept, i, strict=True)) | along
        return by(x[tuple(at[d] for d in range(len(shape)))], axis=list(along.values()))

    return te.function("reduced", [x], te.compute(tuple(shape[d] for d in kept), element, name="Y"))


def mean_of_squares(n: int = 5000) -> te.Function:
    """A scalar, and what comes after."""
    x, k = P((n,), name="X"), te.reduce_axis(n, "k")
    total = te.compute((), lambda: te.sum(x[k] * x[k], axis=k), name="S")
    return te.function("mean", [x], te.compute((), lambda: total[()] * (1.0 / n), name="Y"))


def sum_and_maximum(n: int = 7, m: int = 3000) -> te.Function:
    """Two outputs of one reduction, which are used once more."""
    x, k = P((n, m), name="X"), te.reduce_axis(m, "k")
    s, g = te.compute((n,), lambda i: (te.sum(x[i, k], axis=k), te.max(x[i, k] * 2.0, axis=k)), name="S")
    i = te.reduce_axis(n, "i")
    return te.function("both", [x], [s, g, te.compute((), lambda: te.sum(s[i] * g[i], axis=i), name="Y")])


def vector_product(n: int = 150, k: int = 1000) -> te.Function:
    """A vector times a matrix, whose columns lie side by side."""
    x, w = P((k,), name="X"), P((k, n), name="W")
    r = te.reduce_axis(k, "r")
    return te.function("product", [x, w], te.compute((n,), lambda j: te.sum(x[r] * w[r, j], axis=r), name="Y"))


def gathered_sum(n: int = 200, m: int = 40) -> te.Function:
    x, at = P((50, m), name="X"), P((n,), "i64", name="I")
    rows = te.gather((n, m), lambda i, j: x.at(at[i], j), "G", otherwise=0)
    i, j = te.reduce_axis(n, "i"), te.reduce_axis(m, "j")
    return te.function("gathered", [x, at], te.compute((), lambda: te.sum(rows[i, j], axis=[i, j]), name="Y"))


def of_a_constant(n: int = 200) -> te.Function:
    x = P((n,), name="X")
    c = te.constant(np.arange(n, dtype=np.float32) % 5, name="C")
    k = te.reduce_axis(n, "k")
    return te.function("weighted", [x], te.compute((), lambda: te.sum(x[k] * c[k], axis=k), name="Y"))


def truth(by: Reduce, n: int = 3000) -> te.Function:
    """Truth values, which are reduced as bytes, and a truth value of that."""
    x, k = P((n,), "i1", name="X"), te.reduce_axis(n, "k")
    bits = te.compute((), lambda: by(te.cast(x[k], "i8"), axis=k), name="S")
    return te.function("truth", [x], te.compute((), lambda: bits[()] > 0, name="Y"))


def over(build: Callable[[te.Tensor], te.Tensor], *shape: int) -> te.Function:
    """An operator of one tensor."""
    x = P(shape, name="X")
    return te.function("one", [x], build(x))


CASES: dict[str, Callable[[], te.Function]] = {
    "a scalar": lambda: reduced((100_000,), (0,)),
    "a short scalar": lambda: reduced((40,), (0,)),
    "a scalar of a matrix": lambda: reduced((600, 70), (0, 1)),
    "a scalar of short axes": lambda: reduced((40, 5, 7, 3), (0, 1, 2, 3)),
    "an integer": lambda: reduced((20_001,), (0,), "i32"),
    "a product of i8": lambda: reduced((5000,), (0,), "i8", te.prod),
    "a maximum": lambda: reduced((9000,), (0,), "f64", te.max),
    "whether any is true": lambda: truth(te.max),
    "whether all are true": lambda: truth(te.min),
    "a mean": mean_of_squares,
    "few long rows": lambda: reduced((3, 40_000), (1,)),
    "rows": lambda: reduced((60, 300), (1,)),
    "rows in f16": lambda: reduced((30, 300), (1,), "f16", te.max),
    "few columns": lambda: reduced((3000, 5), (0,)),
    "columns": lambda: reduced((700, 130), (0,)),
    "columns between": lambda: reduced((3, 200, 40), (1,)),
    "channels": lambda: reduced((40, 6, 9, 11), (0, 2, 3)),
    "the first of two": lambda: reduced((300, 8, 6), (0, 2)),
    "places of rows": lambda: over(lambda x: te.nn.argmax(x, 1), 6, 2000),
    "a place": lambda: over(lambda x: te.nn.argmax(x, 0), 9000),
    "two outputs": sum_and_maximum,
    "a vector product": vector_product,
    "a gather": gathered_sum,
    "a constant": of_a_constant,
    "one long softmax": lambda: over(lambda x: te.nn.softmax(x), 1, 70_000),
}


HOST: dict[str, Callable[[], te.Function]] = {
    "a scalar": lambda: reduced((2600,), (0,)),
    "a scalar of an odd matrix": lambda: reduced((45, 70), (0, 1)),
    "a product of i8": CASES["a product of i8"],
    "rows": lambda: reduced((3, 300), (1,)),
    "columns": lambda: reduced((300, 50), (0,)),
    "places of rows": lambda: over(lambda x: te.nn.argmax(x, 1), 3, 400),
    "channels": CASES["channels"],
}
"""Those of which threads of the host run the text: few blocks."""


def faults(function: te.Function, s: Schedule) -> list[str]:
    """What a schedule does wrong on numpy."""
    inputs = arrays_for(function, 0)
    module, _, _ = lower_to_kernels(s.module.clone())
    checked = simt.run(module, inputs, counts=False)
    return [*map(str, checked.faults), *_differences(function, inputs, checked.outputs)]


def _differences(function: te.Function, inputs: Any, outputs: Any) -> list[str]:
    expected = evaluator.evaluate(function.module, inputs)
    pairs = [(np.asarray(out).view(want.dtype), want) for out, want in zip(outputs, expected, strict=True)]
    return [f"output {n} is wrong" for n, (out, want) in enumerate(pairs) if not agree(out, want)]


@pytest.mark.parametrize("name", some(CASES, 5))
def test_it_runs_on_several_threads_and_is_right(name: str) -> None:
    function = CASES[name]()
    s = default(function)
    assert serial_blocks(s.program, 32) == {}
    assert str(s.verify()) == "proved"
    assert faults(function, s) == []


@needs_gxx
def test_the_text_is_right_on_the_host(tmp_path: Path) -> None:
    functions = [HOST[name]() for name in some(HOST)]
    kernels: list[CudaKernel] = []
    for function in functions:
        kernel = compiler.build(default(function), "cuda")
        assert isinstance(kernel, CudaKernel)
        kernels.append(kernel)
    on_host = OnHost(kernels, tmp_path)
    for number, function in enumerate(functions):
        inputs = arrays_for(function, 0)
        assert _differences(function, inputs, on_host(number, inputs)) == []


def test_scalars_by_two_kernels() -> None:
    """The blocks of the first fill the multiprocessors, the second adds up what they have."""
    assert threads_of(default(reduced((1 << 22,), (0,)))) == [(216, 256), (1, 64)]
    assert threads_of(default(reduced((5000,), (0,)))) == [(4, 160), (1, 1)]
    assert threads_of(default(reduced((900,), (0,)))) == [(1, 256)]


def test_what_comes_after_is_in_the_same_kernel() -> None:
    assert len(threads_of(default(mean_of_squares(900)))) == 1
    assert "Y.shared" not in str(default(mean_of_squares()).module)


def test_without_the_rules_one_thread_adds_up_everything() -> None:
    rules = tuple(rule for rule in GPU_RULES if rule not in (reduced_together, products_of_few))
    assert serial_blocks(default(reduced((300_000,), (0,)), rules).program) == {"Y": 300_000}


@pytest.mark.parametrize("seed", range(4))
def test_random_programs(seed: int) -> None:
    gpu.check(seed)


def test_draws_have_long_reductions() -> None:
    """The programs that are drawn have what these rules are for."""
    without = tuple(rule for rule in GPU_RULES if rule not in (reduced_together, products_of_few))
    drawn = [gpu.drawn(seed) for seed in range(30)]
    assert any(str(default(f, without).script) != str(default(f).script) for f in drawn)


def test_copies_compute_what_is_an_equation_alone() -> None:
    """A sum that is read with a border is not inlined into the copy with the border: that could not be proved."""
    x, b, w = P((40, 7), name="X"), P((7,), name="b"), P((2,), name="W")
    a = te.compute((40, 7), lambda i, j: x[i, j] + b[j], name="A")
    source, r = a.padded(0), te.reduce_axis(2, "r")
    y = te.compute((40, 9), lambda i, j: te.sum(source[i, j + 2 * r - 2] * w[r], axis=r), name="Y")
    s = default(te.function("bordered", [x, b, w], [y]))
    assert "A.pad.shared" in str(s.module) and str(s.verify()) == "proved"


def test_the_search_sees_what_it_would_build() -> None:
    schedule = Schedule(compiler.lower(reduced((20_000,), (0,))))
    space = SketchSpace(derive(schedule, GPU_RULES, representative_gpu("sm_80")).sketches, representative_gpu("sm_80"))
    assert [sketch.name for sketch in space.sketches[:2]] == [
        "Y: rows on threads, in parts of 1280",
        "Y: rows on threads",
    ]
    for number, sketch in enumerate(space.sketches[:2]):
        last = tuple(size - 1 for size in sketch.sizes)
        actual = space.features(number, np.array([sketch.recorded_positions, last]))
        for positions, values in zip((sketch.recorded_positions, last), actual.values, strict=True):
            applied = replay(parse(space.script((number, positions))), schedule.original)
            concrete = extract(applied.program, work(schedule.program), representative_gpu("sm_80"))
            assert np.allclose(np.array(concrete.features, np.float32), values, rtol=1e-5)


def test_what_is_no_reduction_is_refused() -> None:
    s = Schedule(compiler.lower(over(lambda x: te.nn.relu(x, name="Y"), 8)))
    with pytest.raises(ScheduleError, match="reduce_rows: block 'Y': it is no reduction with an implicit init"):
        recipes.reduce_rows(s, s.get_block("Y"))
    s = Schedule(compiler.lower(reduced((80,), (0,))))
    with pytest.raises(ScheduleError, match="reduce_columns: block 'Y': it has no loop over results"):
        recipes.reduce_columns(s, s.get_block("Y"))


def test_chains_of_sums_are_proved() -> None:
    """Along four axes by threads, then by another kernel, within the budget of a proof."""
    assert str(default(CASES["a scalar of short axes"]()).verify()) == "proved"
