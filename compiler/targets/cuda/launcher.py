"""A launcher in C behind the kernels of a `.cu` file: it checks its arguments and launches the kernels on a stream."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from compiler.targets.cuda.emit import Launch
from compiler.targets.cuda.interface import PREPARED, STATUSES, WORKSPACE, DeviceBuffer, HostInterface
from compiler.types.dtypes import DTYPES

WIDTH = 120
_DYNAMIC = "cudaFuncAttributeMaxDynamicSharedMemorySize"
_C = {row.numpy: row.c for row in DTYPES.values()}
"""Map numpy's names of dtypes to types of C++."""
_CHECKS = """\
  const void* const arrays[] = {{{arrays}}};
  for (const void* array : arrays) {{
    if (array == nullptr) return {symbol}_NULL;
    if (reinterpret_cast<uintptr_t>(array) % {alignment} != 0) return {symbol}_MISALIGNED;
  }}"""


def file_text(interface: HostInterface, kernels: str) -> str:
    """Return the text of a `.cu` file: a comment, the kernels, and a launcher in C, which NVRTC skips."""
    launcher = "\n".join(_launcher(interface))
    guarded = f"#ifndef __CUDACC_RTC__\n#include <cuda_runtime.h>\n#include <stdint.h>\n\n{launcher}\n#endif\n"
    return "\n\n".join(["\n".join(_comment(interface)), kernels.rstrip("\n"), guarded])


def _comment(interface: HostInterface) -> Iterator[str]:
    symbol, alignment = interface.symbol, interface.alignment
    yield f"/* {symbol}: {symbol}_run launches the kernels in order on a stream, and returns at once."
    yield f" * Arguments on the device, row-major, at multiples of {alignment} bytes; none overlaps a written one:"
    yield from _table(interface.arguments)
    if interface.preparation:
        yield f" * {symbol}_prepare fills, once, {interface.prepared_bytes} bytes at a multiple of {alignment}:"
        yield from _table(interface.prepared)
    if interface.temporaries:
        yield f" * The workspace, {interface.workspace_bytes} bytes at a multiple of {alignment}, has between kernels:"
        yield from _table(interface.temporaries)
    yield " * Launches:"
    for launch in (*interface.preparation, *interface.launches):
        shared = f"{launch.declared_bytes} static and {launch.shared_bytes} dynamic bytes of shared memory"
        yield f" *   {launch.name}: grid {launch.grid}, block {launch.block}, {shared}"
    yield f" * nvcc -arch={interface.architecture} {' '.join(interface.options)} -c"
    yield f" * The least architecture is {interface.least_architecture}. */"


def _table(buffers: Sequence[DeviceBuffer]) -> Iterator[str]:
    width = max(len(buffer.name) for buffer in buffers)
    for buffer in buffers:
        memory = "" if buffer.within in (PREPARED, WORKSPACE) else f" of {buffer.within}"
        role = buffer.role if buffer.within is None else f"at byte {buffer.offset}{memory}"
        extents = f"shape {list(buffer.shape)}, strides {list(buffer.strides)} bytes"
        yield f" *   {buffer.name:{width}}  {buffer.dtype}, {extents}, size {buffer.size}, {role}"


def _launcher(interface: HostInterface) -> Iterator[str]:
    symbol = interface.symbol
    numbers = ", ".join(f"{symbol}_{status} = {-number}" for number, status in enumerate(STATUSES))
    yield "// 0: the kernels are launched; below 0: none is; above 0: a cudaError_t, of the first call that failed"
    yield f"enum {symbol}_status {{ {numbers} }};\n"
    yield f'extern "C" size_t {symbol}_workspace_bytes(void) {{ return {interface.workspace_bytes}; }}\n'
    if interface.preparation:
        yield f'extern "C" size_t {symbol}_prepared_bytes(void) {{ return {interface.prepared_bytes}; }}\n'
        constants = [buffer for buffer in interface.arguments if buffer.role == "constant"]
        yield from _function(interface, "prepare", constants, interface.preparation)
        yield ""
    used = {interface.buffers[n].name for launch in interface.launches for n in launch.arguments}
    taken = [buffer for buffer in interface.arguments if buffer.role != "constant" or buffer.name in used]
    yield from _function(interface, "run", taken, interface.launches)


