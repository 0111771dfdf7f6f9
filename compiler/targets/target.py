"""`Target`: what programs are compiled for, as one object that other rooms use without knowing which it is.

A target states facts, and makes a kernel of a lowered module. What belongs to rooms above (rules of the search space,
features, builders and runners of the tuner) is registered there by the target's `family`, its kind of machine.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from reprlib import repr as short
from typing import Any, ClassVar, TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from compiler.support.errors import InputError, TargetError
from compiler.targets.arguments import Argument
from compiler.types.machines import Gpu, Machine

AnyKernel: TypeAlias = Any  # what a target makes: a Kernel, a CudaKernel, what a plugin has; types do not know


@dataclass(frozen=True)
class Device:
    """A machine that kernels of a target can run on: its name, and its architecture."""

    name: str
    arch: str


class Target(ABC):
    """What programs are compiled for.

    name: how it is called.
    family: its kind of machine, `cpu` or `gpu`: what rooms above have for it they find by this word.
    texts: the texts that a kernel has, the usual one first: what `print_best` and `strata build --emit` take.
    suffixes: the texts that files of some suffixes have.
    passes: by level (te as loops in the order written, loop, low) the passes to what `made` takes.
    refusal: why a program of another level is refused, behind `the program is at the low level`.
    in_units: the driver compiles programs group by group, links and caches them; else `made` makes a kernel of the
        whole program.
    takes_threads, takes_constants, takes_databases: whether `build` takes these arguments.
    is_tuned: whether a SearchTask can be for it.
    default_arch: the architecture where none is stated and no device is at hand.
    """

    name: ClassVar[str]
    family: ClassVar[str]
    texts: ClassVar[tuple[str, ...]]
    suffixes: ClassVar[Mapping[str, str]] = {}
    passes: ClassVar[Mapping[str, str]] = {}
    refusal: ClassVar[str] = ""
    in_units: ClassVar[bool] = False
    takes_threads: ClassVar[bool] = False
    takes_constants: ClassVar[bool] = False
    takes_databases: ClassVar[bool] = False
    is_tuned: ClassVar[bool] = True
    default_arch: ClassVar[str] = ""

    @abstractmethod
    def machine(self, arch: str) -> Machine | Gpu:
        """The machine that code for an architecture is made for. Raises TargetError for an unknown one."""

    @abstractmethod
    def at_hand(self) -> Device | None:
        """The device of this target that can be used here, if there is one."""

    def made(self, module: ModuleOp, host: FuncOp, arguments: Sequence[Argument], policy: str, arch: str) -> AnyKernel:
        """A kernel of the host function of a module that `passes` have lowered, and of its arguments.

        Raises LoweringError for an op without a form, TargetError for what the architecture lacks.
        """
        raise NotImplementedError(f"programs for {self.name} are compiled in units")

    def text(self, kernel: AnyKernel, name: str) -> str:
        """One of the `texts` of a kernel."""
        return str(kernel.text)

    def threads(self, stated: object) -> int:
        """How many threads parallel loops are scheduled for. Raises TargetError for what is no count."""
        return 1

    def is_at_hand(self, arch: str) -> bool:
        """Whether code for an architecture runs here."""
        here = self.at_hand()
        return here is not None and here.arch == arch

    def arch(self, stated: str | None = None) -> str:
        """The architecture of a task: as stated, that of the device at hand, or the default."""
        if stated is not None:
            return stated
        here = self.at_hand()
        return self.default_arch if here is None else here.arch

    def device(self, machine: Machine | Gpu, arch: str) -> str | None:
        """The name of the device that code for an architecture is timed on; None where times are estimates."""
        here = self.at_hand()
        return here.name if here is not None and here.arch == arch else None

    def check(self, threads: object, constants: object) -> None:
        """Raise TargetError for arguments of `build` that the target does not take."""
        if (constants is not None and not self.takes_constants) or (threads is not None and not self.takes_threads):
            words = "constants are" if self.takes_threads else "threads and constants are"
            raise TargetError(f"{words} the CPU's, not {self.name}'s")

    def checked_machine(self, machine: object, arch: str) -> Machine | Gpu:
        """A stated machine, or that of the architecture. Raises InputError for one of another family."""
        own = self.machine(arch)
        if machine is None:
            return own
        if not isinstance(machine, type(own)):
            raise InputError(f"the machine is {short(machine)}, expected {type(own).__name__}")
        return machine
