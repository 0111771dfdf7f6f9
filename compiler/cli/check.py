"""`strata check FILE|NAME`: run kernels without a GPU: races, barriers, bounds, results, memory traffic."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, TypeAlias

from compiler.cli import program
from compiler.cli.model import shape_argument
from compiler.cli.printing import show
from compiler.cli.values import natural, scale, seconds
from compiler.targets.gpus import DEFAULT_ARCH
from compiler.targets.registry import DEFAULT_GPU
from compiler.types.policies import POLICIES

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.dialects.func import FuncOp

    from compiler.targets.arguments import Argument, Array
    from compiler.targets.simt import CheckResult


ORACLES = ("simt", "ptx")
"""The interpreters of kernels."""
PROGRESS_SECONDS = 3.0
"""The interval between progress lines, in seconds."""
UNBOUND = ", where no loop is bound to threads: one thread does all, op by op"
"""The note on a slow check in a progress line."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add = parser.add_argument
    help = "an MLIR file at the te or loop level (- is standard input), an ONNX model, or a workload"
    add("program", metavar="FILE|NAME", help=help)
    shape_argument(parser)
    add("--scale", type=scale, default=scale("1"), help="multiply every extent of a workload: 1/4 or 0.25")
    add("--function", help="which of several functions of a file")
    add("--group", metavar="NAME", help="that group of a whole program alone")
    add("--target", default=DEFAULT_GPU, help="what the kernels are for: a GPU's target (default: %(default)s)")
    add("--arch", default=DEFAULT_ARCH, help="the architecture whose limits launches must keep (default: %(default)s)")
    help = "what runs: simt, the IR of kernels; ptx, the PTX of their text, by NVRTC (default: %(default)s)"
    add("--oracle", choices=ORACLES, default=ORACLES[0], help=help)
    add("--policy", choices=POLICIES, default="contract", help="liberties of floating point")
    add("--seed", type=natural, default=0, help="of the random inputs (default 0)")
    add("--seconds", type=seconds, default=60.0, metavar="S", help="what is open then is undecided (default 60)")


