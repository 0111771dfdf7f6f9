"""The layout of constants, and the calls that run once to prepare them."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from compiler.dialects.numbers import Array, dtype_of
from compiler.driver.units.unit import Code, Unit
from compiler.graph.main import Call, Constant, Copy, Main, Step, placed, size
from compiler.program.names import Names
from compiler.program.tree import Buffer
from compiler.targets.address import address
from compiler.targets.arena import Allocate, arena
from compiler.targets.cpu.compile import Loaded
from compiler.targets.cpu.kernel import Interface


@dataclass(frozen=True)
class Preparation:
    """A call that runs once: its native function, and the names of the buffers that it reads and writes."""

    interface: Interface
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class ConstantBlock:
    """The block of constants of main: where each stands in it, its bytes, what is run once to fill it, and the buffers
    that this fills."""

    constants: tuple[Constant, ...]
    bytes: int
    preparations: tuple[Preparation, ...]
    filled: Mapping[str, Buffer]


class Preparing:
    """The calls of main become calls of units; what these prepare of equal constants is prepared once."""

    def __init__(self, main: Main, remaining: Main, stands: Mapping[str, str]) -> None:
        """`remaining` is main without what runs once, `stands` the buffers that stand in the place of others."""
        self.main = main
        self.preparations: list[Preparation] = []
        self.filled: dict[str, Buffer] = {}
        self._names = Names({**main.buffers, **remaining.buffers})
        self._stands = stands
        self._made: dict[tuple[str, tuple[str, ...]], tuple[str, ...]] = {}

    def run_before(self, call: Call, unit: Unit) -> None:
        """A call that reads constants alone."""
        for name in call.outputs:
            self.filled[name] = self.main.buffers[name]
        inputs = self.step(call, unit).inputs
        self._prepare(unit.call, inputs, call.outputs)

    def step(self, call: Call, unit: Unit) -> Call:
        """A call as it stands in main, where its unit prepares what depends on constants alone."""
        prepared = self._prepared(call, unit) if unit.prepare is not None else ()
        inputs = (self._place(call.inputs[n]) for n in unit.takes)
        skips = call.guarded is not None and (call.guarded.value, 0) in unit.shared
        unless = self._place(call.inputs[call.guarded.guard]) if call.guarded and skips else ""
        return Call(unit.call.name, (*inputs, *prepared), tuple(map(self._place, call.outputs)), unless=unless)

    def copy(self, copy: Copy) -> Copy:
        """A copy as it stands in main."""
        return Copy(self._place(copy.source), self._place(copy.target))

    def _place(self, name: str) -> str:
        return self._stands.get(name, name)

    def _prepared(self, call: Call, unit: Unit) -> tuple[str, ...]:
        assert unit.prepare is not None
        inputs = tuple(call.inputs[n] for n in unit.prepares)
        key = (unit.prepare.interface.name, inputs)
        if key not in self._made:
            buffers = [replace(buffer, name=self._names.fresh(buffer.name)) for buffer in unit.prepared]
            self.filled |= {buffer.name: buffer for buffer in buffers}
            self._made[key] = tuple(buffer.name for buffer in buffers)
            self._prepare(unit.prepare, inputs, self._made[key])
        return self._made[key]

    def _prepare(self, code: Code, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> None:
        self.preparations.append(Preparation(code.interface, inputs, outputs))


def complete(main: Main, steps: Sequence[Step], constants: Mapping[str, Buffer]) -> Main:
    """Main with other steps and the constants that these read; without elements, and temporaries that no step has."""
    used = {name for step in steps for name in (*step.reads, *step.writes)}
    used |= {main.wholes[name] for name in used & main.wholes.keys()}
    temporaries = tuple(buffer for buffer in main.temporaries if buffer.name in used)
    changed = replace(main, temporaries=temporaries, steps=tuple(steps), elements={})
    return placed(changed, constants.values())


def fill(
    block: ConstantBlock, given: Mapping[str, Array], library: Loaded, threads: int, allocate: Allocate = arena
) -> Array:
    """The memory of a block of constants, by the arrays that are given and what is prepared of them.

    What is prepared and main does not read ends with this call.
    """
    memory = allocate(block.bytes)[: block.bytes]
    arrays = dict(given)
    for constant in block.constants:
        stretch = memory[constant.offset : constant.offset + size(constant.buffer)]
        array = stretch.view(dtype_of(constant.buffer.element)).reshape(constant.buffer.shape)
        if constant.buffer.name in given:
            array[...] = given[constant.buffer.name]
        arrays[constant.buffer.name] = array
    scratch = arena(max((p.interface.workspace.size(threads) for p in block.preparations), default=0))
    for preparation in block.preparations:
        for name in preparation.outputs:
            if name not in arrays:
                arrays[name] = arena(size(block.filled[name]))
        addresses = [address(arrays[name]) for name in (*preparation.inputs, *preparation.outputs)]
        _run(preparation, [*addresses, address(scratch)], library, threads)
    memory.flags.writeable = False
    return memory


def _run(preparation: Preparation, pointers: Sequence[int], library: Loaded, threads: int) -> None:
    face = preparation.interface
    count = [] if face.threads is None else [ctypes.c_int32]
    native = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(pointers), *count)(library.address(face.name))
    native(*pointers, *([threads] if count else []))
