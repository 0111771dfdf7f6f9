"""`HostInterface`: the facts with which a host in any language launches the kernels of a program."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from math import prod

from compiler.program.names import Names
from compiler.targets.arguments import Argument
from compiler.targets.cuda.emit import SLOT, CudaSource, DeviceTemporary, Launch
from compiler.targets.cuda.machines import MACHINES
from compiler.targets.cuda.names import RESERVED
from compiler.targets.launches import ALIGNMENT
from compiler.types.dtypes import row_of
from compiler.types.elements import element_bytes

FORMAT = 2
"""The number of the format of the JSON text."""
PREPARED, WORKSPACE = "prepared", "workspace"
"""The memories that the caller gives for the buffers that are no arguments."""
STATUSES = ("OK", "NULL", "MISALIGNED", "TOO_SMALL")
"""The statuses of a launcher: 0, -1, -2 and -3, with its prefix; a positive one is a cudaError_t."""
_MEMORIES = ("workspace", "workspace_bytes", "prepared", "prepared_bytes")
_LOCALS = (*_MEMORIES, "stream", "array", "arrays", "arguments", "error", "bytes", "uintptr_t")


@dataclass(frozen=True)
class DeviceBuffer:
    """An array on the device that kernels take, in row-major order.

    name: a C identifier, unique in the program. dtype: numpy's name. strides, size: in bytes. role: input, updated (an
    input that kernels write), constant (a constant argument), output, prepared or temporary. within: None for an
    argument; else the memory that contains the buffer: PREPARED, WORKSPACE, or the name of another buffer. offset:
    bytes into that memory.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    size: int
    role: str
    within: str | None = None
    offset: int = 0


@dataclass(frozen=True)
class HostInterface:
    """The facts that a host in any language needs to launch the kernels of a program.

    symbol: the prefix of the launcher's C functions and statuses. architecture: the one that the kernels are scheduled
    for. least_architecture: the first known one that can run them, `architecture` if none can. options: for the
    compiler. alignment: in bytes, of all arguments and of the workspace. workspace_bytes: for all temporaries;
    prepared_bytes: for prepared buffers. buffers: arguments, prepared buffers, temporaries. launches: of each call;
    preparation: those that run once.
    """

    name: str
    symbol: str
    architecture: str
    least_architecture: str
    options: tuple[str, ...]
    alignment: int
    workspace_bytes: int
    prepared_bytes: int
    buffers: tuple[DeviceBuffer, ...]
    launches: tuple[Launch, ...]
    preparation: tuple[Launch, ...]

    @property
    def arguments(self) -> tuple[DeviceBuffer, ...]:
        """The buffers that a caller passes one by one, in order."""
        return tuple(buffer for buffer in self.buffers if buffer.within is None)

    @property
    def prepared(self) -> tuple[DeviceBuffer, ...]:
        """The buffers that the launches of the preparation fill."""
        return tuple(buffer for buffer in self.buffers if buffer.within == PREPARED)

    @property
    def temporaries(self) -> tuple[DeviceBuffer, ...]:
        """The buffers in the workspace, and those inside other buffers."""
        return tuple(buffer for buffer in self.buffers if buffer.within not in (None, PREPARED))

    def json(self) -> str:
        """Return the facts as JSON, one line for each buffer and launch; launches have the names of their arguments."""
        facts = {"strata": FORMAT, **asdict(self)}
        for launch in (*facts["launches"], *facts["preparation"]):
            launch["arguments"] = [self.buffers[n].name for n in launch["arguments"]]
        return "{\n" + ",\n".join(f'  "{key}": {_json(value)}' for key, value in facts.items()) + "\n}\n"


def _json(value: object) -> str:
    """Return a value as one line of JSON; a tuple that contains dicts as one line for each element."""
    rows = value if isinstance(value, tuple) and any(isinstance(row, dict) for row in value) else ()
    return "[\n" + ",\n".join(f"    {json.dumps(row)}" for row in rows) + "\n  ]" if rows else json.dumps(value)