def _function(
    interface: HostInterface, name: str, arguments: Sequence[DeviceBuffer], launches: Sequence[Launch]
) -> Iterator[str]:
    """Yield the text of the launcher's C function `name`, run or prepare, which checks its arguments, and launches
    kernels on a stream."""
    symbol, sizes = interface.symbol, _memories(interface)
    yield _head(interface, name, arguments)
    checked = [*(buffer.name for buffer in arguments), *(memory for memory, size in sizes.items() if size)]
    yield _CHECKS.format(arrays=", ".join(checked), symbol=symbol, alignment=interface.alignment)
    for memory, size in sizes.items():
        if size:
            yield f"  if ({memory}_bytes < {size}) return {symbol}_TOO_SMALL;"
    used = {n for launch in launches for n in launch.arguments}
    yield from map(_declaration, _needed(interface, used))
    for launch in launches:
        if launch.shared_bytes:  # allowed before any kernel is launched, so that none is if the device has less
            yield _or_return(f"cudaFuncSetAttribute({launch.name}, {_DYNAMIC}, {launch.shared_bytes})")
    for launch in launches:
        yield from _launch(launch, [interface.buffers[n].name for n in launch.arguments])
    yield f"  return {symbol}_OK;\n}}"


def _memories(interface: HostInterface) -> dict[str, int]:
    """Return the bytes of each memory that a caller passes beside the arguments: prepared (if any) and workspace."""
    prepared = {PREPARED: interface.prepared_bytes} if interface.preparation else {}
    return prepared | {WORKSPACE: interface.workspace_bytes}


def _needed(interface: HostInterface, used: Collection[int]) -> list[DeviceBuffer]:
    """Return the buffers at the positions `used`, and all buffers that contain them, without arguments, in the order of
    `interface.buffers`."""
    needed = {interface.buffers[n].name for n in used}
    for buffer in reversed(interface.buffers):
        if buffer.name in needed and buffer.within is not None:
            needed.add(buffer.within)
    return [buffer for buffer in interface.buffers if buffer.name in needed and buffer.within is not None]


def _declaration(buffer: DeviceBuffer) -> str:
    type_ = _C[buffer.dtype]
    memory = f"reinterpret_cast<char*>({buffer.within})"
    return f"  {type_}* {buffer.name} = reinterpret_cast<{type_}*>({memory} + {buffer.offset});"


def _head(interface: HostInterface, name: str, arguments: Sequence[DeviceBuffer]) -> str:
    """Return the declarator of the launcher's C function `name`, on one line, or with a line for each parameter."""
    memories = [f"{kind} {n}" for n in _memories(interface) for kind, n in (("void*", n), ("size_t", f"{n}_bytes"))]
    parameters = [*map(_parameter, arguments), *memories, "cudaStream_t stream"]
    start = f'extern "C" int {interface.symbol}_{name}('
    line = f"{start}{', '.join(parameters)}) {{"
    return line if len(line) <= WIDTH else f"{start}\n    " + ",\n    ".join(parameters) + ") {"


def _parameter(buffer: DeviceBuffer) -> str:
    const = "const " if buffer.role in ("input", "constant") else ""
    return f"{const}{_C[buffer.dtype]}* {buffer.name}"


def _launch(launch: Launch, names: Iterable[str]) -> Iterator[str]:
    grid, block = (f"dim3({', '.join(map(str, extents))})" for extents in (launch.grid, launch.block))
    yield f"  {{\n    void* arguments[] = {{{', '.join(f'&{name}' for name in names)}}};"
    call = f"cudaLaunchKernel({launch.name}, {grid}, {block}, arguments, {launch.shared_bytes}, stream)"
    yield f"  {_or_return(call)}\n  }}"


def _or_return(call: str) -> str:
    return f"  if (cudaError_t error = {call}) return error;"
