"""The expected results of random inputs, and their tolerance: the unscheduled program is the oracle.

It is compiled twice under the policy `strict`: in its own floats, whose error sets the tolerance, and in float64, for
the exact results. Its loops are tiled and run on all cores, so that large programs take a second; each sum keeps its
order, and so its value.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from xdsl.dialects.builtin import ModuleOp, f32, f64

from compiler.dialects.functions import constant_values, find_function
from compiler.dialects.numbers import array_of, is_float
from compiler.driver.reference.retype import floats_of, retyped
from compiler.driver.reference.subject import Subject, ceiling, work
from compiler.driver.reference.tolerance import FACTOR, Expected, epsilon
from compiler.support.errors import InputError, ScheduleError
from compiler.targets.arguments import Argument, Array
from compiler.types.machines import host

if TYPE_CHECKING:
    from compiler.schedule import Schedule
    from compiler.targets.cpu import Kernel

Arrays = tuple[Array, ...]

SETS = 3
"""The number of input sets of a task."""
SMALLEST = 2.0**-8
"""The smallest standard deviation of normal inputs; the first one tried is 1."""
SHARP = 2.0**-7
"""The relative tolerance to aim for: faults could hide in a larger one."""
ROWS, COLUMNS = 32, 256
"""The tile of the reference's reductions: its partial results stay in L1."""


@dataclass(frozen=True)
class ReferenceCase:
    """One set of random inputs, and the expected results."""

    inputs: Arrays
    expected: tuple[Expected, ...]


@dataclass(frozen=True)
class ReferenceCases:
    """The cases of a task. limit: the ceiling beside which candidates are timed: flops or bytes. work: the flops or
    bytes of a perfect candidate; None if the ceiling counts other operations. constants: positions among the inputs."""

    cases: tuple[ReferenceCase, ...]
    limit: str
    work: float | None = None
    constants: tuple[int, ...] = ()


@dataclass(frozen=True)
class ReferenceJob:
    """A builder's job: to compute a reference on `threads` threads and write it to `path`, in at most `seconds`."""

    path: str
    threads: int
    seconds: float


def write_reference(subject: Subject, job: ReferenceJob) -> None:
    """Compute the reference of a subject and write it, pickled, to the path of the job. Raises LoweringError or
    TargetError for a program that cannot be compiled, and InputError for one without outputs."""
    Path(job.path).write_bytes(pickle.dumps(reference(subject, job.threads), pickle.HIGHEST_PROTOCOL))


def reference(subject: Subject, threads: int | None = None) -> ReferenceCases:
    """Compute SETS cases of a subject, the same for the same seed, on `threads` threads, by default on all cores.
    Raises InputError for a program without outputs."""
    oracle = Oracle(subject.module, subject.name, threads)
    random = np.random.default_rng(subject.seed)
    drawn = [oracle.draw(random) for _ in range(SETS)]
    scale, first = _scaled(oracle, drawn[0])
    by_case = [first, *(oracle(oracle.scaled(inputs, scale)) for inputs in drawn[1:])]
    worst = [max(errors) for errors in zip(*(case_results.errors for case_results in by_case), strict=True)]
    pairs = zip(drawn, by_case, strict=True)
    cases = [ReferenceCase(tuple(oracle.scaled(inputs, scale)), _expected(r, worst)) for inputs, r in pairs]
    program = subject.program
    constants = tuple(n for n, buffer in enumerate(program.arguments) if buffer.name in program.constants)
    return ReferenceCases(tuple(cases), ceiling(program, host()), work(program, host()), constants)


def _expected(case_results: Results, worst: Sequence[float]) -> tuple[Expected, ...]:
    return tuple(Expected(*fields) for fields in zip(case_results.strict, case_results.exact, worst, strict=True))


@dataclass(frozen=True)
class Results:
    """The results of an oracle, for each output: the strict result, the exact one, and the largest error of the strict
    one."""

    strict: Arrays
    exact: Arrays
    errors: tuple[float, ...]

    @property
    def relative_tolerance(self) -> float:
        """The largest relative tolerance of any output."""
        return max(map(_relative_tolerance, self.exact, self.errors), default=0.0)


