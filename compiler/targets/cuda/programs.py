"""`CudaProgram`: the kernels of a program as data; `join`: those of a program of functions, of the kernels of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from compiler.graph.main import BufferCall, Main
from compiler.program.tree import Buffer
from compiler.targets.arguments import Argument, Array, argument_dtype
from compiler.targets.cuda.emit import CudaSource, DeviceTemporary, Launch, planned
from compiler.targets.cuda.kernel import CudaKernel
from compiler.targets.groups import GroupFacts
from compiler.targets.target import JoinedParts
from compiler.types.elements import is_unsigned


@dataclass(frozen=True)
class CudaProgram:
    """The kernels of a program without the arrays of its constants, so that it can be cached. arguments: inputs,
    constants, results; outputs: the number of results. constants: positions of constants among the arguments. groups:
    the facts of each group."""

    name: str
    arguments: tuple[Argument, ...]
    outputs: int
    constants: tuple[int, ...]
    source: CudaSource
    policy: str
    arch: str
    groups: tuple[GroupFacts, ...] = ()

    def kernel(self, arrays: Mapping[str, Array]) -> CudaKernel:
        """Return the kernel with the constants bound to `arrays`, which has them all by the names of their
        arguments."""
        fixed = {n: arrays[self.arguments[n].name] for n in self.constants}
        inputs_and_outputs = tuple(a for n, a in enumerate(self.arguments) if n not in fixed)
        settings = (self.source, self.policy, self.arch)
        return CudaKernel(self.name, inputs_and_outputs, self.outputs, *settings, fixed, self.arguments, self.groups)


def join(main: Main, parts: JoinedParts, arch: str) -> CudaProgram:
    """Return the program, for the architecture `arch`, that launches the kernels of functions in the order of main's
    calls; the launches on constants only, `parts.before`, are its preparation. `parts.kernels`, which is not empty, has
    kernels of one policy."""
    arguments = (*main.inputs, *parts.constants, *main.results)
    positions = {buffer.name: n for n, buffer in enumerate((*arguments, *parts.prepared, *main.temporaries))}
    joined = _Joined(main, parts, positions)
    before = joined.begun([launch for call in parts.before for launch in joined.launches(call)])
    launches = joined.begun([launch for call in main.calls for launch in joined.launches(call)])
    first = len(arguments) + len(parts.prepared)
    temporaries, size = planned(joined.temporaries, [*before, *launches], first)
    sources = [kernel.source for kernel in parts.kernels.values()]
    source = CudaSource(
        tuple(part for source in sources for part in source.parts),
        tuple(sorted({helper for source in sources for helper in source.helpers})),
        tuple(launches),
        temporaries,
        size,
        tuple(sorted(joined.written)),
        tuple(before),
        tuple(_temporary(buffer) for buffer in parts.prepared),
        joined.begin,
    )
    policy = next(iter(parts.kernels.values())).policy
    constants = tuple(range(len(main.inputs), len(main.inputs) + len(parts.constants)))
    groups = tuple(parts.groups)
    return CudaProgram(
        main.name, tuple(map(_argument, arguments)), main.outputs, constants, source, policy, arch, groups
    )


class _Joined:
    """The launches of main's calls, with positions among the buffers of the joined program."""

    def __init__(self, main: Main, parts: JoinedParts, positions: Mapping[str, int]) -> None:
        """Begin with the positions of buffers by name. Views are appended here, kernels' temporaries by `launches`."""
        self._kernels, self._positions = parts.kernels, dict(positions)
        self.temporaries = [_temporary(buffer) for buffer in main.temporaries]
        self.written: set[int] = set()
        self.begin = ""
        self._counters, self._beginning = self._largest_counters()
        for view in main.views:
            self._add(view.buffer.name, replace(_temporary(view.buffer), offset=view.offset, base=positions[view.base]))

    def _add(self, name: str, temporary: DeviceTemporary) -> int:
        self._positions[name] = len(self._positions)
        self.temporaries.append(temporary)
        return self._positions[name]

    def _largest_counters(self) -> tuple[int, Launch | None]:
        """Add the counters of all kernels, which leave them at zero: those of the kernel with the most. Return their
        position, and the launch that sets them to zero; (0, None) if nothing arrives."""
        sources = [kernel.source for kernel in self._kernels.values() if kernel.source.begin]
        if not sources:
            return 0, None
        most = max(sources, key=lambda source: max(t.size for t in source.temporaries if t.counts))
        self.begin = most.begin
        position = self._add(".arrivals", next(t for t in most.temporaries if t.counts))
        (launch,) = (launch for launch in most.launches if launch.begins)
        return position, replace(launch, arguments=(position,))

    def begun(self, launches: list[Launch]) -> list[Launch]:
        """Return launches after the one that sets counters to zero, if any of them counts arrivals."""
        if self._beginning is None or all(self._counters not in launch.arguments for launch in launches):
            return launches
        return [self._beginning, *launches]

    def launches(self, call: BufferCall) -> list[Launch]:
        """Return the launches of a call. Its kernels' own temporaries become temporaries of the program, but for
        counters of arrivals, which all kernels share."""
        source = self._kernels[call.callee].source
        buffers = [self._positions[name] for name in (*call.inputs, *call.outputs)]
        for temporary in source.temporaries:
            name = f"{call.callee}.{len(self._positions)}"
            buffers.append(self._counters if temporary.counts else self._add(name, temporary))
        self.written |= {buffers[n] for n in source.written}
        own = [launch for launch in source.launches if not launch.begins]
        return [replace(launch, arguments=tuple(buffers[n] for n in launch.arguments)) for launch in own]


def _argument(buffer: Buffer) -> Argument:
    return Argument(buffer.name, buffer.shape, argument_dtype(buffer.element, is_unsigned(buffer.element)))


def _temporary(buffer: Buffer) -> DeviceTemporary:
    return DeviceTemporary(buffer.name, buffer.scalar, buffer.shape)
