"""`UnitKey`: the dependencies of a group's machine code; `Unit`: the machine code and its calling convention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from compiler.program.tree import Buffer, Program
from compiler.targets.cpu.compile import ObjectCode, load_object
from compiler.targets.cpu.facts import UNKNOWN_FACTS, BuildFacts
from compiler.targets.cpu.kernel import NO_FIXED_ARGUMENTS, FixedArguments, Interface, Kernel, LevelText
from compiler.targets.cpu.tiles import permit_tiles
from compiler.types.machines import host, missing_features


@dataclass(frozen=True)
class BuildSettings:
    """The settings of the build of a program.

    policy: of floating point. threads: of parallel loops. start: of the build, on perf_counter. in_place: whether a
    group may overwrite an input that is not read afterwards with its result. slices: whether groups write the parts of
    concatenations into their slices. profiled: whether main adds up the ticks of each call of a group.
    """

    policy: str
    threads: int
    start: float
    in_place: bool = True
    slices: bool = True
    profiled: bool = False


@dataclass(frozen=True)
class Scheduled:
    """A schedule of a group, and its origin.

    script: its text, without open choices; None for the loops as written. origin: the source of the script: "written",
    "record" or "model". verdict: that of verify-schedule, or the reason for the loops as written. tree: the loops under
    the script; None if the script is to be applied again.

    >>> strata.driver.Scheduled().origin
    'written'
    """

    script: str | None = None
    origin: str = "written"
    verdict: str = ""
    tree: Program | None = field(default=None, compare=False, repr=False)


WRITTEN = Scheduled()
"""The schedule of the loops as written."""


@dataclass(frozen=True)
class UnitKey:
    """All dependencies of a group's machine code; calls with equal keys run the same code.

    text: of the te function, under the common name UNIT. script: of its schedule. constants: the positions of inputs
    that are the same in all calls of the kernel, so that values that depend on them alone are prepared. shared: pairs
    of positions of an input and an output that may be one array, if the loops allow it. policy: of floating point.
    threads: of the schedule. machine: the name of the CPU and its features.

    Arrays are contiguous, in row-major order, aligned to their elements; those that are not shared do not overlap.
    """

    text: str
    script: str | None
    constants: tuple[int, ...]
    shared: tuple[tuple[int, int], ...]
    policy: str
    threads: int
    machine: str


@dataclass(frozen=True)
class NativeCode:
    """One native function. It pickles, and runs on machines of the kind that it was compiled for.

    name: in the program. interface: its symbol and arguments. object: its machine code. policy: of floating point.
    tiles: whether it uses tile registers.
    """

    name: str
    interface: Interface
    object: ObjectCode
    policy: str
    tiles: bool

    @property
    def symbol(self) -> str:
        """The symbol of its machine code."""
        return self.interface.name

    def load(
        self,
        texts: Mapping[str, LevelText] = MappingProxyType({}),
        fixed: FixedArguments = NO_FIXED_ARGUMENTS,
        facts: BuildFacts = UNKNOWN_FACTS,
    ) -> Kernel:
        """Load the function as a kernel with texts by level; `fixed` are the arguments that are the same in every call.
        Raises TargetError if no library here has a function that it calls, or if the system refuses tile registers."""
        machine = host()
        if self.tiles and not missing_features(machine):
            permit_tiles()
        return Kernel(self.interface, load_object(self.object, machine), self.policy, texts, fixed, facts)


@dataclass(frozen=True)
class Unit:
    """A compiled program of one nest or group. It pickles.

    call: the function of each call; its arguments are the inputs at the positions `takes`, then `prepared`, then the
    outputs. prepare: the function that runs once, if there is one; it reads the inputs at the positions `prepares` and
    fills `prepared`. shared: pairs of positions of an input and an output that must be one array. seconds: of the
    compilation.
    """

    call: NativeCode
    takes: tuple[int, ...]
    prepare: NativeCode | None = None
    prepares: tuple[int, ...] = ()
    prepared: tuple[Buffer, ...] = ()
    shared: tuple[tuple[int, int], ...] = ()
    seconds: float = 0.0

    @property
    def codes(self) -> tuple[NativeCode, ...]:
        """The preparation, if there is one, and the function of each call."""
        return (self.call,) if self.prepare is None else (self.prepare, self.call)

    def named(self, name: str) -> Unit:
        """The same unit for a program in which its function has the name `name`; the symbols stay."""

        def renamed(code: NativeCode) -> NativeCode:
            return replace(code, name=name + code.name.removeprefix(self.call.name))

        return replace(self, call=renamed(self.call), prepare=self.prepare and renamed(self.prepare))
