"""The loops of the low level as a tree, each with its blocks and its work as the loop program tells them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from xdsl.dialects import memref, scf, vector
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from compiler.analysis.cost import footprint, total_flops
from compiler.lowering.low_to_llvm.marks import LoopOp, loops_of
from compiler.program.tree import Loop, Node, Program, blocks_in


@dataclass(frozen=True)
class Nest:
    """A loop and those in it.

    number: as marks count the loops of a module, from 1. name: of its variable.
    blocks: the labels of its blocks or, where the loop program is not known, the buffers that it writes.
    trips: how often its body runs, at most; None where nothing tells it. exact: whether it is always as often.
    flops: floating-point operations of all its runs in one call. bytes: what one run touches. None where not known.
    """

    number: int
    name: str
    blocks: tuple[str, ...]
    trips: int | None
    exact: bool
    flops: int | None
    bytes: int | None
    inner: tuple[Nest, ...]


def nests(module: ModuleOp, function: FuncOp, program: Program | None) -> tuple[Nest, ...]:
    """The outermost loops of a low-level function of a module; `program` is the loop program that it came from."""
    numbers = {op: number for number, op in enumerate(loops_of(module), start=1)}
    found: dict[LoopOp, Loop] = {}
    top = list(function.body.block.ops)
    if program is not None:
        _match(top, program.body, found)
    copies = Counter(loop.number for loop in found.values())

    def nest(op: LoopOp) -> Nest:
        inner = tuple(map(nest, _loops(op.body.block.ops)))
        trips = _trips(op)
        made = Nest(numbers[op], _name(op), _written(op), trips, trips is not None, None, None, inner)
        loop = found.get(op)
        return made if loop is None or program is None else _known(made, loop, copies[loop.number], program)

    return tuple(map(nest, _loops(top)))


def every(nests: Iterable[Nest]) -> Iterator[Nest]:
    """Loops and those in them, each before what it contains."""
    for nest in nests:
        yield nest
        yield from every(nest.inner)


def paths(nests: Iterable[Nest], around: tuple[Nest, ...] = ()) -> dict[int, tuple[Nest, ...]]:
    """For each loop, by its number, the loops around it and itself, outermost first."""
    found: dict[int, tuple[Nest, ...]] = {}
    for nest in nests:
        found[nest.number] = (*around, nest)
        found |= paths(nest.inner, (*around, nest))
    return found


def _known(nest: Nest, loop: Loop, copies: int, program: Program) -> Nest:
    """The nest with what its loop in the program tells; an unrolled loop around it makes several of one."""
    return replace(
        nest,
        name=loop.label,
        blocks=tuple(block.label for block in blocks_in(loop)),
        trips=loop.extent if nest.trips is None else nest.trips,
        flops=total_flops(program, [loop]) // copies,
        bytes=sum(footprint(program, [loop]).values()),
    )


def _match(ops: Iterable[Operation], nodes: Sequence[Node], found: dict[LoopOp, Loop]) -> None:
    """Pair loops of the low level with those of the program: by name, in order."""
    expected, at = list(_expected(nodes)), 0
    for op in _loops(ops):
        name = _name(op)
        position = next((n for n in range(at, len(expected)) if _plain(expected[n].label) == name), None)
        if position is not None:
            found[op] = expected[position]
            at = position + 1
            _match(op.body.block.ops, _inside(op, expected[position]), found)


def _inside(op: LoopOp, loop: Loop) -> Sequence[Node]:
    """What is in the loop's body, or in that of the innermost of a nest that one op holds."""
    nodes: Sequence[Node] = loop.body
    for _ in range(len(_variables(op)) - 1):
        nodes = nodes[0].body if len(nodes) == 1 and isinstance(nodes[0], Loop) else nodes
    return nodes


def _expected(nodes: Sequence[Node]) -> Iterator[Loop]:
    """The loops that stay loops; what is in an unrolled one comes once for each of its iterations."""
    for node in nodes:
        if isinstance(node, Loop) and node.kind in ("unrolled", "vectorized"):
            for _ in range(node.extent if node.kind == "unrolled" else 1):
                yield from _expected(node.body)
        elif isinstance(node, Loop):
            yield node


def _loops(ops: Iterable[Operation]) -> Iterator[LoopOp]:
    """The loops among some ops, and in branches among them."""
    for op in ops:
        if isinstance(op, LoopOp):
            yield op
        else:
            for region in op.regions:
                for block in region.blocks:
                    yield from _loops(block.ops)


def _variables(op: LoopOp) -> Sequence[SSAValue]:
    return op.body.block.args[:1] if isinstance(op, scf.ForOp) else op.body.block.args


def _name(op: LoopOp) -> str:
    """The name of its variable, of the outermost where it holds a nest."""
    return _plain(_variables(op)[0].name_hint or "loop")


def _plain(name: str) -> str:
    """A name without the number by which the text tells values apart."""
    return re.sub(r"(_\d+)+$", "", name)


def _trips(op: LoopOp) -> int | None:
    """How often its body runs, where its bounds are constants."""
    if isinstance(op, scf.ForOp):
        return _between(op.lb, op.ub, op.step)
    each = [_between(*bounds) for bounds in zip(op.lowerBound, op.upperBound, op.step, strict=True)]
    return None if None in each else prod(trips for trips in each if trips is not None)


def _between(lower: SSAValue, upper: SSAValue, step: SSAValue) -> int | None:
    low, high, by = map(_constant, (lower, upper, step))
    return None if low is None or high is None or not by else max(0, -((low - high) // by))


def _constant(value: SSAValue) -> int | None:
    owner = value.owner
    if isinstance(owner, ConstantOp) and isinstance(owner.value, IntegerAttr):
        return int(owner.value.value.data)
    return None


def _written(op: LoopOp) -> tuple[str, ...]:
    """The names of the buffers that are stored to in a loop."""
    stores = [inner for inner in op.walk() if isinstance(inner, memref.StoreOp | vector.StoreOp | vector.MaskedStoreOp)]
    buffers = [s.memref if isinstance(s, memref.StoreOp) else s.base for s in stores]
    return tuple(dict.fromkeys(buffer.name_hint or "a buffer" for buffer in buffers))
