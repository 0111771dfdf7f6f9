"""`Target`: the interface of all targets, so that no other room tests for one of them.

A target has facts as attributes, and compiles a lowered module to a kernel. Rules of the search space, features,
builders and runners of the tuner are registered in the rooms above by the target's `family`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from reprlib import repr as short
from typing import Any, ClassVar, TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from compiler.graph.main import BufferCall, Main
from compiler.program.tree import Buffer
from compiler.support.errors import InputError, TargetError
from compiler.targets.arguments import Argument
from compiler.targets.groups import GroupFacts
from compiler.types.machines import Gpu, Machine

AnyKernel: TypeAlias = Any  # a Kernel, a CudaKernel, the class of a plugin
AnyProgram: TypeAlias = Any  # an instance of a target's `program_kind`


@dataclass(frozen=True)
class Device:
    """A machine that runs kernels of a target: its name and its architecture.

    >>> strata.targets.Device("NVIDIA A100", "sm_80").arch
    'sm_80'
    """

    name: str
    arch: str


@dataclass(frozen=True)
class JoinedParts:
    """The arguments of `Target.join` beside main. kernels: by the names of the functions that main and `before` call.
    before: the calls that run once, in order, before the first call of main. constants: the buffers of the program's
    constants. prepared: the buffers that `before` fills. groups: the groups of the program."""

    kernels: Mapping[str, AnyKernel]
    before: Sequence[BufferCall]
    constants: Sequence[Buffer]
    prepared: Sequence[Buffer]
    groups: Sequence[GroupFacts] = ()


class Target(ABC):
    """The interface of a target.

    name: its name in `target=`.
    family: its kind of machine, `cpu` or `gpu`, the key of rules, features and builders in the rooms above.
    texts: the names of a kernel's texts, the default first, for `print_best` and `strata build --emit`.
    suffixes: the name of the text to write to a file, by the file's suffix.
    library_suffixes: the suffixes of the files that `export` of a kernel writes.
    passes: by level (te as loops in the order written, loop, low) the passes that lower to the input of `make_kernel`.
    refusal: the end of the message `the program is at the low level, ...` for a level without passes.
    in_units: the driver compiles programs group by group, links and caches them; else `make_kernel` compiles the
        whole program.
    program_kind: the class of the programs that `join` returns, a dataclass that `compiler.types.records` encodes, with
        a method `kernel(arrays)`; None if programs are compiled as one function.
    alignment: the bytes at whose multiples the arrays of kernels begin, those that `join` lays out included.
    takes_threads, takes_constants, takes_databases: whether `build` takes these arguments.
    is_tuned: whether a SearchTask accepts the target.
    default_arch: the architecture if none is requested and there is no local device.

    >>> target = strata.targets.target_named("llvm")
    >>> target.name, target.family, target.texts
    ('cpu', 'cpu', ('llvm', 'asm'))
    """

    name: ClassVar[str]
    family: ClassVar[str]
    texts: ClassVar[tuple[str, ...]]
    suffixes: ClassVar[Mapping[str, str]] = {}
    library_suffixes: ClassVar[tuple[str, ...]] = ()
    passes: ClassVar[Mapping[str, str]] = {}
    refusal: ClassVar[str] = ""
    in_units: ClassVar[bool] = False
    program_kind: ClassVar[type | None] = None
    alignment: ClassVar[int] = 1
    takes_threads: ClassVar[bool] = False
    takes_constants: ClassVar[bool] = False
    takes_databases: ClassVar[bool] = False
    is_tuned: ClassVar[bool] = True
    default_arch: ClassVar[str] = ""

    @abstractmethod
    def machine(self, arch: str) -> Machine | Gpu:
        """Return the machine model of an architecture. Raises TargetError for an unknown one."""

    @abstractmethod
    def local_device(self) -> Device | None:
        """Return the device of this target on this computer; None if there is none."""

    def make_kernel(
        self, module: ModuleOp, host: FuncOp, arguments: Sequence[Argument], policy: str, arch: str
    ) -> AnyKernel:
        """Compile the host function of a module that `passes` have lowered, with a floating-point policy, for an
        architecture. `arguments`: the kernel's, of the host function. Raises LoweringError for an op that the target
        lacks, TargetError for a feature that the architecture lacks, and here NotImplementedError, for targets whose
        programs are compiled in units."""
        raise NotImplementedError(f"programs for {self.name} are compiled in units")

    def join(self, main: Main, parts: JoinedParts, arch: str) -> AnyProgram:
        """Return the program that runs the kernels of functions in the order in which main calls them. parts: the
        functions and their kernels. arch: the architecture of the kernels. Raises NotImplementedError here, for targets
        whose `program_kind` is None."""
        raise NotImplementedError(f"programs for {self.name} are compiled as one function")

    def text(self, kernel: AnyKernel, name: str) -> str:
        """Return the text `name`, one of `texts`, of a kernel; here a kernel's only text, whatever the name."""
        return str(kernel.text)

    def threads(self, requested: object) -> int:
        """Return the thread count of parallel loops for a requested count or None; here 1, whatever is requested.
        Raises TargetError for a count that the target refuses."""
        return 1

    def is_local(self, arch: str) -> bool:
        """Return whether code for an architecture runs on this computer."""
        local = self.local_device()
        return local is not None and local.arch == arch

    def arch(self, requested: str | None = None) -> str:
        """Return the architecture of a task: the requested one, else that of the local device, else the default."""
        if requested is not None:
            return requested
        local = self.local_device()
        return self.default_arch if local is None else local.arch

    def device(self, machine: Machine | Gpu, arch: str) -> str | None:
        """Return the name of the device that times code for an architecture; None if there is none here, so that times
        are estimates. `machine` is ignored here."""
        local = self.local_device()
        return local.name if local is not None and local.arch == arch else None

    def check(self, threads: object, constants: object) -> None:
        """Raise TargetError for `threads` or `constants`, arguments of `build`, if they are not None and the target has
        no use for them."""
        refused = ["threads"] if threads is not None and not self.takes_threads else []
        refused += ["constants"] if constants is not None and not self.takes_constants else []
        if refused:
            raise TargetError(f"{' and '.join(refused)} are the CPU's, not {self.name}'s")

    def checked_machine(self, machine: object, arch: str) -> Machine | Gpu:
        """Return the requested machine, or the model of the architecture for None. Raises InputError for an object that
        is no machine of this target's family, and TargetError for an unknown architecture."""
        default = self.machine(arch)
        if machine is None:
            return default
        if not isinstance(machine, type(default)):
            raise InputError(f"the machine is {short(machine)}, expected {type(default).__name__}")
        return machine
