"""The contenders: each binds a workload to arrays and returns a step, or raises an error with the reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from compiler.bench import c_loops, onnx_model
from compiler.bench.error_bounds import Array
from compiler.bench.workload import Step, Workload
from compiler.support.errors import InputError, TargetError

OURS = "strata"
SCRIPT = "script"
"""The name of the schedule of our hand-written scripts, in compiler/bench/schedules.py."""


@dataclass(frozen=True)
class Settings:
    """The settings of all contenders: threads, our floating-point policy, and the file of our tuning records."""

    threads: int = 1
    policy: str = "contract"
    database: str = "strata.db"


Bind = Callable[[Workload, Settings, Sequence[Array], Array], Step]
"""Function that binds a workload to inputs and an output. Raises StrataError if the contender cannot run it here."""


@dataclass(frozen=True)
class Contender:
    """A contender: `what` is its method in words, `bind` prepares its runs. `version()` returns the version of its
    package, empty if that is not installed, or raises TargetError."""

    name: str
    what: str
    version: Callable[[], str]
    bind: Bind


def find(names: Sequence[str]) -> list[Contender]:
    """Return our contender, then those with the names, in order, each once. Raises InputError for an unknown name."""
    for name in names:
        if name not in CONTENDERS:
            raise InputError(f"there is no contender '{name}' (there are {', '.join(CONTENDERS)})")
    return [CONTENDERS[name] for name in dict.fromkeys((OURS, *names))]


def _installed(package: str) -> str:
    """The version of a package; empty if it is not installed, as in a checkout."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _ours(
    workload: Workload,
    settings: Settings,
    inputs: Sequence[Array],
    out: Array,
    schedule: str = SCRIPT,
    prepared: bool = False,
) -> Step:
    """Bind our kernel, under the workload's script (SCRIPT; as written if it has none), or under a schedule for
    `build`; if `prepared`, under its script for constant weights, and values that depend on constants only are computed
    before the timing. Raises TargetError if `prepared` and the workload has no constants or no such values."""
    from compiler.bench.schedules import PACKED, SCRIPTS, scheduled
    from compiler.driver.building import build

    program: Any = None
    if schedule == SCRIPT:
        program = scheduled(workload, settings.threads, PACKED if prepared else SCRIPTS)
    constants, given = _divided(workload, prepared, inputs)
    kernel = build(
        program or workload.function(),
        threads=settings.threads,
        policy=settings.policy,
        constants=constants or None,
        schedule="written" if schedule == SCRIPT else schedule,
    )
    if prepared and kernel.fixed.preparation is None:
        raise TargetError(f"nothing in the loops of {workload.name} depends on its constants alone")
    return _step(kernel, given, out)


def _tuned(workload: Workload, settings: Settings, inputs: Sequence[Array], out: Array, prepared: bool = False) -> Step:
    """Bind our kernel by its best records, with constant weights if `prepared`. Raises InputError without a record,
    TargetError if `prepared` and the workload has no constants."""
    from compiler.autotune.task import SearchTask

    constants, given = _divided(workload, prepared, inputs)
    task = SearchTask(workload.function(), threads=settings.threads, policy=settings.policy, constants=tuple(constants))
    return _step(task.apply_best(settings.database, constants), given, out)


def _divided(workload: Workload, prepared: bool, inputs: Sequence[Array]) -> tuple[dict[str, Array], list[Array]]:
    """Split inputs into the workload's constants by name, if `prepared`, else none, and a list of the other inputs.
    Raises TargetError if `prepared` and the workload has no constants."""
    if prepared and not workload.constants:
        raise TargetError(f"{workload.name} has no constant inputs")
    given = dict(zip((i.name for i in workload.inputs), inputs, strict=True))
    return {name: given.pop(name) for name in (workload.constants if prepared else ())}, list(given.values())


def _step(kernel: Callable[..., object], inputs: Sequence[Array], out: Array) -> Step:
    def step() -> Array:
        kernel(*inputs, out=out)
        return out

    return step


def _torch(workload: Workload, settings: Settings, inputs: Sequence[Array], out: Array, compiled: bool = False) -> Step:
    """Bind torch, eager or `compiled`, to the inputs' memory; a step returns a new array. Raises TargetError without
    torch, and if torch.compile fails."""
    torch = onnx_model.import_package("torch")
    torch.set_num_threads(settings.threads)
    tensors = [torch.from_numpy(array) for array in inputs]

    def eager(*operands: Any) -> Any:
        return workload.torch(torch, *operands)

    function = torch.compile(eager) if compiled else eager

    def step() -> Array:
        with torch.inference_mode():
            array: Array = function(*tensors).numpy()
        return array

    try:
        if compiled:
            step()
    except RuntimeError as error:
        raise TargetError(f"torch.compile fails here ({type(error).__name__})") from error
    return step


def _onnxruntime(
    workload: Workload, settings: Settings, inputs: Sequence[Array], out: Array, packed: bool = True
) -> Step:
    """Bind onnxruntime, with constants in the model, packed before the timing (`packed`), or as inputs of each call.
    Raises TargetError as `onnx_model.bind`, and unless `packed` for a workload without constants."""
    if not packed and not workload.constants:
        raise TargetError(f"{workload.name} has no constant inputs: it is the same as onnxruntime")
    return onnx_model.bind(workload, settings.threads, inputs, out, packed)


def _gcc() -> str:
    gcc = c_loops.find_gcc()
    if gcc is None:
        raise TargetError("gcc is not installed")
    return gcc


def _same_loops(workload: Workload, settings: Settings, inputs: Sequence[Array], out: Array) -> Step:
    if settings.threads != 1:
        raise TargetError("the C loops are serial: they run with one thread only")
    return c_loops.bind(_gcc(), workload, inputs, out)


_strata, _torch_version, _runtime = (partial(_installed, name) for name in ("strata-compiler", "torch", "onnxruntime"))

CONTENDERS: dict[str, Contender] = {
    contender.name: contender
    for contender in (
        Contender(OURS, "by its script in compiler/bench/schedules.py", _strata, _ours),
        Contender("unscheduled", "ours, its loops as they come", _strata, partial(_ours, schedule="written")),
        Contender("default", "ours, without a trial", _strata, partial(_ours, schedule="auto")),
        Contender(
            "default.prepared",
            "ours, without a trial, constant weights packed before",
            _strata,
            partial(_ours, schedule="auto", prepared=True),
        ),
        Contender("prepared", "ours, constant weights packed before", _strata, partial(_ours, prepared=True)),
        Contender("tuned", "ours, by the best script of --database", _strata, _tuned),
        Contender(
            "tuned.prepared",
            "ours, tuned with constant weights, packed before",
            _strata,
            partial(_tuned, prepared=True),
        ),
        Contender(
            "numpy",
            "its best formulation",
            partial(_installed, "numpy"),
            lambda workload, _, inputs, out: workload.numpy(inputs, out),
        ),
        Contender("torch", "eagerly", _torch_version, _torch),
        Contender("torch.compile", "through inductor", _torch_version, partial(_torch, compiled=True)),
        Contender("onnxruntime", "constant weights packed before", _runtime, _onnxruntime),
        Contender("onnxruntime.inputs", "weights as inputs", _runtime, partial(_onnxruntime, packed=False)),
        Contender(
            "gcc", "the same loops in C, -O3 -march=native -ffast-math", lambda: c_loops.version(_gcc()), _same_loops
        ),
    )
}
