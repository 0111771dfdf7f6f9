"""A search space as text: its sketches with their choices, some of its candidates, scripts and their differences.

A candidate is written as the number of its sketch and the positions of its choices, both from zero: `0:3,2,6`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import unified_diff
from math import prod

import numpy as np
from xdsl.ir import Operation, SSAValue

from compiler.graph.user_names import script_with_user_names
from compiler.schedule.primitive import applies
from compiler.schedule.state import ROOT
from compiler.space.candidates import Candidate, candidate_count
from compiler.space.sketch import OpenChoice, Sketch
from compiler.space.space import SketchSpace
from compiler.support.errors import InputError
from compiler.support.text import counted

Selection = tuple[int, tuple[int, ...] | None]
"""The number of a sketch, and the positions of a candidate; None stands for the sketch with its choices open."""

SHOWN = 32
"""The maximum number of options listed for a choice."""
WHY = {
    "registers": "its register tile spills",
    "threads": "a block has more threads than the GPU allows",
    "shared memory": "a block needs more shared memory than there is",
    "cache": "its temporaries in loops leave the second cache",
    "waste": "most of its work is padding",
    "code": "its unrolled loops fill the instruction cache",
    "script": "its script does not apply",
    "later": "nobody has looked at it yet",
}
"""The explanation of each reason for which a candidate is infeasible."""


def list_sketches(space: SketchSpace, numbers: Sequence[int]) -> Iterator[str]:
    """List the size of the space, then the sketches `numbers`: their choices, the options and the steps that read them.
    Raises InputError for a number that the space does not have.

    4 sketches, 456 candidates
    sketch 0 (270 candidates): C: gebp ab
      choice 0, %param = 2, 3, 4 or 6 (default 4): split C.m, pack A
    """
    yield f"{counted(len(space.sketches), 'sketch', 'es')}, {counted(candidate_count(space.sizes), 'candidate')}"
    for number in numbers:
        sketch = _sketch(space, number)
        yield f"sketch {number} ({counted(prod(sketch.sizes), 'candidate')}): {sketch.name}"
        for position, (choice, name) in enumerate(zip(sketch.choices, _names(sketch), strict=True)):
            options = f"{_options(choice)}{_default(sketch, position)}"
            yield f"  choice {position}, {name} = {options}: {_reads(sketch, choice)}"


def matching_sketches(space: SketchSpace, text: str | None) -> list[int]:
    """The numbers of the sketches whose names contain a text, or of all for None. Raises InputError for none."""
    numbers = [number for number, sketch in enumerate(space.sketches) if text is None or text in sketch.name]
    if not numbers:
        raise InputError(
            f"no sketch has '{text}' in its name (there are {len(space.sketches)}; try it without --filter)"
        )
    return numbers


def script(space: SketchSpace, place: Selection) -> str:
    """The script of the sketch with a number: with open choices if its positions are None, else with the decisions at
    these positions. Raises InputError for a number or positions that the space does not have."""
    number, positions = place
    sketch = _sketch(space, number)
    return str(sketch.script) if positions is None else sketch.text(candidate(space, number, positions)[1])


def candidate(space: SketchSpace, number: int, positions: Sequence[int]) -> Candidate:
    """The candidate of a sketch's number and the positions of its choices. Raises InputError for a sketch or a position
    that the space does not have, and for another number of positions than choices."""
    sizes = _sketch(space, number).sizes
    if len(positions) != len(sizes):
        raise InputError(f"sketch {number} has {counted(len(sizes), 'choice')}, not {len(positions)}")
    for choice, (position, size) in enumerate(zip(positions, sizes, strict=True)):
        if not 0 <= position < size:
            raise InputError(f"choice {choice} of sketch {number} has the positions 0 to {size - 1}, not {position}")
    return number, tuple(positions)


def list_candidates(space: SketchSpace, numbers: Sequence[int], count: int, seed: int) -> Iterator[str]:
    """Yield a line for each of `count` random candidates of the sketches `numbers`, each sketch equally likely: its
    decisions, and whether it is feasible. Candidates may repeat; equal seeds yield equal lines; `numbers` must not be
    empty.

        0:3,2 (C: gebp ab): %param = 6, %param_1 = 4; feasible

    Legality is judged only when a candidate is built.
    """
    drawn = random.Random(seed)
    for _ in range(count):
        number = drawn.choice(numbers)
        sketch = _sketch(space, number)
        positions = tuple(drawn.randrange(size) for size in sketch.sizes)
        chosen = [
            f"{name} = {_option(choice, position)}"
            for choice, name, position in zip(sketch.choices, _names(sketch), positions, strict=True)
        ]
        facts = [", ".join(chosen), feasibility(space, (number, positions))]
        yield f"{_titled(space, (number, positions))}: {'; '.join(fact for fact in facts if fact)}"


def feasibility(space: SketchSpace, candidate: Candidate) -> str:
    """Return `feasible`, or the reason: `infeasible, waste: most of its work is padding`."""
    number, positions = candidate
    features = space.features(number, np.array([positions], np.int64).reshape(1, len(positions)))
    reason = features.names[int(features.reasons[0])]
    return f"infeasible, {reason}: {WHY[reason]}" if reason else "feasible"


def difference(space: SketchSpace, first: Selection, second: Selection) -> str:
    """The unified diff of the scripts of two sketches or candidates; empty if they are equal. Raises InputError for one
    that the space does not have."""
    before, after = (script(space, candidate).splitlines() for candidate in (first, second))
    titles = _titled(space, first), _titled(space, second)
    return "\n".join(unified_diff(before, after, titles[0], titles[1], lineterm=""))


def _sketch(space: SketchSpace, number: int) -> Sketch:
    """The sketch of a number, with the program's names in its script. Raises InputError for an unknown number."""
    if not 0 <= number < len(space.sketches):
        raise InputError(f"there is no sketch {number} (there are 0 to {len(space.sketches) - 1})")
    sketch = space.sketches[number]
    return sketch if space.names is None else replace(sketch, script=script_with_user_names(sketch.script, space.names))


