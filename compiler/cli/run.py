"""`strata run FILE`: build a program, run it on random inputs, and compare it with the reference evaluator."""

from __future__ import annotations

import argparse
import signal
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from secrets import randbits
from typing import TYPE_CHECKING

from compiler.cli.build import build_kernel, call_build, parse_file, program_arguments
from compiler.cli.model import expected
from compiler.cli.printing import show
from compiler.cli.values import natural, positive
from compiler.support.errors import StrataError, TargetError
from compiler.support.processes import Death
from compiler.support.text import counted
from compiler.support.worker import Calls
from compiler.support.worker_pool import WorkerPool

if TYPE_CHECKING:
    import numpy as np
    from xdsl.dialects.builtin import ModuleOp

    from compiler.dialects.numbers import DType
    from compiler.driver.units.unit import NativeCode
    from compiler.targets.arguments import Array
    from compiler.targets.cpu import Kernel
    from compiler.targets.cpu.kernel import Interface, Timing

TOLERANCE = {"bfloat16": 1e-1, "float16": 1e-1, "float32": 1e-3, "float64": 1e-9}
"""The largest error of a right result by dtype, relative to the largest element; 0 for other dtypes."""
NOT_COMPARED = "difference: not compared, since the file is below the te level"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    program_arguments(parser)
    parser.add_argument("--seed", type=natural, help="of the random inputs; a new one each time by default")
    parser.add_argument("--calls", type=positive, default=9, help="how many calls to time (default 9)")


def run(options: argparse.Namespace) -> int:
    """Build a program, run and time it, and print its difference from the reference; return 1 for a wrong result, else
    0. Results of a program below te are not compared. Raises InputError for a program that cannot be read or does not
    verify, TargetError if the process of a low-level program dies."""
    from compiler.driver import build_unit
    from compiler.frontends.model import Imported
    from compiler.pipeline.source import level_of, module_of

    selected = parse_file(options)
    module = module_of(selected)
    seed = randbits(32) if options.seed is None else options.seed
    if level_of(module) == "low":
        code = call_build(options, module, build_unit).call
        _print_interface(code.interface, seed)
        print(NOT_COMPARED)
        timing = _time_in_process(options.file, code, seed, options.calls)
        _print_timing(timing, code.interface.threads)
        return 0
    kernel = build_kernel(options, selected)
    inputs = random_inputs(kernel, seed)
    _print_interface(kernel, seed)
    _print_schedules(kernel)
    is_model = isinstance(selected, Imported)
    is_right = _compare(kernel, inputs, _expected(kernel, options.file, module, is_model, inputs))
    _print_timing(kernel.time(*inputs, repeats=options.calls), kernel.threads)
    return 0 if is_right else 1


def random_inputs(kernel: Kernel, seed: int) -> list[Array]:
    """Draw an array of random elements for each input of a kernel, in order; `seed` determines them."""
    import numpy as np

    random = np.random.default_rng(seed)
    return [draw(a.shape, a.dtype, random) for a in kernel.arguments[: len(kernel.arguments) - kernel.outputs]]


def _time_in_process(file: str, code: NativeCode, seed: int, calls: int) -> Timing:
    """Time a low-level program in a separate process, since its accesses are not proved to be in bounds. Raises
    TargetError, which names `file`, if the process dies, and the error of a program that does not load."""
    with closing(WorkerPool(Calls(), 1, task="run it")) as pool:
        ((_, answer),) = pool.map([partial(_time_code, code, seed, calls)])
    if isinstance(answer, Death):
        raise TargetError(f"{file} {_death_text(answer)}")
    if isinstance(answer, StrataError | MemoryError):
        raise answer
    return answer  # type: ignore[no-any-return]


def _time_code(code: NativeCode, seed: int, calls: int) -> Timing | StrataError | MemoryError:
    try:
        kernel = code.load()
        return kernel.time(*random_inputs(kernel, seed), repeats=calls)
    except (StrataError, MemoryError) as error:
        return error


def _death_text(death: Death) -> str:
    """Describe the death of a process: its exit status, or the name of the signal."""
    if death.status >= 0:
        return f"ended with status {death.status} while it ran"
    name = signal.Signals(-death.status).name
    return f"died of {name} while it ran ({signal.strsignal(-death.status)})"


