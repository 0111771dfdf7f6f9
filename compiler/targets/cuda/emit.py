"""The kernels of a host function as CUDA C++, and their launches."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from compiler.analysis.arena import Lifetime, plan
from compiler.dialects.grid import ARRIVALS
from compiler.support.errors import TargetError
from compiler.targets.cuda.constants import declarations
from compiler.targets.cuda.helpers import FIRST_ARCH, definitions
from compiler.targets.cuda.machines import launch_limits
from compiler.targets.cuda.writer import CudaWriter
from compiler.targets.launches import (
    Extents,
    HostFunction,
    check_launch,
    constant_globals,
    read_host_function,
    shared_bytes,
    stored_buffers,
)
from compiler.types.elements import element_bytes

SLOT = 256
"""The bytes to whose multiples the offsets of temporaries are padded: the alignment of cudaMalloc."""
WORKSPACE = -1
"""The base of a temporary that is in the workspace."""


@dataclass(frozen=True)
class Launch:
    """A launch of the kernel `name`. grid, block: extents along x, y and z. shared_bytes: of dynamic shared memory;
    declared_bytes: of shared memory that the kernel's text declares. arguments: positions of buffers, counted as in
    `CudaSource`: the program's arguments, then prepared buffers, then temporaries."""

    name: str
    grid: Extents
    block: Extents
    shared_bytes: int
    arguments: tuple[int, ...]
    declared_bytes: int = 0
    begins: bool = field(default=False, repr=False)
    """Whether it sets the counters of arrivals to zero, before all others."""


@dataclass(frozen=True)
class DeviceTemporary:
    """A buffer between kernels: its name in the program, element type and shape. It begins `offset` bytes into the
    workspace (`base` WORKSPACE), or, as a view, into the buffer at the position `base`."""

    name: str
    element: Attribute
    shape: tuple[int, ...]
    offset: int = 0
    base: int = WORKSPACE
    counts: bool = False
    """Whether it has the counters of arrivals, which are zero between kernels."""

    @property
    def size(self) -> int:
        """The size in bytes."""
        return prod(self.shape) * element_bytes(self.element)


@dataclass(frozen=True)
class CudaSource:
    """The texts of the kernels of a program, and their launches.

    parts: declarations of constants, then kernels. helpers: names of the device functions that they call. launches: of
    each call, in order. temporaries: buffers between kernels, in a workspace of `workspace_bytes`. written: positions
    of the buffers that launches write. preparation: launches that run once, to fill `prepared`, the buffers that depend
    on constants only.

    Positions of buffers count the arguments of the program, then `prepared`, then `temporaries`.
    """

    parts: tuple[str, ...]
    helpers: tuple[str, ...]
    launches: tuple[Launch, ...]
    temporaries: tuple[DeviceTemporary, ...]
    workspace_bytes: int
    written: tuple[int, ...] = ()
    preparation: tuple[Launch, ...] = ()
    prepared: tuple[DeviceTemporary, ...] = ()
    begin: str = ""
    """The text of the kernel that sets counters of arrivals to zero; empty if nothing arrives."""

    @cached_property
    def text(self) -> str:
        """The CUDA C++ of the kernels."""
        return _file([*([self.begin] if self.begin else []), *self.parts], set(self.helpers))

    @property
    def needs(self) -> Mapping[str, str]:
        """The features that the text requires, each with the first architecture that has it."""
        return {feature: first_arch for name, (feature, first_arch) in FIRST_ARCH.items() if name in self.helpers}

    @property
    def all_launches(self) -> tuple[Launch, ...]:
        """The launches of the preparation, then those of each call."""
        return (*self.preparation, *self.launches)

    def takes(self, arch: str) -> bool:
        """Return whether an architecture, such as sm_80, has the features of the text and takes the launches."""
        try:
            self.check(arch)
        except TargetError:
            return False
        return True

    def check(self, arch: str) -> None:
        """Raise TargetError for an architecture that lacks a feature of the text or whose limits a launch exceeds; an
        unknown one has the most permissive limits, and a name without a number all features."""
        for launch in self.all_launches:
            check_launch(
                launch.name, launch.grid, launch.block, launch.shared_bytes + launch.declared_bytes, launch_limits(arch)
            )
        for feature, first_arch in self.needs.items():
            if arch.removeprefix("sm_").isdigit() and int(arch[3:]) < int(first_arch[3:]):
                raise TargetError(f"{arch} has no {feature}: that begins with {first_arch}")