def _titled(space: SketchSpace, place: Selection) -> str:
    number, positions = place
    return f"{number}{':' if positions else ''}{','.join(map(str, positions or ()))} ({_sketch(space, number).name})"


def _names(sketch: Sketch) -> list[str]:
    """The names of the choices' results in the text of the script, in order, such as `%param`."""
    lines = (line.strip().split(" = sched.sample_") for line in str(sketch.script).splitlines())
    return [words[0] for words in lines if len(words) == 2]


def _options(choice: OpenChoice) -> str:
    options = [_option(choice, position) for position in range(len(choice.options))]
    if len(options) > SHOWN:
        return f"{', '.join(options[:SHOWN])} ... ({len(options)} options)"
    return " or ".join(text for text in (", ".join(options[:-1]), options[-1]) if text)


def _option(choice: OpenChoice, position: int) -> str:
    """An option of a choice as text: a size, factors `4x16`, or a loop by its number from outside, or `root`."""
    option = choice.options[position]
    if choice.is_structural:
        return "root" if option[0] == ROOT else f"loop {option[0]}"
    return "x".join(map(str, option))


def _default(sketch: Sketch, position: int) -> str:
    if not sketch.recorded_positions:
        return ""
    return f" (default {_option(sketch.choices[position], sketch.recorded_positions[position])})"


def _reads(sketch: Sketch, choice: OpenChoice) -> str:
    """The steps that read a choice, directly or through `multiple` and `product`, in the order of the script; `unused`
    without any."""
    carried: set[SSAValue] = set(sketch.ops[choice.position].results)
    steps: dict[str, None] = {}
    for op in sketch.ops:
        if carried.isdisjoint(op.operands):
            continue
        if applies(op, "multiple", "product"):
            carried.update(op.results)
        else:
            steps[_step(op)] = None
    return ", ".join(steps) or "unused"


def _step(op: Operation) -> str:
    """A step and its operand as text: `split C.m`, `pack A`."""
    buffer = op.properties.get("buffer")
    operand = str(getattr(buffer, "data", "")) or (_handle(op.operands[0]) if op.operands else "")
    return f"{op.name.removeprefix('sched.')} {operand}".rstrip()


def _handle(value: SSAValue) -> str:
    """A handle as text: a block `C`, or a loop with the block of its `get_loops`, `C.m`."""
    name = value.name_hint or ""
    owner = value.owner
    if isinstance(owner, Operation) and owner.name == "sched.get_loops":
        return f"{owner.operands[0].name_hint or ''}.{name}"
    return name
