"""`SearchTask`: a program to be tuned for a target, and what was found for it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from reprlib import repr as short
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from compiler.autotune.database import Database, Key, Record, key_of, program_of
from compiler.autotune.database.replay import replay
from compiler.autotune.measure.subject import Subject
from compiler.autotune.options import TuningOptions
from compiler.autotune.space.rules import GPU_RULES, RULES, Rule
from compiler.autotune.space.rules.derive import Derived, derive
from compiler.autotune.space.rules.template import from_template
from compiler.autotune.space.space import SketchSpace
from compiler.autotune.workloads import made
from compiler.driver import build, lower, parse, with_constants
from compiler.errors import InputError, TargetError
from compiler.interpret.numbers import dtype_of
from compiler.policies import policy_named
from compiler.printable import counted, printable
from compiler.schedule import Schedule
from compiler.stated import line, several
from compiler.targets.cpu.openmp import thread_count, usable
from compiler.targets.gpus import DEFAULT_ARCH, at_hand, gpu_of
from compiler.targets.machine import Gpu, Machine, host

MODES = ("script", "python", "llvm", "asm")


class SearchTask:
    """A program to be tuned: what is computed, for which target, on how many threads, under which policy.

        task = SearchTask(func=matmul, args=(1024, 1024, 1024), threads=1)
        task.tune(TuningOptions(trials=64, database="matmul.db"))
        kernel = task.apply_best("matmul.db")

    `func` is a te function, or a function or registered workload that makes one of `args`; also a module, text or path
    at the te or loop level. `threads` is how many threads a kernel runs on: None is what OMP_NUM_THREADS says, or the
    cores that the process may use. `rules` derive the search space; a `template`, a script with open choices or its
    text, is the space instead, with what the rules make of its `sched.auto`. `machine` is what the space is derived
    for, the one at hand by default; of a GPU, the one that stands for its architecture `arch`, by default that at hand,
    if there is one. `constants` are the names of inputs that never change, such as weights: what schedules make of them
    alone, their layout, is made once and is not timed.
    Raises InputError or TargetError for what cannot be tuned.
    """

    def __init__(
        self,
        func: object,
        args: Sequence[object] = (),
        target: str = "cpu",
        threads: int | None = None,
        policy: str = "contract",
        rules: Sequence[Rule] | None = None,
        name: str | None = None,
        template: ModuleOp | str | None = None,
        machine: Machine | Gpu | None = None,
        constants: Sequence[str] = (),
        arch: str | None = None,
    ) -> None:
        target = line("the target", target)
        arch = None if arch is None else line("the architecture", arch)
        args = several("args", args, "arguments", lambda one: True)
        constants = several("constants", constants, "names of inputs", lambda one: isinstance(one, str))
        here = at_hand(target) if target != "cpu" else None
        arch = arch or (here[1] if here is not None else DEFAULT_ARCH)
        gpu = gpu_of(target, arch) if target != "cpu" else None
        if gpu is not None and (constants or threads is not None):
            raise TargetError(f"threads and constants are the CPU's, not {target}'s")
        policy_named(policy, TargetError)
        self.func = made(func, args)
        self.constants = constants
        self.module = with_constants(self.func, lower(self.func), constants)
        self.schedule = Schedule(self.module)
        self.name = self.schedule.name if name is None else line("the name of a task", name)
        self.policy, self.target, self.arch = policy, target, arch
        self.device = here[0] if here is not None and here[1] == arch else None
        given = (GPU_RULES if gpu else RULES) if rules is None else rules
        self.rules: tuple[Rule, ...] = several("rules", given, "functions", callable)
        self.template = _template(template)
        self.threads = usable(thread_count(threads)) if gpu is None else 1
        if machine is not None and not isinstance(machine, Gpu if gpu else Machine):
            raise InputError(f"the machine is {short(machine)}, expected {'Gpu' if gpu else 'Machine'}")
        self.machine = machine or gpu or host()

    @cached_property
    def program(self) -> str:
        """The text by which databases know the program."""
        return program_of(self.module)

    @cached_property
    def key(self) -> Key:
        """What outcomes are comparable under."""
        return key_of(self.module, self._place, self.threads, self.policy)

    @property
    def _place(self) -> str:
        """The machine, as keys have it: what is estimated is not to be compared with what is measured."""
        machine = self.machine
        if isinstance(machine, Gpu):
            return f"{self.place}, estimated" if self.estimated else str(self.device)
        return machine.name

    @property
    def estimated(self) -> bool:
        """Whether times are estimates, because the machine is not at hand."""
        return isinstance(self.machine, Gpu) and self.device is None

    @property
    def place(self) -> str:
        """Where it runs, for people."""
        if isinstance(self.machine, Gpu):
            return f"{self.machine.name}, {self.machine.arch}"
        return counted(self.threads, "thread")

    @property
    def modes(self) -> tuple[str, ...]:
        """The ways in which the best record can be printed."""
        return MODES if self.target == "cpu" else (*MODES[:2], self.target)

    @property
    def compute_dag(self) -> str:
        """What is computed, one statement a line: buffers, then blocks with their axes and operands."""
        from compiler.autotune.tell.describe import described

        return described(self.schedule.program)

    @cached_property
    def derived(self) -> Derived:
        """The sketches of the program, and the alternatives that were refused."""
        if self.template is not None:
            return from_template(self.template, self.schedule, self.rules, self.machine, self.threads)
        return derive(self.schedule, self.rules, self.machine, self.threads)

    @cached_property
    def space(self) -> SketchSpace:
        """The search space."""
        return SketchSpace(self.derived.sketches, self.machine, self.estimated)

    def tune(self, options: TuningOptions | None = None) -> Record | None:
        """Search until the budget is spent, and give the best record; None where nothing could be measured.

        A database that knows the task is gone on with, its trials count. What is measured is on disk at once; an
        interruption ends the run and keeps all.
        """
        from compiler.autotune.tuner import Problem, tune

        options, text = options or TuningOptions(), str(self.module)
        subject = Subject(text, self.schedule.name, self.policy, self.threads, options.seed, self.target, self.arch)
        key, program, machine, estimated = self.key, self.program, self.machine, self.estimated
        return tune(
            Problem(self.name, key, program, machine, estimated, subject, lambda: self.derived.sketches), options
        )

    def best(self, database: str | os.PathLike[str]) -> Record:
        """The best record of the task. Raises InputError where there is none."""
        with Database(database, create=False) as opened:
            record = opened.best(self.key)
        if record is None:
            raise InputError(f"{database} has nothing measured for {self.name} on {self.threads} threads")
        return record

    def apply_best(self, database: str | os.PathLike[str], constants: Mapping[str, object] | None = None) -> Any:
        """The kernel of the best record, which takes the inputs that are not constant; `constants` are arrays of those
        that are. Raises InputError where there is no record or no such array, ScheduleError where it is outdated."""
        given = constants or {}
        if set(given) != set(self.constants):
            said = ", ".join(self.constants) or "none"
            raise InputError(
                f"{self.name} has these constants: {said}; arrays are given for: {', '.join(given) or 'none'}"
            )
        return self._built(self.best(database), given)

    def print_best(self, database: str | os.PathLike[str], mode: str = "script") -> None:
        """Print the best record: its script, the same in Python, or the LLVM IR or assembly that it becomes; on a GPU
        the text of its kernels, the mode that is called as the target."""
        if mode not in self.modes:
            raise InputError(f"unknown mode '{mode}' (there are {', '.join(self.modes)})")
        record = self.best(database)
        if mode == "script":
            print(printable(record.script))
        elif mode == "python":
            from compiler.schedule.python import as_python

            print(printable(as_python(replay(record).script)))
        elif mode == self.target:
            print(printable(self._built(record, {}).text))
        else:
            arguments = {buffer.name: buffer for buffer in self.schedule.program.arguments}
            nothing = {name: np.zeros(arguments[name].shape, dtype_of(arguments[name].element)) for name in self._fixed}
            print(printable(self._built(record, nothing).text(mode)))

    @property
    def _fixed(self) -> tuple[str, ...]:
        """The constants, as the loops name them."""
        return self.schedule.program.constants

    def _built(self, record: Record, constants: Mapping[str, object]) -> Any:
        schedule = Schedule(self.module).apply(replay(record).script)
        if self.target != "cpu":
            return build(schedule, self.target, policy=self.policy, arch=self.arch)
        if not constants:
            return build(schedule, threads=self.threads, policy=self.policy)
        return build(schedule, threads=self.threads, policy=self.policy, constants=constants)


def _template(stated: object) -> ModuleOp | None:
    """A template as it was given, or parsed."""
    if stated is None or isinstance(stated, ModuleOp):
        return stated
    if isinstance(stated, str):
        return parse(stated, "the template")
    raise InputError(f"the template is {short(stated)}, expected a module or its text")
