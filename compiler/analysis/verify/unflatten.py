"""Easier sets for the same instances in the same order: `unfused` and `unflattened` programs.

`unfused` has two loops for a loop that forms divide by a divisor of its extent, as after fusing.

A fetch of a tile [8][9][9] by 112 threads runs over one fused loop that is split by 112. The element that a thread
copies then has quotients and remainders by numbers that do not divide each other, and such sets are hard for isl. Yet
the nest visits its points in the order of the axes. If enumeration shows that, `unflattened` has a loop for each axis.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from math import prod

import numpy as np
from numpy.typing import NDArray

from compiler.affine.linear import Linear, Quotient
from compiler.affine.linear import variable as variable_of
from compiler.program.tree import Block, Loop, Node, Program, blocks_in, map_blocks, rebound

Ints = NDArray[np.int64]
MOST = 1 << 18
"""Limit of the points of a nest that are enumerated."""


def unfused(program: Program) -> Program:
    """Split each loop that forms divide by a divisor of its extent, unless that would move the init of a block.

    b = 6 { S(b floordiv 3, b mod 3) }  ->  b = 2 { b' = 3 { S(b, b') } }
    """
    left_fused: set[tuple[int, int]] = set()
    while True:
        pair = next((pair for pair in _divided(program) if (pair[0].number, pair[1]) not in left_fused), None)
        if pair is None:
            return program
        loop, divisor = pair
        after = _halved(program, loop, divisor)
        if all(_stays(block, after.blocks[block.label], loop.number) for block in blocks_in(loop)):
            program = after
        else:
            left_fused.add((loop.number, divisor))


def _halved(program: Program, loop: Loop, divisor: int) -> Program:
    """Split a loop by a divisor of its extent, which is the inner loop's extent; the outer loop keeps its number."""
    inner = program.fresh_number()
    values = {loop.number: variable_of(loop.number).scaled(divisor) + variable_of(inner)}
    ranges = {**program.ranges, loop.number: (0, loop.extent // divisor - 1), inner: (0, divisor - 1)}
    body = map_blocks(loop.body, lambda block: rebound(block, values, ranges))
    half = replace(loop, number=inner, label=f"{loop.label}.{inner}", extent=divisor, body=body)
    return program.replaced(loop.number, lambda _: [replace(loop, extent=loop.extent // divisor, body=(half,))])


def _stays(before: Block, after: Block, loop: int) -> bool:
    """Whether the init of a block stays before the same loop: the split loop binds no reduce axis, or it binds no
    spatial axis and its outer half binds a reduce axis."""
    if not before.has_init or loop not in before.loops_of(reduce=True):
        return True
    return loop not in before.loops_of(reduce=False) and loop in after.loops_of(reduce=True)


def _divided(program: Program) -> Iterator[tuple[Loop, int]]:
    """Yield each loop that a binding or guard divides by a proper divisor of its extent, with the divisor."""
    for block in program.blocks.values():
        for form in (*block.bindings, *(condition.form for condition in block.guard)):
            for atom in _quotients(form):
                terms = atom.form.terms
                if atom.form.constant or len(terms) != 1 or terms[0][1] != 1 or not isinstance(terms[0][0], int):
                    continue
                loop = program.loops[terms[0][0]]
                if loop.extent % atom.divisor == 0 and 1 < atom.divisor < loop.extent:
                    yield loop, atom.divisor


def _quotients(form: Linear) -> Iterator[Quotient]:
    for atom, _ in form.terms:
        if isinstance(atom, Quotient):
            yield atom
            yield from _quotients(atom.form)


def unflattened(program: Program) -> Program:
    """Return the program with each perfect nest whose bindings divide loops rebuilt with one loop for each axis, if it
    visits the same points in the same order; other nests, and those of an init or of more than MOST points, stay."""
    numbers = count(program.fresh_number())
    return replace(program, body=tuple(_node(node, numbers) for node in program.body))


def _node(node: Node, numbers: Iterator[int]) -> Node:
    nest = _nest(node) if isinstance(node, Loop) else None
    plain = None if nest is None else _plain(*nest, numbers)
    if plain is not None or not isinstance(node, Loop):
        return plain or node
    return replace(node, body=tuple(_node(inner, numbers) for inner in node.body))


def _nest(node: Loop) -> tuple[list[Loop], Block] | None:
    """The loops of a perfect nest, outermost first, and its block; None for another nest."""
    loops = [node]
    while len(loops[-1].body) == 1:
        (inner,) = loops[-1].body
        if isinstance(inner, Block):
            return loops, inner
        if not isinstance(inner, Loop):
            return None
        loops.append(inner)
    return None


def _plain(loops: Sequence[Loop], block: Block, numbers: Iterator[int]) -> Node | None:
    """Rebuild a nest with a loop for each axis; None if no form divides loops, or instances or their order differ."""
    # x = 6 { S(x floordiv 3, x mod 3) } visits (0, 0), (0, 1), (0, 2), (1, 0) ...: i = 2 { j = 3 { S(i, j) } }.
    numbers_here = {loop.number for loop in loops}
    extents = [loop.extent for loop in loops]
    if block.has_init:  # which stands elsewhere, and would move
        return None
    if prod(extents) > MOST or not any(_is_hard(form, numbers_here) for form in block.bindings):
        return None
    split_forms = [split_form for form in block.bindings if (split_form := _parted(form, numbers_here)) is not None]
    inside = [condition for condition in block.guard if condition.form.variables() & numbers_here]
    if len(split_forms) < len(block.bindings) or any(c.equal or c.form.variables() - numbers_here for c in inside):
        return None
    points = np.unravel_index(np.arange(prod(extents)), extents)
    columns: dict[int, Ints] = dict(zip((loop.number for loop in loops), points, strict=True))
    runs = np.ones(prod(extents), np.bool_)
    for condition in inside:
        runs &= _values(condition.form, columns) >= 0
    if not runs.any():
        return None
    moving = [np.broadcast_to(_values(inner, columns), runs.shape)[runs] for _, inner in split_forms]
    lows = [int(values.min()) for values in moving]
    sizes = [int(values.max()) - low + 1 for values, low in zip(moving, lows, strict=True)]
    if prod(sizes) != int(runs.sum()):
        return None
    order = np.unravel_index(np.arange(prod(sizes)), sizes)
    if any((values - low != coordinate).any() for values, low, coordinate in zip(moving, lows, order, strict=True)):
        return None
    bindings, nest = [], []
    for axis, (outer, _), low, size in zip(block.axes, split_forms, lows, sizes, strict=True):
        form = outer + Linear((), low)
        if size > 1:
            number = next(numbers)
            form = form + variable_of(number)
            nest.append((number, f"{axis.label}.{number}", size))
        bindings.append(form)
    guard = tuple(condition for condition in block.guard if condition not in inside)
    node: Node = replace(block, bindings=tuple(bindings), guard=guard)
    for number, label, size in reversed(nest):
        node = Loop(number, label, size, (node,))
    return node


def _is_hard(form: Linear, loops: set[int]) -> bool:
    """Whether a form has a floordiv or mod of one of `loops`."""
    return any(isinstance(atom, Quotient) and atom.form.variables() & loops for atom, _ in form.terms)


def _parted(form: Linear, loops: set[int]) -> tuple[Linear, Linear] | None:
    """Split a form into a part over other loops, with the constant, and one over `loops`; None if an atom has both."""
    inner, outer = [], []
    for atom, factor in form.terms:
        variables = atom.form.variables() if isinstance(atom, Quotient) else {atom}
        if variables <= loops:
            inner.append((atom, factor))
        elif variables & loops:
            return None
        else:
            outer.append((atom, factor))
    return Linear(tuple(outer), form.constant), Linear(tuple(inner), 0)


def _values(form: Linear, columns: Mapping[int, Ints]) -> Ints:
    """Evaluate a form at many points, a column of values for each variable; one value for a constant form."""
    total = np.asarray(form.constant)
    for atom, factor in form.terms:
        if isinstance(atom, Quotient):
            inner = _values(atom.form, columns)
            total = total + factor * (inner % atom.divisor if atom.is_mod else inner // atom.divisor)
        else:
            total = total + factor * columns[atom]
    return total
