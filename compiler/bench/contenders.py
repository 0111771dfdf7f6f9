"""Who runs: each contender binds a workload to arrays and gives a step, or says in a sentence why it cannot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import Any

from compiler.bench import onnx_model, same_loops
from compiler.bench.bounded import Array
from compiler.bench.workload import Step, Workload
from compiler.support.errors import InputError, TargetError

OURS = "strata"


@dataclass(frozen=True)
class Settings:
    """What holds for every contender: how many threads it may use, how free our floating point is, and the file with
    the records of ours that were tuned."""

    threads: int = 1
    policy: str = "contract"
    database: str = "strata.db"


Bind = Callable[[Workload, Settings, Sequence[Array], Array], Step]
"""Binds a workload to inputs and an output. Raises StrataError where the contender is missing or cannot do it."""


@dataclass(frozen=True)
class Contender:
    """One that is measured; `what` is how it does its work, in a few words."""

    name: str
    what: str
    version: Callable[[], str]
    bind: Bind


def find(names: Sequence[str]) -> list[Contender]:
    """Ours, and the contenders of those names in order, each once. Raises InputError for a name there is not."""
    for name in names:
        if name not in CONTENDERS:
            raise InputError(f"there is no contender '{name}' (there are {', '.join(CONTENDERS)})")
    return [CONTENDERS[name] for name in dict.fromkeys((OURS, *names))]


def limit_threads(threads: int) -> ExitStack:
    """Hold every library that is loaded to that many threads, until the stack is closed."""
    from threadpoolctl import threadpool_limits

    stack = ExitStack()
    stack.enter_context(threadpool_limits(limits=threads))
    return stack


def _installed(package: str) -> str:
    """The version of an installed package; nothing for one that is used from a checkout."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _ours(workload: Workload, settings: Settings, inputs: Sequence[Array], out: Array) -> Step:
    from compiler.bench.schedules import scheduled

    return _kernel(scheduled(workload, settings.threads) or workload.function(), settings, inputs, out, "written")


def _unscheduled(workload: Workload, settings: Settings, inputs: Sequence[Array], out: Array) -> Step:
    return _kernel(workload.function(), settings, inputs, out, "written")


def _default(workload: Workload, settings: Settings, inputs: Sequence[Array], out: Array) -> Step:
    """Ours, without a trial."""
    return _kernel(workload.function(), settings, inputs, out, "auto")


def _default_prepared(workload: Workload, settings: Settings, inputs: Sequence[Array], out: Array) -> Step:
    """Ours, without a trial, where the workload's constants are known to be such."""
    return _constant(workload, settings, inputs, out, workload.function(), "auto")


def _tuned(workload: Workload, settings: Settings, inputs: Sequence[Array], out: Array) -> Step:
    """Ours, by the best script that tuning has found."""
    return _best(workload, settings, inputs, out, ())


def _tuned_prepared(workload: Workload, settings: Settings, inputs: Sequence[Array], out: Array) -> Step:
    """Ours, by the best script that tuning has found where the workload's constants are known to be such."""
    if not workload.constants:
        raise TargetError(f"{workload.name} has no constant inputs")
    return _best(workload, settings, inputs, out, workload.constants)


def _best(workload: Workload, settings: Settings, inputs: Sequence[Array], out: Array, names: Sequence[str]) -> Step:
    from compiler.autotune.task import SearchTask

    task = SearchTask(workload.function(), threads=settings.threads, policy=settings.policy, constants=names)
    constants, given = _divided(workload, names, inputs)
    return _step(task.apply_best(settings.database, constants), given, out)


def _prepared(workload: Workload, settings: Settings, inputs: Sequence[Array], out: Array) -> Step:
    """Ours, with everything that depends on constants alone computed before the time begins."""
    from compiler.bench.schedules.prepared import prepared

    program = prepared(workload, settings.threads)
    return _constant(workload, settings, inputs, out, program or workload.function(), "written")


def _constant(
    workload: Workload, settings: Settings, inputs: Sequence[Array], out: Array, program: Any, schedule: str
) -> Step:
    from compiler.driver.building import build

    if not workload.constants:
        raise TargetError(f"{workload.name} has no constant inputs")
    constants, given = _divided(workload, workload.constants, inputs)
    kernel = build(program, threads=settings.threads, policy=settings.policy, constants=constants, schedule=schedule)
    if kernel.fixed.preparation is None:
        raise TargetError(f"nothing in the loops of {workload.name} depends on its constants alone")
    return _step(kernel, given, out)


