"""Stores of a combiner's identity before a reduction become the init of the reduction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import AnyFloat, IntegerType
from xdsl.ir import Attribute

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.program import body
from compiler.program.combiner import neutral
from compiler.program.tree import Block, Loop, Node, map_blocks, touched


def with_inits(nodes: Sequence[Node], elements: Mapping[str, Attribute], ranges: lin.Ranges) -> tuple[Node, ...]:
    """Fold each store of the identity into the reduction that accumulates onto the stored elements next.

        loop.for "i" { S[i] = 0 }                                       ->  loop.for "i" { loop.for "k" {
        loop.for "i" { loop.for "k" { S[i] += A[i, k]  accumulate } }         S[i] += A[i, k] } }

    The reduction then has this init, as one of te has. `elements` are the element types of the buffers by name,
    `ranges` those of all loops. A store folds only if it runs once for each element that the reduction updates, under
    the same guard.
    """
    remaining = [
        replace(node, body=with_inits(node.body, elements, ranges)) if isinstance(node, Loop) else node
        for node in nodes
    ]
    for position in reversed(range(len(remaining))):
        user = _next_user(remaining, position)
        if user is not None and _is_init(remaining[position], remaining[user], elements, ranges):
            remaining[user] = map_blocks([remaining[user]], lambda block: replace(block, accumulate=False))[0]
            del remaining[position]
    return tuple(remaining)


@dataclass(frozen=True)
class _Perfect:
    """A block in perfectly nested loops, outermost first."""

    loops: tuple[Loop, ...]
    block: Block


def _perfect(node: Node) -> _Perfect | None:
    loops: list[Loop] = []
    while isinstance(node, Loop) and len(node.body) == 1:
        loops.append(node)
        node = node.body[0]
    return _Perfect(tuple(loops), node) if isinstance(node, Block) else None


def _next_user(nodes: Sequence[Node], position: int) -> int | None:
    """The position of the first node after a nest of one block without reads that accesses the block's target; None if
    there is none, and for any other nest."""
    nest = _perfect(nodes[position])
    if nest is None or nest.block.reads or nest.block.combiners:
        return None
    target = nest.block.targets[0]
    later = range(position + 1, len(nodes))
    return next((n for n in later if any(target in names for names in touched([nodes[n]]))), None)


def _is_init(store: Node, user: Node, elements: Mapping[str, Attribute], ranges: lin.Ranges) -> bool:
    """Whether a node stores the identity to the elements that a reduction accumulates, once for each of them, under the
    same guard. Both must be a block in perfectly nested loops, of floats or integers."""
    first, second = _perfect(store), _perfect(user)
    if first is None or second is None or not second.block.accumulate:
        return False
    stored, reduction = first.block, second.block
    element = elements[reduction.targets[0]]
    if not isinstance(element, AnyFloat | IntegerType):
        return False
    reduced = reduction.loops_of(True)
    kept = [loop for loop in second.loops if loop.number not in reduced]
    sizes = [axis.size for axis in reduction.axes[: reduction.spatial]]
    return (
        stored.body[0] is body.constant(neutral(reduction.combiners[0], element))
        and not any(condition.form.variables() & reduced for condition in reduction.guard)
        and stored.writes == reduction.writes
        and [axis.size for axis in stored.axes] == sizes
        and len(first.loops) == len(kept)
        and _is_injective(reduction, len(kept))
        and _guard_over(stored, first.loops, kept, ranges) == reduction.guard
    )


def _is_injective(reduction: Block, count: int) -> bool:
    """Whether the last `count` spatial axes are indices of the target, so that no iterations share an element."""
    indices = [form.as_variable for form in reduction.writes[0].index]
    return all(axis in indices for axis in range(reduction.spatial - count, reduction.spatial))


def _guard_over(
    block: Block, loops: Sequence[Loop], others: Sequence[Loop], ranges: lin.Ranges
) -> tuple[Condition, ...]:
    """The guard of a block with the variables of `loops` replaced by those of `others`."""
    values = {old.number: lin.variable(new.number) for old, new in zip(loops, others, strict=True)}
    return tuple(condition.substitute(values, ranges) for condition in block.guard)
