"""The calls of main: those that run once, since they read constants alone; the unit of each; computing in place."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from xdsl.dialects.func import FuncOp

from compiler.driver.units.compile import CompileJob, key_text
from compiler.driver.units.unit import WRITTEN, BuildSettings, Scheduled, UnitKey
from compiler.graph.main import BufferCall, Main, Step
from compiler.lowering.te_to_loop.nests import program_of
from compiler.passes.reorder_contiguous import reorder_contiguous
from compiler.program.tree import Buffer
from compiler.types.machines import host

PREPARE = ".prepare"
"""The suffix of the name of a preparation, see the pass split-constants."""


@dataclass(frozen=True)
class ConstantSplit:
    """A main split by constants: `main` without `constant_calls`, which run once; `constants` are the names of all
    constant buffers, the results of these calls included."""

    main: Main
    constant_calls: tuple[BufferCall, ...]
    constants: frozenset[str]


def split_constant_calls(main: Main, constants: Collection[str]) -> ConstantSplit:
    """Split off the calls of main with only constant inputs, but for those that compute a result of main. Constant w:
    `call @pack(w, p) call @f(x, p, y)` becomes constant_calls = [@pack], steps = [@f], constants = {w, p}.
    """
    constant_names, constant_calls, steps = set(constants), list[BufferCall](), list[Step]()
    result_names = {buffer.name for buffer in main.results}
    for step in main.steps:
        if (
            isinstance(step, BufferCall)
            and constant_names.issuperset(step.inputs)
            and result_names.isdisjoint(step.outputs)
        ):
            constant_calls.append(step)
            constant_names.update(step.outputs)
        else:
            steps.append(step)
    inputs = tuple(buffer for buffer in main.inputs if buffer.name not in constant_names)
    temporaries = tuple(buffer for buffer in main.temporaries if buffer.name not in constant_names)
    remaining = replace(main, arguments=(*inputs, *main.results), temporaries=temporaries, steps=tuple(steps))
    return ConstantSplit(remaining, tuple(constant_calls), frozenset(constant_names))


Pairs: TypeAlias = tuple[tuple[int, int], ...]
"""Pairs of an input and an output of a function, by their positions."""


def replaceable(main: Main) -> dict[str, Pairs]:
    """Map each function to the pairs of an input and an output that may be one array in all its calls.

    The input must be a temporary that no later step reads, directly or by a view, and that the call reads once. The
    output must be a temporary of the same shape and type.

    A view has fixed memory, and cannot be the input. If it is the output, the input moves into its memory, so that the
    input must have no views itself. The same holds for a result of main of a call that a guard skips; there the only
    possible input is the value that the result has if the call is skipped.

        call @f(%a, %b)  call @g(%b, %c)  // temporaries a, b, c of one shape: b may be computed into a, c into b
    """
    temporaries = {buffer.name for buffer in main.temporaries}
    last = {main.bases.get(name, name): number for number, step in enumerate(main.steps) for name in step.reads}
    fixed = set(main.bases.values())
    """The buffers that have views, and those that may use their memory."""
    by_callee: dict[str, set[tuple[int, int]]] = {}
    for number, call in enumerate(main.steps):
        if not isinstance(call, BufferCall):
            continue
        pairs, memory = set(), [main.bases.get(name, name) for name in call.inputs]
        for i, source in enumerate(call.inputs):
            ends = source in temporaries and last[source] == number and memory.count(source) == 1
            meant = call.guarded is None or call.guarded.value == i
            for j, target in enumerate(call.outputs) if ends and meant else ():
                stays = target in main.bases or call.guarded is not None
                if not (target in temporaries or (stays and source not in fixed)):
                    continue
                if _are_alike(main.buffers[source], main.buffers[target]):
                    pairs.add((i, j))
                    fixed |= {target} if source in fixed else set()
        by_callee[call.callee] = by_callee.get(call.callee, pairs) & pairs
    return {callee: tuple(sorted(pairs)) for callee, pairs in by_callee.items()}


def coalesced(calls: Iterable[tuple[BufferCall, Pairs]], views: Container[str]) -> dict[str, str]:
    """Map each buffer computed in place to the buffer whose memory it uses; `calls` have the pairs of input and output
    that must be one buffer. A view keeps its memory, and the input uses that.

        call @f(%a, %b)  call @g(%b, %c)  // both with the pair (0, 0): {b: a, c: a}
    """
    stands: dict[str, str] = {}

    def memory(name: str) -> str:
        while name in stands:
            name = stands[name]
        return name

    for call, pairs in calls:
        for i, j in pairs:
            source, target = memory(call.inputs[i]), call.outputs[j]
            if target in views:
                source, target = target, source
            stands[target] = source
    return {name: memory(name) for name in stands}


def _are_alike(left: Buffer, right: Buffer) -> bool:
    return (left.shape, left.element) == (right.shape, right.element)


class Units:
    """The different units of a program, collected call by call: calls share a unit if their functions, schedules,
    constants and shared arrays are equal."""

    def __init__(
        self, main: str, functions: Sequence[FuncOp], sources: Mapping[str, Scheduled], settings: BuildSettings
    ) -> None:
        """functions: those that `main` calls. sources: their schedules by name."""
        self.jobs: list[CompileJob] = []
        self.callees: list[str] = []
        """The name of the function of each unit."""
        self.occurrences: list[int] = []
        """The number of calls of each unit."""
        self._functions = {function.sym_name.data: function for function in functions}
        self._texts = {name: key_text(function) for name, function in self._functions.items()}
        self._sources, self._settings = sources, settings
        self._taken = {main, *self._functions}
        self._machine = f"{host().cpu} {host().features}"
        self._numbers: dict[UnitKey, int] = {}

    def number(self, callee: str, constants: tuple[int, ...] = (), shared: Pairs = ()) -> int:
        """Count a call of a function, and return the number of its unit, a new one for the first call of its kind.

        constants: the positions of its constant inputs. shared: pairs of positions of an input and an output that may
        be one array.
        """
        source = self._sources.get(callee, WRITTEN)
        policy, threads = self._settings.policy, self._settings.threads
        key = UnitKey(self._texts[callee], source.script, constants, shared, policy, threads, self._machine)
        if key not in self._numbers:
            self._numbers[key] = len(self.jobs)
            tree = source.tree if source.script else reorder_contiguous(program_of(self._functions[callee]))
            self.jobs.append(CompileJob(key, self._name(callee), tree))
            self.callees.append(callee)
            self.occurrences.append(0)
        number = self._numbers[key]
        self.occurrences[number] += 1
        return number

    def _name(self, callee: str) -> str:
        """Return a name for a unit that is unused, as is the derived name of its preparation; both are then in use."""
        other_names = self._taken - {callee}
        number, name = 0, callee
        while {name, f"{name}{PREPARE}"} & other_names or name in {job.name for job in self.jobs}:
            number += 1
            name = f"{callee}.{number}"
        self._taken |= {name, f"{name}{PREPARE}"}
        return name