def host_interface(
    name: str,
    arguments: Sequence[Argument],
    outputs: int,
    constants: Collection[int],
    source: CudaSource,
    architecture: str,
    options: tuple[str, ...],
) -> HostInterface:
    """Return the host interface of the kernels of the program `name`. arguments: of the host function, constants
    included; the last `outputs` are results, and those at the positions `constants` are constants of the program.
    architecture: the one that the kernels are scheduled for. options: for the compiler."""
    kernel_names = {launch.name for launch in source.all_launches}
    symbol = _symbol(name, kernel_names)
    names = Names({*RESERVED, *_LOCALS, *kernel_names, *symbols(symbol)}, "_")
    buffers, first_output = list[DeviceBuffer](), len(arguments) - outputs
    for n, argument in enumerate(arguments):
        role = _role(n, first_output, constants, source.written)
        dtype = argument.dtype
        buffers.append(_buffer(names, argument.name, dtype.name, dtype.itemsize, argument.shape, role))
    buffers += _prepared(names, source)
    prepared_bytes = sum(_padded(buffer.size) for buffer in buffers[len(arguments) :])
    buffers += _temporaries(names, source, buffers)
    least = next(filter(source.takes, MACHINES), architecture)
    return HostInterface(
        name,
        symbol,
        architecture,
        least,
        options,
        ALIGNMENT,
        source.workspace_bytes,
        prepared_bytes,
        tuple(buffers),
        source.launches,
        source.preparation,
    )


def _role(n: int, first_output: int, constants: Collection[int], written: Collection[int]) -> str:
    """Return the role of the argument at position n: input, updated (an input in `written`), constant or output;
    outputs are at `first_output` and behind it."""
    if n >= first_output:
        return "output"
    return "constant" if n in constants else "updated" if n in written else "input"


def _prepared(names: Names, source: CudaSource) -> list[DeviceBuffer]:
    """Return the prepared buffers, consecutive in the memory PREPARED, each padded to a multiple of SLOT."""
    buffers, offset = list[DeviceBuffer](), 0
    for buffer in source.prepared:
        buffers.append(_inner(names, replace(buffer, offset=offset), "prepared", PREPARED))
        offset += _padded(buffers[-1].size)
    return buffers


def _temporaries(names: Names, source: CudaSource, buffers: Sequence[DeviceBuffer]) -> list[DeviceBuffer]:
    """Return the temporaries, at their offsets in the workspace or other buffers; `buffers` come before them."""
    temporaries = list[DeviceBuffer]()
    for temporary in source.temporaries:
        within = WORKSPACE if temporary.base < 0 else [*buffers, *temporaries][temporary.base].name
        temporaries.append(_inner(names, temporary, "temporary", within))
    return temporaries


def _inner(names: Names, buffer: DeviceTemporary, role: str, within: str) -> DeviceBuffer:
    row = row_of(buffer.element)
    assert row is not None  # kernels have been written for it
    itemsize = element_bytes(buffer.element)
    return _buffer(names, buffer.name, row.numpy, itemsize, buffer.shape, role, within, buffer.offset)


def _padded(size: int) -> int:
    return -(-size // SLOT) * SLOT


def _buffer(
    names: Names,
    name: str,
    dtype: str,
    itemsize: int,
    shape: tuple[int, ...],
    role: str,
    within: str | None = None,
    offset: int = 0,
) -> DeviceBuffer:
    """Return a `DeviceBuffer` with a fresh name like `name` and strides in row-major order: (12, 4) for the shape (2,
    3) and an `itemsize` of 4 bytes. The other parameters are its fields."""
    strides = tuple(prod(shape[d + 1 :]) * itemsize for d in range(len(shape)))
    size = prod(shape) * itemsize
    return DeviceBuffer(names.fresh(_identifier(name)), dtype, shape, strides, size, role, within, offset)


def symbols(symbol: str) -> tuple[str, ...]:
    """Return the C names that a launcher may declare, with the prefix `symbol`: functions, status type and statuses;
    those of a preparation also for a program without one."""
    functions = ("run", "prepare", "workspace_bytes", "prepared_bytes")
    return tuple(f"{symbol}_{name}" for name in (*functions, "status", *STATUSES))


def _symbol(name: str, kernel_names: Collection[str]) -> str:
    """Return a C prefix: a program's name with `_` for characters that C identifiers lack, and with `_` appended until
    no symbol of the launcher is a kernel's name."""
    symbol = _identifier(name)
    while not set(symbols(symbol)).isdisjoint(kernel_names):
        symbol += "_"
    return symbol


def _identifier(name: str) -> str:
    identifier = re.sub(r"\W", "_", name, flags=re.ASCII)
    return f"_{identifier}" if re.match(r"\d|__|cuda|$", identifier) or identifier in RESERVED else identifier
