"""A host function's kernels as CUDA C++, and how they are launched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from compiler.errors import LoweringError
from compiler.targets.cuda.operations import COPIES, HELPERS
from compiler.targets.cuda.writer import Writer
from compiler.targets.launches import Extents, launches

THREADS = 1024
"""The most threads of a block."""


@dataclass(frozen=True)
class Launch:
    """How a kernel of the text is started: its name, its extents, bytes of dynamic shared memory, and its arguments in
    order: positions of the host function's arguments, and beyond them those of its temporaries."""

    name: str
    grid: Extents
    block: Extents
    shared_bytes: int
    arguments: tuple[int, ...]


@dataclass(frozen=True)
class Source:
    """The text of a host function's kernels, and how they are launched, in order; `temporaries` are the element type
    and the shape of each buffer that kernels hand on."""

    text: str
    launches: tuple[Launch, ...]
    temporaries: tuple[tuple[Attribute, tuple[int, ...]], ...]


def emit(module: ModuleOp, host: FuncOp) -> Source:
    """The CUDA C++ of the kernels that a host function launches. Raises LoweringError for what has no spelling, and for
    launches that the hardware does not have."""
    found = launches(module, host)
    places = {value: number for number, value in enumerate((*found.arguments, *found.temporaries))}
    written: dict[str, str] = {}
    helpers: set[str] = set()
    made = []
    for call in found.calls:
        name = call.kernel.sym_name.data
        if prod(call.block) > THREADS:
            raise LoweringError(f"kernel {name} has {prod(call.block)} threads a block, more than {THREADS}")
        writer = Writer(call.kernel, call.grid, call.block, helpers)
        written[name] = writer.text()
        made.append(Launch(name, call.grid, call.block, writer.dynamic, tuple(places[v] for v in call.operands)))
    shapes = tuple((type_.element_type, type_.get_shape()) for type_ in map(found.type_of, found.temporaries))
    return Source(_file(list(written.values()), helpers), tuple(made), shapes)


def _file(texts: Sequence[str], helpers: set[str]) -> str:
    head = []
    if any("INFINITY" in text for text in texts):
        head.append("#ifndef INFINITY\n#define INFINITY __int_as_float(0x7f800000)\n#endif")
    if any("__half" in text for text in texts):
        head.append("#include <cuda_fp16.h>")
    if any("__nv_bfloat16" in text for text in texts):
        head.append("#include <cuda_bf16.h>")
    head += [COPIES[name] for name in COPIES if name in helpers]
    for name in sorted(helpers - COPIES.keys()):
        head.append(f"template <class T> __device__ __forceinline__ T {name}(T a, T b) {{ return {HELPERS[name]}; }}")
    return "\n\n".join([*(["\n".join(head)] if head else []), *texts]) + "\n"
