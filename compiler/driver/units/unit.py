"""`UnitKey`: what the machine code of a group depends on; `Unit`: that machine code, and how main calls it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from compiler.lowering.low_to_llvm.signature import Workspace
from compiler.program.tree import Buffer, Program
from compiler.targets.cpu.compile import ObjectCode


@dataclass(frozen=True)
class Settings:
    """What holds for a program: the floating-point policy, the threads of parallel loops, and when its build began.

    processes: in how many it is compiled at most; None is as many as there are cores. in_place: whether a group may
    write its result where an input stands that nothing reads afterwards. slices: whether groups write the parts of
    concatenations into their slices.
    """

    policy: str
    threads: int
    start: float
    processes: int | None = None
    in_place: bool = True
    slices: bool = True


@dataclass(frozen=True)
class Source:
    """Where the schedule of a group is from.

    script: its text, without open choices; None for the loops as they are written. origin: "written", or what gave the
    script, such as "record". verdict: what verify-schedule said of it. tree: the loops under the script, where they are
    at hand; else they are made of the script again.
    """

    script: str | None = None
    origin: str = "written"
    verdict: str = ""
    tree: Program | None = field(default=None, compare=False, repr=False)


WRITTEN = Source()
"""The loops as they are written."""


@dataclass(frozen=True)
class UnitKey:
    """All that machine code of a group depends on; calls that agree in it run the same code.

    text: the te function under a name that all share. script: of its schedule. constants: the positions of inputs that
    are the same in all calls of the kernel, so that what depends on them alone is prepared. shared: the inputs and
    outputs, by their positions, that may be one array where the loops allow it. policy: of floating point. threads: for
    how many threads the schedule is. machine: whose instructions.

    Arrays are whole and in row-major order, aligned as their elements are; others than those shared do not overlap.
    """

    text: str
    script: str | None
    constants: tuple[int, ...]
    shared: tuple[tuple[int, int], ...]
    policy: str
    threads: int
    machine: str


@dataclass(frozen=True)
class Code:
    """One native function: its name in the program, the symbol of its machine code, which knows nothing of that name,
    and what it takes beside its arguments."""

    name: str
    symbol: str
    object: ObjectCode
    workspace: Workspace
    parallel: bool
    tiles: bool


@dataclass(frozen=True)
class Unit:
    """A compiled group. It pickles.

    call: what each call runs; it takes the inputs at the positions `takes`, then `prepared`, then the outputs. prepare:
    what is run once, if anything is; it takes the inputs at the positions `prepares` and fills `prepared`. shared: the
    inputs and outputs, by their positions, that must be one array.
    """

    call: Code
    takes: tuple[int, ...]
    prepare: Code | None
    prepares: tuple[int, ...]
    prepared: tuple[Buffer, ...]
    shared: tuple[tuple[int, int], ...]
    seconds: float

    @property
    def codes(self) -> tuple[Code, ...]:
        """The preparation, if there is one, and the function of each call."""
        return (self.call,) if self.prepare is None else (self.prepare, self.call)

    def named(self, name: str) -> Unit:
        """The same unit in a program that calls its function by another name."""

        def renamed(code: Code) -> Code:
            return replace(code, name=name + code.name.removeprefix(self.call.name))

        return replace(self, call=renamed(self.call), prepare=self.prepare and renamed(self.prepare))
