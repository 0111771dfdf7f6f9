"""A host function's kernels as CUDA C++, and how they are launched."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from compiler.support.errors import TargetError
from compiler.targets.cuda.constants import declarations
from compiler.targets.cuda.helpers import NEEDS, defined
from compiler.targets.cuda.machines import limits
from compiler.targets.cuda.writer import CudaWriter
from compiler.targets.launches import Extents, check_launch, globals_of, launches, shared_bytes


@dataclass(frozen=True)
class Launch:
    """How a kernel of the text is started: its name, its extents, bytes of dynamic shared memory, and its arguments in
    order: positions of the host function's arguments, and beyond them those of its temporaries. `declared_bytes` of
    shared memory are in the text."""

    name: str
    grid: Extents
    block: Extents
    shared_bytes: int
    arguments: tuple[int, ...]
    declared_bytes: int = 0


@dataclass(frozen=True)
class CudaSource:
    """The text of a host function's kernels, and how they are launched, in order; `temporaries` are the element type
    and the shape of each buffer that kernels hand on. `needs` are the first architectures that have what it uses."""

    text: str
    launches: tuple[Launch, ...]
    temporaries: tuple[tuple[Attribute, tuple[int, ...]], ...]
    needs: Mapping[str, str] = field(default_factory=dict)

    def check(self, arch: str) -> None:
        """Raise TargetError for an architecture that lacks a feature of the text, or does not take the launches."""
        for launch in self.launches:
            check_launch(
                launch.name, launch.grid, launch.block, launch.shared_bytes + launch.declared_bytes, limits(arch)
            )
        for what, first in self.needs.items():
            if arch.removeprefix("sm_").isdigit() and int(arch[3:]) < int(first[3:]):
                raise TargetError(f"{arch} has no {what}: that begins with {first}")


def emit(module: ModuleOp, host: FuncOp) -> CudaSource:
    """The CUDA C++ of the kernels that a host function launches. Raises LoweringError for an op without a spelling."""
    program = launches(module, host)
    places = {value: number for number, value in enumerate((*program.arguments, *program.temporaries))}
    written: dict[str, str] = {}
    helpers: set[str] = set()
    emitted = []
    for call in program.calls:
        name = call.kernel.sym_name.data
        writer = CudaWriter(call, helpers)
        written[name] = writer.kernel()
        arguments = tuple(places[v] for v in call.operands)
        declared = shared_bytes(call.kernel) - writer.dynamic
        emitted.append(Launch(name, call.grid, call.block, writer.dynamic, arguments, declared))
    shapes = tuple((type_.element_type, type_.get_shape()) for type_ in map(program.type_of, program.temporaries))
    needs = {what: first for name, (what, first) in NEEDS.items() if name in helpers}
    texts = [*declarations(globals_of(module)), *written.values()]
    return CudaSource(_file(texts, helpers), tuple(emitted), shapes, needs)


def _file(texts: Sequence[str], helpers: set[str]) -> str:
    head = []
    for name, bits in (("INFINITY", "0x7f800000"), ("NAN", "0x7fffffff")):
        if any(re.search(rf"\b{name}\b", text) for text in texts):
            head.append(f"#ifndef {name}\n#define {name} __int_as_float({bits})\n#endif")
    if any("__half" in text for text in texts):
        head.append("#include <cuda_fp16.h>")
    if any("__nv_bfloat16" in text for text in texts):
        head.append("#include <cuda_bf16.h>")
    head += defined(helpers)
    return "\n\n".join([*(["\n".join(head)] if head else []), *texts]) + "\n"
