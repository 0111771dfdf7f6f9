"""A compiled part of a graph: its kernel, and its constant parameters."""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import fx

from compiler.autotune import SearchTask, TuningOptions
from compiler.autotune.display.facts import INTERRUPTED
from compiler.driver.building import build
from compiler.targets.cpu import Kernel
from compiler.te.function import Function
from compiler.torch_backend.costs import Cost, costs
from compiler.torch_backend.options import Options
from compiler.torch_backend.programs import TORCH_DTYPES, program_of

State: TypeAlias = tuple[list[int], list[int]]
"""The addresses of tensors, and their version counters in torch, which count writes."""
_version = attrgetter("_version")
MAX_CHANGES = 3
"""A parameter that has changed so many times becomes an input of the kernel; fewer changes each rebuild it."""


class Part:
    """A compiled part, callable on torch tensors. Arguments at the positions `fixed` are constants of its kernel, which
    is rebuilt when they change; an argument that has changed MAX_CHANGES times becomes an input."""

    def __init__(self, module: fx.GraphModule, name: str, fixed: Iterable[int], options: Options) -> None:
        self.program = program_of(module, name)
        self._options = options
        self._fixed = set(fixed) & set(self.program.positions)
        self._changes: Counter[int] = Counter()
        self._constant: list[int] = []
        self._owners: list[torch.Tensor] = []
        self._state: State = [], []
        self._given: list[int] = []
        self._kernel: Kernel | None = None

    def __call__(self, *arguments: Any) -> Any:
        """Run the kernel, built in the first call and after changes of constants; return a new tensor, or a tuple of
        new tensors, as the part does. Raises a StrataError if no kernel can be built."""
        if self._kernel is None:
            self.prepare(arguments)
        elif (state := _state([arguments[n] for n in self._constant])) != self._state:
            self._note_changes(state)
            self.prepare(arguments)
        assert self._kernel is not None
        given = [a if not (a := arguments[n]).requires_grad else a.detach() for n in self._given]
        returned = self._kernel(*given) if given else self._without_inputs(self._kernel)
        return self.program.returned(returned if isinstance(returned, tuple) else (returned,))

    def _without_inputs(self, kernel: Kernel) -> Any:
        """Call a kernel without inputs on new torch tensors as outputs: without inputs it would return numpy arrays."""
        outputs = self.program.function.outputs
        tensors = tuple(torch.empty(t.shape, dtype=TORCH_DTYPES[t.dtype]) for t in outputs)
        return kernel(out=tensors if len(tensors) > 1 else tensors[0])

    def prepare(self, arguments: Sequence[Any]) -> None:
        """Build the kernel with the current values of the fixed arguments as constants, except tensors of inference
        mode, which do not count writes. Raises a StrataError if none can be built."""
        inputs = dict(zip(self.program.positions, self.program.function.inputs, strict=True))
        self._constant = [n for n in inputs if n in self._fixed and not arguments[n].is_inference()]
        self._owners = [arguments[n] for n in self._constant]
        self._state = _state(self._owners)
        constants = {inputs[n].name: arguments[n].detach() for n in self._constant}
        self._kernel = build_kernel(self.program.function, constants, self._options)
        self._given = [n for n in inputs if n not in self._constant]

    def costs(self) -> Iterator[Cost]:
        """Measure and yield the cost of each group of the kernel; nothing before the first call."""
        if self._kernel is not None:
            names = dict(zip(self.program.positions, self.program.function.inputs, strict=True))
            constants = [names[n].name for n in self._constant]
            yield from costs(self._kernel, self.program.function, constants, self._options.error)

    def _note_changes(self, state: State) -> None:
        for position, *now_and_before in zip(self._constant, *state, *self._state, strict=True):
            self._changes[position] += now_and_before[:2] != now_and_before[2:]
        self._fixed -= {position for position, times in self._changes.items() if times >= MAX_CHANGES}


def _state(tensors: Sequence[torch.Tensor]) -> State:
    """Return the addresses and versions of tensors: a replacement changes an address, a write in place a version."""
    return list(map(torch.Tensor.data_ptr, tensors)), list(map(_version, tensors))


def build_kernel(program: Function, constants: dict[str, Any], options: Options) -> Kernel:
    """Build the CPU kernel of a te function, with `constants` by input name. With trials in the options tune it before,
    in their database or a temporary one. Raises KeyboardInterrupt if the tuning was interrupted, and a StrataError if
    no kernel can be built."""
    threads = options.threads or torch.get_num_threads()
    if not options.trials:
        return build(
            program, "cpu", threads, options.policy, constants=constants, schedule=options.database, error=options.error
        )
    with _database(options) as database:
        task = SearchTask(
            program, threads=threads, policy=options.policy, constants=list(constants), error=options.error
        )
        phases: list[str] = []
        tuning = TuningOptions(
            trials=options.trials,
            database=database,
            callbacks=[lambda progress: phases.append(progress.phase)],
            show=any(stream is not None and stream.isatty() for stream in (sys.stderr, sys.stdout)),
        )
        task.tune(tuning)
        if phases[-1:] == [INTERRUPTED]:
            raise KeyboardInterrupt  # the measured trials are written; the call ends, too
        return build(
            program, "cpu", threads, options.policy, constants=constants, schedule=database, error=options.error
        )


@contextmanager
def _database(options: Options) -> Iterator[Path]:
    if options.database is not None:
        yield options.database
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "trials.db"
