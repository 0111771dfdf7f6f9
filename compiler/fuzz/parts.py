"""`fuzz`: random cases against the parts of plugins."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from time import monotonic

from xdsl.dialects.builtin import ModuleOp

from compiler.fuzz.cases import KINDS, Case
from compiler.fuzz.programs import program
from compiler.fuzz.scripts import Walker
from compiler.pipeline.loops import lower
from compiler.schedule import Handle, Schedule
from compiler.schedule.parameters import (
    ANY,
    BLOCK,
    FACTORS,
    FLOATS,
    INT,
    INTS,
    MAP,
    PARAM,
    PARAMS,
    SIZES,
    HandleParameter,
    Parameter,
)
from compiler.schedule.primitive import Primitive
from compiler.schedule.primitives import of_plugins
from compiler.support.errors import ScheduleError
from compiler.support.plugins import Part, PluginError

BEFORE = 4
"""The most random steps before the primitive of a plugin."""
TRIES = 8
"""The most sets of random arguments of a primitive that are drawn for one program."""


@dataclass(frozen=True)
class Failure:
    """A case with a fault, and the sentence on the fault."""

    case: Case
    fault: str


def fuzz(parts: Sequence[Part], seed: int, cases: int, seconds: float, counts: Counter[str]) -> Iterator[Failure]:
    """Try each part on a random program for each seed from `seed` on, until `cases` seeds are tried or `seconds` have
    passed; yield the cases with a fault. A part is not tried again after a fault.

    parts: those of KINDS are tried. counts: increased by the number of programs of each part, under `NAME`, and of
    those that it has changed or failed on, under `NAME applied`.
    """
    end = monotonic() + seconds
    tried = [part for part in parts if part.kind in KINDS]
    for number in range(seed, seed + cases):
        for part in list(tried):
            if monotonic() > end:
                return
            counts[part.name] += 1
            try:
                case = _case(part, number)
            except PluginError as error:  # the primitive crashes, and is in no script
                tried.remove(part)
                yield Failure(Case(part, f"{_drawn(number)[1]!s}\n", number), str(error))
                continue
            fault = None if case is None else case.fault()
            counts[f"{part.name} applied"] += fault is not None
            if case is not None and fault:
                tried.remove(part)
                yield Failure(case, fault)


def _case(part: Part, seed: int) -> Case | None:
    """A random case for a part; for a primitive None if no random step with it is accepted."""
    rng, module = _drawn(seed)
    case = Case(part, f"{module!s}\n", seed)
    return case if part.kind != "primitive" else _with_script(case, of_plugins()[part.name], module, rng)


def _drawn(seed: int) -> tuple[random.Random, ModuleOp]:
    """The random program of a seed, and the source of the random numbers that follow."""
    rng = random.Random(seed)
    function = program(rng, views=rng.random() < 0.3, dtype="f32" if rng.random() < 0.6 else None)
    return rng, function.module


def _with_script(case: Case, primitive: Primitive, module: ModuleOp, rng: random.Random) -> Case | None:
    """Add a script to a case: random steps, then the primitive. None if the primitive refuses TRIES sets of random
    arguments, or has a parameter that cannot be drawn."""
    walker = Walker(Schedule(lower(module)), rng)
    for _ in range(rng.randint(0, BEFORE)):
        walker.step()
    for _ in range(TRIES):
        arguments = _arguments(primitive, walker)
        if arguments is None:
            return None
        try:
            walker.s.call(primitive, *arguments)
        except ScheduleError:
            continue
        module_text, script = str(module).rstrip(), str(walker.s.script)
        inner = "\n".join(script.rstrip().splitlines()[1:-1])
        return replace(case, text=f"{module_text.removesuffix('}')}{inner}\n}}\n")
    return None


def _arguments(primitive: Primitive, walker: Walker) -> list[object] | None:
    """Random arguments of a primitive for the schedule of a walker; None if one of its parameters cannot be drawn, or
    if it has parameters and the chosen block has no loops."""
    block = walker.s.get_block(walker.rng.choice(list(walker.s.program.blocks)))
    loops = walker.s.get_loops(block)
    values: list[object] = []
    for kind in primitive.parameters.values():
        if not kind.asked:
            continue
        if kind in (PARAM, PARAMS) or not loops:
            return None
        value = _argument(kind, walker, block, loops)
        values += value if isinstance(value, list) and isinstance(kind, HandleParameter) else [value]
    return values


def _argument(kind: Parameter, walker: Walker, block: Handle, loops: Sequence[Handle]) -> object:
    """A random argument of a kind: the block, one or several of `loops`, small numbers, two equal weights, the map that
    reverses dimensions, or a buffer's name."""
    rng = walker.rng
    same = replace(kind, option="", optional=False)
    if isinstance(kind, HandleParameter):
        if kind.handles == BLOCK.handles:
            return block
        chosen = rng.sample(list(loops), rng.randint(1, len(loops)))
        return chosen if kind.several else chosen[0]
    if kind.type is int or same == ANY:
        return rng.randint(1, 8)
    if kind.annotation == FACTORS.annotation:
        return rng.choice([[None, rng.randint(1, 4)], [rng.randint(1, 4), None], [None, 2, 2]])
    if kind.annotation in (SIZES.annotation, INTS.annotation):
        return [rng.randint(1, 4) for _ in range(rng.randint(1, 3))]
    if kind.annotation == FLOATS.annotation:
        return [0.5, 0.5]
    if kind.annotation == MAP.annotation:
        return lambda *d: tuple(reversed(d))
    return walker.buffer(block) if kind.annotation != INT.annotation else rng.randint(1, 8)
