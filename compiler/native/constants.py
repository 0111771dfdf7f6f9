"""Where constants stand, and what is run once to prepare them."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from compiler.interpret.numbers import Array, dtype_of
from compiler.native.unit import Code, Unit
from compiler.program.main import Call, Copy, Main, Step, placed, size
from compiler.program.names import Names
from compiler.program.tree import Buffer
from compiler.targets.address import address
from compiler.targets.arena import arena
from compiler.targets.cpu.compile import Loaded


@dataclass(frozen=True)
class Preparation:
    """A call that is run once: its native function, and the names of what it reads and of what it fills."""

    code: Code
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class Preparing:
    """The calls of main become calls of units; what these prepare of equal constants is prepared once."""

    def __init__(self, main: Main, rest: Main, stands: Mapping[str, str]) -> None:
        """`rest` is main without what runs once, `stands` the buffers that stand in the place of others."""
        self.main = main
        self.preparations: list[Preparation] = []
        self.filled: dict[str, Buffer] = {}
        self._names = Names({**main.buffers, **rest.buffers})
        self._stands = stands
        self._made: dict[tuple[str, tuple[str, ...]], tuple[str, ...]] = {}

    def run_before(self, call: Call, unit: Unit) -> None:
        """A call that reads constants alone."""
        for name in call.outputs:
            self.filled[name] = self.main.buffers[name]
        inputs = self.step(call, unit).inputs
        self.preparations.append(Preparation(unit.call, inputs, call.outputs))

    def step(self, call: Call, unit: Unit) -> Call:
        """A call as it stands in main, where its unit prepares what depends on constants alone."""
        prepared = self._prepared(call, unit) if unit.prepare is not None else ()
        inputs = (self._place(call.inputs[n]) for n in unit.takes)
        return Call(unit.call.name, (*inputs, *prepared), tuple(map(self._place, call.outputs)))

    def copy(self, copy: Copy) -> Copy:
        """A copy as it stands in main."""
        return Copy(self._place(copy.source), self._place(copy.target))

    def _place(self, name: str) -> str:
        return self._stands.get(name, name)

    def _prepared(self, call: Call, unit: Unit) -> tuple[str, ...]:
        assert unit.prepare is not None
        inputs = tuple(call.inputs[n] for n in unit.prepares)
        key = (unit.prepare.symbol, inputs)
        if key not in self._made:
            buffers = [replace(buffer, name=self._names.fresh(buffer.name)) for buffer in unit.prepared]
            self.filled |= {buffer.name: buffer for buffer in buffers}
            self._made[key] = tuple(buffer.name for buffer in buffers)
            self.preparations.append(Preparation(unit.prepare, inputs, self._made[key]))
        return self._made[key]


def complete(main: Main, steps: Sequence[Step], constants: Mapping[str, Buffer]) -> Main:
    """Main with other steps and the constants that these read; without elements, and temporaries that no step has."""
    used = {name for step in steps for name in (*step.reads, *step.writes)}
    used |= {main.wholes[name] for name in used & main.wholes.keys()}
    temporaries = tuple(buffer for buffer in main.temporaries if buffer.name in used)
    changed = replace(main, temporaries=temporaries, steps=tuple(steps), elements={})
    return placed(changed, constants.values())


def filled(
    main: Main,
    preparations: Sequence[Preparation],
    buffers: Mapping[str, Buffer],
    given: Mapping[str, Array],
    library: Loaded,
    threads: int,
) -> Array:
    """The block of constants of main, by the arrays that are given and what is prepared of them.

    `buffers` are what preparations fill; what main does not read of it ends with this call.
    """
    block = arena(main.constant_bytes)[: main.constant_bytes]
    arrays = dict(given)
    for constant in main.constants:
        stretch = block[constant.offset : constant.offset + size(constant.buffer)]
        array = stretch.view(dtype_of(constant.buffer.element)).reshape(constant.buffer.shape)
        if constant.buffer.name in given:
            array[...] = given[constant.buffer.name]
        arrays[constant.buffer.name] = array
    scratch = arena(max((p.code.workspace.size(threads) for p in preparations), default=0))
    for preparation in preparations:
        for name in preparation.outputs:
            if name not in arrays:
                arrays[name] = arena(size(buffers[name]))
        addresses = [address(arrays[name]) for name in (*preparation.inputs, *preparation.outputs)]
        _run(preparation.code, [*addresses, address(scratch)], library, threads)
    block.flags.writeable = False
    return block


def _run(code: Code, pointers: Sequence[int], library: Loaded, threads: int) -> None:
    count = [ctypes.c_int32] if code.parallel else []
    native = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(pointers), *count)(library.address(code.symbol))
    native(*pointers, *([threads] if code.parallel else []))
