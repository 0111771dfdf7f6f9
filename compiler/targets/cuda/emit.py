"""The kernels of a host function as CUDA C++, and their launches."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue

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


@dataclass(frozen=True)
class Launch:
    """The launch of a kernel of the text.

    name: of the kernel. grid, block: extents along x, y and z. shared_bytes: of dynamic shared memory, without the
    declared_bytes that the text declares. arguments: positions in the list of the host function's arguments and
    temporaries, `CudaKernel.buffers`.
    """

    name: str
    grid: Extents
    block: Extents
    shared_bytes: int
    arguments: tuple[int, ...]
    declared_bytes: int = 0


@dataclass(frozen=True)
class DeviceTemporary:
    """A buffer between kernels: its name in the program, element type and shape."""

    name: str
    element: Attribute
    shape: tuple[int, ...]


@dataclass(frozen=True)
class CudaSource:
    """The text of a host function's kernels, and their launches in order.

    temporaries: the buffers between kernels. needs: features that the text uses, with the first architecture of each.
    written: positions of the buffers that the kernels write, as in `Launch.arguments`.
    """

    text: str
    launches: tuple[Launch, ...]
    temporaries: tuple[DeviceTemporary, ...]
    needs: Mapping[str, str] = field(default_factory=dict)
    written: frozenset[int] = frozenset()

    def takes(self, arch: str) -> bool:
        """Return whether an architecture has all features of the text and takes the launches."""
        try:
            self.check(arch)
        except TargetError:
            return False
        return True

    def check(self, arch: str) -> None:
        """Raise TargetError for an architecture that lacks a feature of the text or does not take the launches."""
        for launch in self.launches:
            check_launch(
                launch.name, launch.grid, launch.block, launch.shared_bytes + launch.declared_bytes, launch_limits(arch)
            )
        for feature, first_arch in self.needs.items():
            if arch.removeprefix("sm_").isdigit() and int(arch[3:]) < int(first_arch[3:]):
                raise TargetError(f"{arch} has no {feature}: that begins with {first_arch}")


def emit(module: ModuleOp, host: FuncOp) -> CudaSource:
    """Write the kernels that a host function launches. Raises LoweringError for an op that CUDA C++ lacks."""
    program = read_host_function(module, host)
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
        emitted_launches.append(Launch(name, call.grid, call.block, writer.dynamic, arguments, declared_bytes))
    needs = {feature: first_arch for name, (feature, first_arch) in FIRST_ARCH.items() if name in helpers}
    texts = [*declarations(constant_globals(module)), *kernel_texts.values()]
    text, temporaries = _file(texts, helpers), tuple(_temporary(program, value) for value in program.temporaries)
    return CudaSource(text, tuple(emitted_launches), temporaries, needs, frozenset(written))


def _temporary(program: HostFunction, value: SSAValue) -> DeviceTemporary:
    type_ = program.type_of(value)
    return DeviceTemporary(value.name_hint or "temporary", type_.element_type, type_.get_shape())


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