class Steps:
    """The current step of a check, printed to stderr every PROGRESS_SECONDS, and the check's time limit in seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.step, self.reported_at = seconds, "", 0.0
        self._began = perf_counter()

    def are_over(self) -> bool:
        """Print the step if PROGRESS_SECONDS have passed since the last line; return True when the time is over."""
        elapsed = perf_counter() - self._began
        if elapsed >= self.reported_at + PROGRESS_SECONDS:
            self.reported_at = elapsed
            print(f"[{elapsed:6.1f} s] {self.step}", file=sys.stderr, flush=True)
        return elapsed >= self.seconds


def run(options: argparse.Namespace) -> int:
    """Check the kernels of a program; return 1 for a fault, or if the time is over before the check ends, else 0.
    Raises InputError for a program that cannot be read, LoweringError or TargetError for one that the target cannot
    run."""
    from compiler.autotune.deadline import TimeIsUp, until

    steps = Steps(options.seconds)
    try:
        with until(steps.are_over):
            return _check(options, steps)
    except TimeIsUp:
        show(f"undecided within {options.seconds:g} s, while {steps.step}: --seconds allows more")
        return 1


def _check(options: argparse.Namespace, steps: Steps) -> int:
    from compiler.driver.reference.cases import reference
    from compiler.driver.reference.subject import Subject
    from compiler.driver.reference.tolerance import fault
    from compiler.pipeline.loops import lower, lower_to_kernels, without_bindings
    from compiler.targets.launches import read_host_function
    from compiler.targets.registry import gpu_of
    from compiler.targets.timing import kernel_times

    steps.step = "lowering the program"
    selected: object = program.selected(options)
    if options.group is not None:
        selected = program.group(program.whole(selected, error=0), options).module_with_user_names
    loops = lower(selected)
    gpu = gpu_of(options.target, options.arch)
    serial_text, barrier_lines = str(without_bindings(loops)), list(_barriers(loops, options.function))
    kernels, host, arguments = lower_to_kernels(loops, options.function, options.policy)
    for call in read_host_function(kernels, host).launches:
        call.check(gpu)
    steps.step = "computing the results that are right"
    case = reference(Subject(serial_text, options.function, seed=options.seed)).cases[0]
    steps.step = f"running the kernels on numpy{'' if _is_bound(loops) else UNBOUND}"
    run = _by_text if options.oracle == "ptx" else _by_ir
    outputs, faults, traffic = run(options, kernels, host, arguments, case.inputs)
    wrong_results = [
        f"wrong result in {argument.name}: {message}"
        for argument, output, expected in zip(arguments[len(case.inputs) :], outputs, case.expected, strict=True)
        if (message := fault(output.view(argument.dtype), expected)) is not None
    ]
    for line in (*faults, *wrong_results):
        show(line)
    for line in (*barrier_lines, *traffic):
        show(line)
    if wrong_results or faults:
        return 1
    for time in kernel_times(kernels, gpu, options.function):
        show(f"estimate for {gpu.name}: {time}")
    print("no fault was found, the results are right")
    return 0


Outcome: TypeAlias = "tuple[Sequence[Array], list[str], list[str]]"
"""The outputs, the faults, and lines about memory traffic."""


def _by_ir(
    options: argparse.Namespace, kernels: ModuleOp, host: FuncOp, arguments: Sequence[Argument], inputs: Sequence[Array]
) -> Outcome:
    """Run the IR of kernels by simt on inputs; return outputs, faults and lines about traffic. arguments: the inputs,
    then the outputs, each element of which must be written. `host` is not read."""
    import numpy as np

    from compiler.targets.simt import run as simulated

    required = {a.name: np.ones(a.shape, np.bool_) for a in arguments[len(inputs) :]}
    checked = simulated(kernels, inputs, options.function, required=required)
    return checked.outputs, [str(fault) for fault in checked.faults], list(_traffic(checked))


def _by_text(
    options: argparse.Namespace, kernels: ModuleOp, host: FuncOp, arguments: Sequence[Argument], inputs: Sequence[Array]
) -> Outcome:
    """Compile the kernels' text for the target and interpret it on inputs; return outputs, faults and no lines."""
    from compiler.targets.registry import gpu_target

    target = gpu_target(options.target)
    kernel = target.make_kernel(kernels, host, arguments, options.policy, options.arch)
    checked = target.check_text(kernel, inputs, options.arch)
    return checked.outputs, list(checked.faults), []


def _is_bound(loops: ModuleOp) -> bool:
    """Whether a loop of a module is bound to a GPU's blocks or threads."""
    from compiler.dialects.loop import ForOp

    return any(isinstance(op, ForOp) and op.loop_kind.startswith(("block", "thread")) for op in loops.walk())


def _barriers(loops: ModuleOp, name: str | None) -> Iterator[str]:
    """Yield a line for each barrier of the function `name` (None: the only public one): the loop or block after it, and
    its reason."""
    from compiler.analysis.barriers import barriers
    from compiler.dialects.functions import find_function
    from compiler.program.read import read
    from compiler.program.tree import Loop

    function = read(find_function(loops, name))
    for node in function.body:
        for key, reason in barriers(function, node).items() if isinstance(node, Loop) else ():
            place = f"loop {function.loops[key].label}" if isinstance(key, int) else f"block {key}"
            yield f"barrier before {place}: {reason}"


def _traffic(checked: CheckResult) -> Iterator[str]:
    """Yield a line for each buffer of each kernel: sectors of global memory, or bank conflicts in shared memory."""
    for (kernel, buffer), counts in checked.counts.items():
        if "sectors" in counts:
            ideal = -(-counts["bytes"] // 32)
            yield (
                f"{kernel}: {buffer}, global: {counts['accesses']} accesses of a warp, {counts['sectors']} sectors of "
                f"32 bytes, {ideal} if all bytes of them were used"
            )
        else:
            yield (
                f"{kernel}: {buffer}, shared: {counts['accesses']} accesses of a warp, {counts['rounds']} rounds, "
                f"{counts['conflicts']} of them for bank conflicts"
            )