def _relative_tolerance(exact: Array, error: float) -> float:
    """The tolerance for an error, relative to the median magnitude of an output's finite elements other than 0; 0 for
    integers and for an output without such elements."""
    if not is_float(exact.dtype):
        return 0.0
    sizes = np.abs(exact[(exact != 0) & np.isfinite(exact)])
    return FACTOR * error / float(np.median(sizes)) if sizes.size else 0.0


class Oracle:
    """The unscheduled program, compiled under `strict` in its float types and in float64; a program in float64 only is
    also compiled in float32. `threads`: None for all cores. Raises InputError for a program without outputs."""

    def __init__(self, module: ModuleOp, name: str | None, threads: int | None = None) -> None:
        module = module.clone()
        function = find_function(module, name)
        self._stated = {n: array_of(value.data) for n, value in constant_values(function).items()}
        function.attributes.pop("constant_values", None)
        floats = floats_of(module)
        self._strict = compile_strict(module, name, threads)
        if not self._strict.outputs:
            raise InputError(f"@{self._strict.name} has no outputs: nothing says what is right")
        self._is_wide = floats == {f64}
        other_precision = retyped(module, f32 if self._is_wide else f64) if floats else None
        self._strict_in_other_floats = (
            None if other_precision is None else compile_strict(other_precision, name, threads)
        )

    @property
    def inputs(self) -> tuple[Argument, ...]:
        """The inputs of the program."""
        return self._strict.arguments[: len(self._strict.arguments) - self._strict.outputs]

    def draw(self, random: np.random.Generator) -> list[Array]:
        """Draw random inputs; those whose elements the program states have these elements."""
        return [self._stated[n] if n in self._stated else draw(a, random) for n, a in enumerate(self.inputs)]

    def scaled(self, inputs: Sequence[Array], scale: float) -> list[Array]:
        """Multiply the inputs of float dtypes by `scale`, a power of two; constants are unchanged."""
        return [a if n in self._stated else scaled([a], scale)[0] for n, a in enumerate(inputs)]

    def strict_results(self, inputs: Sequence[Array]) -> Arrays:
        """The results in the program's float types."""
        return _called(self._strict, inputs)

    def __call__(self, inputs: Sequence[Array], strict_outputs: Arrays | None = None) -> Results:
        """Compute the results for inputs; `strict_outputs` are those in the program's float types, None to compute
        them. The error of a program in float64 is estimated: that in float32 times the ratio of their epsilons; 0
        without floats."""
        native = strict_outputs or self.strict_results(inputs)
        if self._strict_in_other_floats is None:
            return Results(native, native, (0.0,) * len(native))
        in_other_floats = _called(self._strict_in_other_floats, inputs)
        exact = native if self._is_wide else in_other_floats
        factor = epsilon(np.dtype(np.float64)) / epsilon(np.dtype(np.float32)) if self._is_wide else 1.0
        errors = tuple(factor * _error(a, b) for a, b in zip(native, in_other_floats, strict=True))
        return Results(native, exact, errors)


def _called(kernel: Kernel, inputs: Sequence[Array]) -> Arrays:
    arrays = [array.astype(a.dtype, copy=False) for array, a in zip(inputs, kernel.arguments, strict=False)]
    outputs = kernel(*arrays)
    return outputs if isinstance(outputs, tuple) else (outputs,)


def _error(actual: Array, exact: Array) -> float:
    """The largest difference of elements that are finite in both arrays; 0 for integers."""
    if not is_float(actual.dtype):
        return 0.0
    with np.errstate(all="ignore"):
        difference = np.abs(actual.astype(np.float64) - exact)
    return float(np.max(difference, where=np.isfinite(difference), initial=0.0))


