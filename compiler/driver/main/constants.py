"""Main with its constants: their layout, and the calls that run once to prepare them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from compiler.graph.main import BufferCall, BufferCopy, Main, Step, with_constant_offsets
from compiler.program.names import Names
from compiler.program.tree import Buffer


class NamedCode(Protocol):
    """A compiled function."""

    @property
    def name(self) -> str:
        """Its name in the program."""

    @property
    def symbol(self) -> str:
        """Its identity: equal symbols are the same code."""


Code = TypeVar("Code", bound=NamedCode)
UnitCode = TypeVar("UnitCode", bound=NamedCode, covariant=True)


class PreparedUnit(Protocol[UnitCode]):
    """A unit as main calls it; see `Unit` for the fields."""

    @property
    def call(self) -> UnitCode:
        """The function of each call."""

    @property
    def takes(self) -> tuple[int, ...]:
        """The positions of the inputs that it takes."""

    @property
    def prepare(self) -> UnitCode | None:
        """The function that runs once, before all calls; None without one."""

    @property
    def prepares(self) -> tuple[int, ...]:
        """The positions of the inputs that `prepare` reads."""

    @property
    def prepared(self) -> tuple[Buffer, ...]:
        """The buffers that `prepare` fills."""

    @property
    def shared(self) -> tuple[tuple[int, int], ...]:
        """Pairs of positions of an input and an output that must be one array."""


@dataclass(frozen=True)
class CallBefore(Generic[Code]):
    """A call that runs once: its function, and the names of the buffers that it reads and writes."""

    code: Code
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class CallRewriter(Generic[Code]):
    """A rewriter of main's calls to calls of units, which collects the preparations, equal ones once."""

    def __init__(self, main: Main, remaining: Main, coalesced: Mapping[str, str]) -> None:
        """remaining: main without the calls that run once. coalesced: maps each buffer computed in place to the one
        whose memory it uses."""
        self.main = main
        self.preparations: list[CallBefore[Code]] = []
        self.prepared_buffers: dict[str, Buffer] = {}
        self._names = Names({**main.buffers, **remaining.buffers})
        self._coalesced = coalesced
        self._prepared_names: dict[tuple[str, tuple[str, ...]], tuple[str, ...]] = {}

    def run_before(self, call: BufferCall, unit: PreparedUnit[Code]) -> None:
        """Add a call that reads constants alone to the preparations."""
        for name in call.outputs:
            self.prepared_buffers[name] = self.main.buffers[name]
        inputs = self.step(call, unit).inputs
        self._prepare(unit.call, inputs, call.outputs)

    def step(self, call: BufferCall, unit: PreparedUnit[Code]) -> BufferCall:
        """Rewrite a call of main to a call of its unit; add the unit's preparation, if any, once for equal inputs."""
        prepared = self._prepared(call, unit) if unit.prepare is not None else ()
        inputs = (self._memory(call.inputs[n]) for n in unit.takes)
        skips = call.guarded is not None and (call.guarded.value, 0) in unit.shared
        unless = self._memory(call.inputs[call.guarded.guard]) if call.guarded and skips else ""
        return BufferCall(
            unit.call.name, (*inputs, *prepared), tuple(map(self._memory, call.outputs)), skip_guard=unless
        )

    def copy(self, copy: BufferCopy) -> BufferCopy:
        """Rewrite a copy of main to the buffers whose memory it uses."""
        return BufferCopy(self._memory(copy.source), self._memory(copy.target))

    def _memory(self, name: str) -> str:
        """The buffer whose memory a buffer uses; itself unless it is computed in place."""
        return self._coalesced.get(name, name)

    def _prepared(self, call: BufferCall, unit: PreparedUnit[Code]) -> tuple[str, ...]:
        assert unit.prepare is not None
        inputs = tuple(call.inputs[n] for n in unit.prepares)
        key = (unit.prepare.symbol, inputs)
        if key not in self._prepared_names:
            buffers = [replace(buffer, name=self._names.fresh(buffer.name)) for buffer in unit.prepared]
            self.prepared_buffers |= {buffer.name: buffer for buffer in buffers}
            self._prepared_names[key] = tuple(buffer.name for buffer in buffers)
            self._prepare(unit.prepare, inputs, self._prepared_names[key])
        return self._prepared_names[key]

    def _prepare(self, code: Code, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> None:
        self.preparations.append(CallBefore(code, inputs, outputs))


def with_steps(main: Main, steps: Sequence[Step], constants: Mapping[str, Buffer]) -> Main:
    """Main with new steps and the layout of its constants, without their elements and without unused temporaries;
    `constants` are the buffers of the constants by name."""
    used = {name for step in steps for name in (*step.reads, *step.writes)}
    used |= {main.bases[name] for name in used & main.bases.keys()}
    temporaries = tuple(buffer for buffer in main.temporaries if buffer.name in used)
    changed = replace(main, temporaries=temporaries, steps=tuple(steps), elements={})
    return with_constant_offsets(changed, constants.values())