def _print_interface(interface: Kernel | Interface, seed: int) -> None:
    inputs = len(interface.arguments) - interface.outputs
    show(f"@{interface.name}: {counted(inputs, 'input')}, {counted(interface.outputs, 'output')}, seed {seed}")


def _print_schedules(kernel: Kernel) -> None:
    """Print the sources of the groups' schedules (such as a database), with the verdicts of their proofs."""
    counts = Counter(f"{group.source}{f', {group.verdict}' if group.verdict else ''}" for group in kernel.groups)
    for source, count in counts.items():
        show(f"schedule: {source}" if len(kernel.groups) == 1 else f"schedule of {counted(count, 'group')}: {source}")


def _print_timing(timing: Timing, threads: int | None) -> None:
    low, middle, high = (1e3 * t for t in (timing.minimum, timing.median, timing.maximum))
    team = "" if threads is None else f" on {counted(threads, 'thread')}"
    busy = f"; {timing.disturbance}" if timing.disturbance.matters else ""
    print(f"time: {middle:.4g} ms{team} (median of {timing.repeats} calls, {low:.4g} to {high:.4g}){busy}")


def draw(shape: tuple[int, ...], dtype: DType, random: np.random.Generator) -> Array:
    """Draw random elements: floats in [-1, 1], booleans, integers of magnitude 1 to 8, negative ones too if the dtype
    is signed (no 0: they may divide)."""
    import numpy as np

    if dtype.kind == "b":
        return np.asarray(random.random(shape) < 0.5)
    if dtype.kind in "iu":
        sign = random.choice([-1, 1] if dtype.kind == "i" else [1], shape)
        return np.asarray(sign * random.integers(1, 8, shape, endpoint=True), dtype)
    return np.asarray(random.uniform(-1.0, 1.0, shape), dtype)


def _expected(
    kernel: Kernel, file: str, module: ModuleOp, is_model: bool, inputs: Sequence[Array]
) -> Sequence[Array] | None:
    """Compute the expected results, of a model by ONNX's reference evaluator, of a te program by the oracle in float64;
    None for a program below te."""
    from compiler.interpret.te import evaluate
    from compiler.pipeline.source import level_of

    if is_model:
        return expected(file, inputs)
    if level_of(module) != "te":
        return None
    import numpy as np

    return evaluate(module, inputs, np.float64, kernel.name)


def _compare(kernel: Kernel, inputs: Sequence[Array], expected: Sequence[Array] | None) -> bool:
    """Print the largest error of each result of a call; return True if all fit TOLERANCE, or `expected` is None."""
    if expected is None:
        print(NOT_COMPARED)
        return True
    outputs = kernel(*inputs)
    arrays = [outputs] if kernel.outputs == 1 else list(outputs)
    verdicts = [_judge(i, *pair) for i, pair in enumerate(zip(arrays, expected, strict=True))]
    return all(verdicts)


def _judge(position: int, actual: Array, expected: Array) -> bool:
    error, largest = difference(actual, expected)
    allowed = TOLERANCE.get(str(actual.dtype), 0.0)
    is_right = error <= allowed * largest
    verdict = "" if is_right else ": wrong"
    print(f"difference: {error:.3g} at most in output {position} (elements up to {largest:.3g}){verdict}")
    return is_right


def difference(actual: Array, expected: Array) -> tuple[float, float]:
    """Return the largest absolute difference (inf for a wrong NaN), and the largest finite expected magnitude. Equal
    infinities, and NaN on both sides, have no difference."""
    import numpy as np

    with np.errstate(all="ignore"):
        target = expected.astype(actual.dtype)
        is_equal = (actual == target) | ((actual != actual) & (target != target))
        gaps = np.where(is_equal, 0.0, np.abs(actual.astype(np.float64) - expected.astype(np.float64)))
    sizes = np.abs(expected[np.isfinite(expected)].astype(np.float64))
    error = float(gaps.max(initial=0.0))
    return (error if error == error else float("inf")), float(sizes.max(initial=0.0))