def emit(module: ModuleOp, host: FuncOp) -> CudaSource:
    """Write the kernels that a host function launches. Each kernel is written once. Raises LoweringError for an op that
    CUDA C++ lacks, InputError for a host function with other ops than allocations and launches of constant extents."""
    program = read_host_function(module, host)
    first = len(program.arguments)
    positions = {value: number for number, value in enumerate((*program.arguments, *program.temporaries))}
    kernel_texts: dict[str, str] = {}
    helpers: set[str] = set()
    emitted_launches = []
    written: set[int] = set()
    for call in program.launches:
        name = call.kernel.sym_name.data
        writer = CudaWriter(call, helpers)
        kernel_texts[name] = writer.kernel()
        arguments = tuple(positions[v] for v in call.operands)
        stored = stored_buffers(call.kernel)
        parameters = call.kernel.body.block.args
        written |= {n for n, parameter in zip(arguments, parameters, strict=True) if parameter in stored}
        declared_bytes = shared_bytes(call.kernel) - writer.dynamic
        begins = ARRIVALS in call.kernel.attributes
        launch = Launch(name, call.grid, call.block, writer.dynamic, arguments, declared_bytes, begins)
        emitted_launches.append(launch)
    begin = "".join(kernel_texts.pop(launch.name) for launch in emitted_launches if launch.begins)
    parts = (*declarations(constant_globals(module)), *kernel_texts.values())
    temporaries, size = planned([_temporary(program, value) for value in program.temporaries], emitted_launches, first)
    launches = tuple(emitted_launches)
    names = tuple(sorted(helpers))
    return CudaSource(parts, names, launches, temporaries, size, tuple(sorted(written)), begin=begin)


def planned(
    temporaries: Sequence[DeviceTemporary], launches: Sequence[Launch], first: int
) -> tuple[tuple[DeviceTemporary, ...], int]:
    """Plan the memory of temporaries, whose positions begin at `first`: those whose lifetimes, from the first launch
    that takes them to the last, do not meet may overlap. Return them with their offsets in a workspace, those of views
    unchanged, and the size of the workspace in bytes. A temporary that no launch takes stays unchanged."""
    uses: dict[int, list[int]] = {}
    for step, launch in enumerate(launches):
        for position in launch.arguments:
            while position >= first:  # a view keeps the memory of its base alive
                uses.setdefault(position, []).append(step)
                position = temporaries[position - first].base
    owners = [n for n, temporary in enumerate(temporaries) if temporary.base == WORKSPACE and first + n in uses]
    lifetimes = [Lifetime(temporaries[n].size, uses[first + n][0], uses[first + n][-1]) for n in owners]
    arena = plan(lifetimes, SLOT)
    offsets = dict(zip(owners, arena.offsets, strict=True))
    return tuple(replace(t, offset=offsets.get(n, t.offset)) for n, t in enumerate(temporaries)), arena.size


def _temporary(program: HostFunction, value: SSAValue) -> DeviceTemporary:
    type_ = program.type_of(value)
    counts = isinstance(value.owner, Operation) and ARRIVALS in value.owner.attributes
    return DeviceTemporary(value.name_hint or "temporary", type_.element_type, type_.get_shape(), counts=counts)


def _file(texts: Sequence[str], helpers: set[str]) -> str:
    prelude = []
    for name, bits in (("INFINITY", "0x7f800000"), ("NAN", "0x7fffffff")):
        if any(re.search(rf"\b{name}\b", text) for text in texts):
            prelude.append(f"#ifndef {name}\n#define {name} __int_as_float({bits})\n#endif")
    if any("__half" in text for text in texts):
        prelude.append("#include <cuda_fp16.h>")
    if any("__nv_bfloat16" in text for text in texts):
        prelude.append("#include <cuda_bf16.h>")
    prelude += definitions(helpers)
    return "\n\n".join([*(["\n".join(prelude)] if prelude else []), *texts]) + "\n"
