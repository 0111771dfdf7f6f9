"""Nests of affine and scf loops compute as loop programs what they compute in numpy, also scheduled."""

from __future__ import annotations

import random
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import strata
from compiler import universe
from compiler.fuzz.scripts import Walker
from compiler.schedule import Schedule
from compiler.support.errors import InputError, LoweringError, ScheduleError
from compiler.support.spans import of_error
from strata.passes import parse, parse_passes, run
from tests import upstream
from tests.sample import some
from tests.unit.lowering.polybench import NESTS, REFUSED, Nest, expanded
from tests.unit.lowering.random_nests import SHAPES, random_nest

RAISE = "raise-affine-to-loop"


def raised(text: str, then: str = "") -> ModuleOp:
    """The module of a text after the pass, and after others."""
    module = parse(text)
    run(universe.context(), module, parse_passes(f"{RAISE},{then}" if then else RAISE), verify=True)
    return module


def assert_computes(nest: Nest, program: ModuleOp | Path) -> None:
    arrays, expected = nest.arrays(), nest.arrays()
    strata.build(program, threads=2)(*arrays)
    nest.reference(*expected)
    for actual, right in zip(arrays, expected, strict=True):
        np.testing.assert_allclose(actual, right, rtol=1e-12)


@pytest.mark.sampled
@pytest.mark.parametrize("name", NESTS)
def test_as_written(name: str) -> None:
    nest = NESTS[name]
    module = raised(nest.text)
    arrays, expected = nest.arrays(), nest.arrays()
    strata.interpret.run(module, arrays)
    nest.reference(*expected)
    for actual, right in zip(arrays, expected, strict=True):
        np.testing.assert_allclose(actual, right, rtol=1e-12)
    assert_computes(nest, module)


@pytest.mark.sampled
@pytest.mark.parametrize("name", NESTS)
def test_scheduled(name: str) -> None:
    nest = NESTS[name]
    assert_computes(nest, raised(nest.text, nest.schedule))


@pytest.mark.sampled
@upstream.needs_mlir_opt
@pytest.mark.parametrize("name", NESTS)
def test_lowered_by_mlir_opt(name: str) -> None:
    """The scf loops that mlir-opt makes of a nest become the same loops."""
    nest = NESTS[name]
    lowered = [_printed(nest.text, *options) for options in ([], ["--lower-affine"])]
    affine, scf = (str(raised(text)) for text in lowered)
    assert affine == scf


def _printed(text: str, *options: str) -> str:
    command = [str(upstream.MLIR_OPT), *options]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.skipif(bool(upstream.missing()), reason=upstream.missing())
def test_upstream_computes_the_same() -> None:
    """Upstream's own lowering of the nests, run by mlir-runner, gives what the references do."""
    cases = [_case(name) for name in NESTS]
    for name, results in zip(NESTS, upstream.run(cases), strict=True):
        assert not isinstance(results, upstream.Failure), f"{name}: {results}"
        expected = NESTS[name].arrays()
        NESTS[name].reference(*expected)
        for actual, right in zip(results, expected, strict=True):
            np.testing.assert_allclose(actual, right, rtol=1e-12)


def _case(name: str) -> upstream.Case:
    """A function that copies its inputs to its results, and calls a nest on these."""
    nest = NESTS[name]
    arrays, taken = nest.arrays(), re.findall(r"%\w+: (memref<[\dx]*f64>|f64)", nest.text.partition("{")[0])
    types = [type if type != "f64" else "memref<f64>" for type in taken]
    given = ", ".join(f"%{word}{n}: {type}" for word in ("in", "out") for n, type in enumerate(types))
    copies = [f"memref.copy %in{n}, %out{n} : {type} to {type}" for n, type in enumerate(types)]
    loads = [f"%x{n} = memref.load %in{n}[] : memref<f64>" for n, type in enumerate(taken) if type == "f64"]
    values = ", ".join(f"%{'x' if type == 'f64' else 'out'}{n}" for n, type in enumerate(taken))
    call = f"func.call @{name}({values}) : ({', '.join(taken)}) -> ()"
    text = "\n".join([nest.text, f"func.func @run({given}) {{", *copies, *loads, call, "return", "}"])
    lowered = f"builtin.{_printed(text, '--lower-affine')}"
    return upstream.Case(lowered, "run", arrays, [(array.shape, "f64") for array in arrays])


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    message, shorthand = REFUSED[name]
    text = expanded(shorthand)
    with pytest.raises(LoweringError) as caught:
        raised(text)
    assert str(caught.value) == message
    span = of_error(caught.value)
    assert span is not None and "// here" in text.splitlines()[span.line - 1]


GEMM = NESTS["gemm"]


@pytest.mark.parametrize("options", [[], ["--lower-affine"]])
@upstream.needs_mlir_opt
def test_front_doors(options: list[str], tmp_path: Path) -> None:
    """Affine and scf nests go into build, lower and Schedule as they are, from a text or a file."""
    file = tmp_path / "gemm.mlir"
    file.write_text(_printed(GEMM.text, *options))
    schedule = Schedule(strata.lower(file))
    i, j, k = schedule.get_loops("arg2.1")
    schedule.reorder(i, k, j)
    schedule.vectorize(j)
    assert_computes(GEMM, schedule.module)
    if not options:
        assert_computes(GEMM, file)


def test_below_loops_is_refused_with_the_reason() -> None:
    text = "func.func @f(%A: memref<?xf32>) { func.return }"
    with pytest.raises(InputError, match=r"below loops and blocks: memref<[?]xf32> has a dynamic or empty dimension"):
        strata.lower(text)
    with pytest.raises(ScheduleError, match="lower it with raise-affine-to-loop first"):
        Schedule(parse(GEMM.text))
    with pytest.raises(
        LoweringError, match=r"'affine.for' is not an op of the loop level.*: raise-affine-to-loop raises"
    ):
        run(universe.context(), parse(NESTS["bicg"].text), parse_passes("cpu"))


@upstream.needs_mlir_opt
@pytest.mark.parametrize("seed", some(range(12)))
def test_random_nests(seed: int) -> None:
    """A nest computes what the scf loops of mlir-opt do, which are built at the low level, without this pass."""
    text = random_nest(seed)
    generator = np.random.default_rng(seed)
    arrays = [generator.integers(-5, 6, shape) for shape in SHAPES.values()]
    expected = [array.copy() for array in arrays]
    try:
        module = raised(text)
    except LoweringError as error:
        assert "is used after a store that may change it" in str(error)
        return
    strata.interpret.run(module, arrays)
    strata.build(_printed(text, "--lower-affine"), threads=1)(*expected)
    for actual, right in zip(arrays, expected, strict=True):
        np.testing.assert_array_equal(actual, right)


@pytest.mark.parametrize("seed", some(range(8)))
def test_random_schedules(seed: int) -> None:
    """Steps that are accepted on a nest in place, also over time loops and partly written buffers, change no result."""
    try:
        module = raised(random_nest(seed))
        schedule = Schedule(module)
    except (LoweringError, ScheduleError):
        return
    walker = Walker(schedule, random.Random(seed))
    for _ in range(14):
        walker.step()
    generator = np.random.default_rng(seed)
    arrays = [generator.integers(-5, 6, shape) for shape in SHAPES.values()]
    expected = [array.copy() for array in arrays]
    strata.interpret.run(schedule.module, arrays)
    strata.interpret.run(module, expected)
    for actual, right in zip(arrays, expected, strict=True):
        np.testing.assert_array_equal(actual, right)