def draw(argument: Argument, random: np.random.Generator) -> Array:
    """Draw random elements: standard normal floats, booleans, integers of magnitude 1 to 8: they may be divisors."""
    dtype, shape = argument.dtype, argument.shape
    if is_float(dtype):
        return np.asarray(random.standard_normal(shape), dtype)
    if dtype.kind == "b":
        return np.asarray(random.random(shape) < 0.5)
    sign = random.choice([-1, 1] if dtype.kind == "i" else [1], shape)
    return np.asarray(sign * random.integers(1, 8, shape, endpoint=True), dtype)


def scaled(inputs: Sequence[Array], scale: float) -> list[Array]:
    """Multiply the inputs of float dtypes by `scale`, a power of two; the others are unchanged."""
    return [np.asarray(a * a.dtype.type(scale)) if is_float(a.dtype) else a for a in inputs]


def _scaled(oracle: Oracle, inputs: Sequence[Array]) -> tuple[float, Results]:
    """Find the scale of the inputs, and return it with the results at it. The scale is halved until all results are
    finite, or as many as possible. Then it is halved further while that at least halves the relative tolerance: where
    errors grow with values, as through exp, large inputs give a tolerance in which faults of small results hide."""
    scale, outputs = _finite(oracle, inputs)
    best = scale, oracle(oracle.scaled(inputs, scale), outputs)
    while best[1].relative_tolerance > SHARP and scale > SMALLEST:
        scale /= 2
        rescaled = oracle(oracle.scaled(inputs, scale))
        if rescaled.relative_tolerance > best[1].relative_tolerance / 2:
            break
        best = scale, rescaled
    return best


def _finite(oracle: Oracle, inputs: Sequence[Array]) -> tuple[float, Arrays]:
    """The largest scale, of 1, 1/2 ... SMALLEST, with the fewest results that are not finite, and the results at it."""
    scale, outputs = 1.0, oracle.strict_results(inputs)
    best, fewest = (scale, outputs), count_non_finite(outputs)
    while fewest and scale > SMALLEST:
        scale /= 2
        outputs = oracle.strict_results(oracle.scaled(inputs, scale))
        if count_non_finite(outputs) < fewest:
            best, fewest = (scale, outputs), count_non_finite(outputs)
    return best


def count_non_finite(arrays: Arrays) -> int:
    """The number of floats that are not finite."""
    return sum(int((~np.isfinite(array)).sum()) for array in arrays if is_float(array.dtype))


def compile_strict(module: ModuleOp, name: str | None, threads: int | None = None) -> Kernel:
    """Compile the function `name` (None: the only public one) of a loop-level program under the policy `strict`, each
    sum in its order, tiled for the caches; `threads` None is all cores."""
    from compiler import universe  # not needed by a runner, which reads the reference from a file
    from compiler.driver.kernels import build_as_written
    from compiler.pipeline.parser import parse_passes
    from compiler.pipeline.passes import run
    from compiler.schedule import Schedule

    ordered = module.clone()
    run(universe.context(), ordered, parse_passes("reorder-contiguous"))
    schedule = Schedule(ordered, name)
    for label in list(schedule.program.blocks):
        _tile(schedule, label)
    return build_as_written(schedule, policy="strict", name=name, threads=threads)


def _tile(schedule: Schedule, label: str) -> None:
    """Tile the two innermost spatial loops of a reduction whose last loop is spatial, by ROWS and COLUMNS, and make the
    outermost loop parallel; leave other blocks unchanged. A refused step ends the tiling of the block silently."""
    block = schedule.program.blocks[label]
    loops = schedule.get_loops(schedule.get_block(label))
    numbers = [loop.number for loop in schedule.program.enclosing(label)]
    spatial = [h for h, number in zip(loops, numbers, strict=True) if number in block.loops_of(reduce=False)]
    if not block.combiners or len(spatial) < 2 or loops[-1] is not spatial[-1]:
        return
    try:
        rows, row = schedule.split(spatial[-2], [None, ROWS])
        columns, column = schedule.split(loops[-1], [None, COLUMNS])
        outer = [rows if handle is spatial[-2] else handle for handle in loops[:-1]]
        schedule.reorder(columns, *outer, row, column)
        schedule.parallel(columns if schedule.extent(columns) > 1 else outer[0])
    except ScheduleError:
        return