def _divided(workload: Workload, names: Sequence[str], inputs: Sequence[Array]) -> tuple[dict[str, Array], list[Array]]:
    """The inputs of some names, and the others in order."""
    given = dict(zip((i.name for i in workload.inputs), inputs, strict=True))
    return {name: given.pop(name) for name in names}, list(given.values())


def _kernel(program: Any, settings: Settings, inputs: Sequence[Array], out: Array, schedule: str) -> Step:
    from compiler.driver.building import build

    return _step(build(program, threads=settings.threads, policy=settings.policy, schedule=schedule), inputs, out)


def _step(kernel: Callable[..., object], inputs: Sequence[Array], out: Array) -> Step:
    def step() -> Array:
        kernel(*inputs, out=out)
        return out

    return step


def _numpy(workload: Workload, settings: Settings, inputs: Sequence[Array], out: Array) -> Step:
    return workload.numpy(inputs, out)


def _import_torch() -> ModuleType:
    try:
        import torch
    except ImportError as error:
        raise TargetError("torch is not installed: pip install 'strata-compiler[bench]'") from error
    module: ModuleType = torch
    return module


def _torch(workload: Workload, settings: Settings, inputs: Sequence[Array], out: Array) -> Step:
    torch = _import_torch()
    return _torch_step(torch, lambda *tensors: workload.torch(torch, *tensors), settings, inputs)


def _torch_compile(workload: Workload, settings: Settings, inputs: Sequence[Array], out: Array) -> Step:
    torch = _import_torch()
    compiled = torch.compile(lambda *tensors: workload.torch(torch, *tensors))
    step = _torch_step(torch, compiled, settings, inputs)
    try:
        step()
    except RuntimeError as error:
        raise TargetError(f"torch.compile fails here ({type(error).__name__})") from error
    return step


def _torch_step(torch: ModuleType, function: Callable[..., Any], settings: Settings, inputs: Sequence[Array]) -> Step:
    """A step over tensors that share the memory of the inputs; the result is torch's own."""
    torch.set_num_threads(settings.threads)
    tensors = [torch.from_numpy(array) for array in inputs]

    def step() -> Array:
        with torch.inference_mode():
            array: Array = function(*tensors).numpy()
        return array

    return step


def _onnxruntime(workload: Workload, settings: Settings, inputs: Sequence[Array], out: Array) -> Step:
    return onnx_model.bind(workload, settings.threads, inputs, out, packed=True)


def _onnxruntime_inputs(workload: Workload, settings: Settings, inputs: Sequence[Array], out: Array) -> Step:
    if not workload.constants:
        raise TargetError(f"{workload.name} has no constant inputs: it is the same as onnxruntime")
    return onnx_model.bind(workload, settings.threads, inputs, out, packed=False)


def _gcc() -> str:
    gcc = same_loops.find_gcc()
    if gcc is None:
        raise TargetError("gcc is not installed")
    return gcc


def _same_loops(workload: Workload, settings: Settings, inputs: Sequence[Array], out: Array) -> Step:
    if settings.threads != 1:
        raise TargetError("the C loops are serial: they run with one thread only")
    return same_loops.bind(_gcc(), workload, inputs, out)


CONTENDERS: dict[str, Contender] = {
    contender.name: contender
    for contender in (
        Contender(OURS, "by its script in compiler/bench/schedules", lambda: _installed("strata-compiler"), _ours),
        Contender("unscheduled", "ours, its loops as they come", lambda: _installed("strata-compiler"), _unscheduled),
        Contender("default", "ours, without a trial", lambda: _installed("strata-compiler"), _default),
        Contender(
            "default.prepared",
            "ours, without a trial, constant weights packed before",
            lambda: _installed("strata-compiler"),
            _default_prepared,
        ),
        Contender("prepared", "ours, constant weights packed before", lambda: _installed("strata-compiler"), _prepared),
        Contender("tuned", "ours, by the best script of --database", lambda: _installed("strata-compiler"), _tuned),
        Contender(
            "tuned.prepared",
            "ours, tuned with constant weights, packed before",
            lambda: _installed("strata-compiler"),
            _tuned_prepared,
        ),
        Contender("numpy", "its best formulation", lambda: _installed("numpy"), _numpy),
        Contender("torch", "eagerly", lambda: _installed("torch"), _torch),
        Contender("torch.compile", "through inductor", lambda: _installed("torch"), _torch_compile),
        Contender("onnxruntime", "constant weights packed before", lambda: _installed("onnxruntime"), _onnxruntime),
        Contender("onnxruntime.inputs", "weights as inputs", lambda: _installed("onnxruntime"), _onnxruntime_inputs),
        Contender(
            "gcc", "the same loops in C, -O3 -march=native -ffast-math", lambda: same_loops.version(_gcc()), _same_loops
        ),
    )
}
