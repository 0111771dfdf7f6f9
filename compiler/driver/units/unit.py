"""`UnitKey`: what the machine code of a group depends on; `Unit`: that machine code, and how it is called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from compiler.program.tree import Buffer, Program
from compiler.targets.cpu.compile import ObjectCode, load_object
from compiler.targets.cpu.facts import UNKNOWN, Facts
from compiler.targets.cpu.kernel import NOTHING, FixedArguments, Interface, Kernel, Text
from compiler.targets.cpu.tiles import permit_tiles
from compiler.types.machines import host, lacking


@dataclass(frozen=True)
class BuildSettings:
    """What holds for a program: the floating-point policy, the threads of parallel loops, and when its build began.

    in_place: whether a group may write its result where an input stands that nothing reads afterwards. slices: whether
    groups write the parts of concatenations into their slices. profiled: whether main adds up the ticks of each of its
    calls, see `emit_profiled`.
    """

    policy: str
    threads: int
    start: float
    in_place: bool = True
    slices: bool = True
    profiled: bool = False


@dataclass(frozen=True)
class Scheduled:
    """A schedule of a group, and where it is from.

    script: its text, without open choices; None for the loops as they are written. origin: "written", or what gave the
    script, such as "record". verdict: what verify-schedule said of it. tree: the loops under the script, where they are
    at hand; else they are made of the script again.
    """

    script: str | None = None
    origin: str = "written"
    verdict: str = ""
    tree: Program | None = field(default=None, compare=False, repr=False)


WRITTEN = Scheduled()
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
    """One native function: its name in the program, what a caller of its symbol knows, its machine code, the policy
    that it was compiled under, and whether it uses tile registers.

    It pickles, and holds for machines of the same kind as the one that it was made for.
    """

    name: str
    interface: Interface
    object: ObjectCode
    policy: str
    tiles: bool

    def load(
        self,
        texts: Mapping[str, Text] = MappingProxyType({}),
        fixed: FixedArguments = NOTHING,
        facts: Facts = UNKNOWN,
    ) -> Kernel:
        """The kernel of the function; `fixed` are arrays that no call gives.

        Raises TargetError where a function that it calls is in no library here, and where tile registers are refused.
        """
        machine = host()
        if self.tiles and not lacking(machine):
            permit_tiles()
        return Kernel(self.interface, load_object(self.object, machine), self.policy, texts, fixed, facts)


@dataclass(frozen=True)
class Unit:
    """A compiled program of one nest or group. It pickles.

    call: what each call runs; it takes the inputs at the positions `takes`, then `prepared`, then the outputs. prepare:
    what is run once, if anything is; it takes the inputs at the positions `prepares` and fills `prepared`. shared: the
    inputs and outputs, by their positions, that must be one array.
    """

    call: Code
    takes: tuple[int, ...]
    prepare: Code | None = None
    prepares: tuple[int, ...] = ()
    prepared: tuple[Buffer, ...] = ()
    shared: tuple[tuple[int, int], ...] = ()
    seconds: float = 0.0

    @property
    def codes(self) -> tuple[Code, ...]:
        """The preparation, if there is one, and the function of each call."""
        return (self.call,) if self.prepare is None else (self.prepare, self.call)

    def named(self, name: str) -> Unit:
        """The same unit in a program that calls its function by another name."""

        def renamed(code: Code) -> Code:
            return replace(code, name=name + code.name.removeprefix(self.call.name))

        return replace(self, call=renamed(self.call), prepare=self.prepare and renamed(self.prepare))
