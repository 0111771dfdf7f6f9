"""The rules that group the computes of a te function, the most specific first."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from compiler.dialects.upstream.casts import TruncFOp
from compiler.graph.grouping.choice import Choice, Rule
from compiler.graph.grouping.facts import Kind, is_pointwise, kind_of, points, rows_of, scalar_operations
from compiler.graph.grouping.view import View
from compiler.program.body import Apply, Read
from compiler.program.tree import Block
from compiler.support.plugins import Extended
from compiler.types.elements import element_bytes

NEAR = 32
"""The most computes that a rule visits before a compute to find a pattern that ends with it."""
BATCHED = 3
"""The fewest axes of the result of a batched product in attention: heads, rows, columns."""
WIDEST = 96
"""The most columns of the result of attention without batches: a register tile of six vectors of 16. A wider result
takes several tiles, each of which divides the softmax weights by their sums again. Measured against separate products,
for 16 to 2048 keys: 1 to 4 times as fast up to 80 columns, 0.65 to 1.81 times at 128, half as fast from 256 on."""
BROADCAST = 16
"""A value each of whose elements is read at least this often is computed once, in a separate group."""
BROADCAST_POINTS = 4096
"""A reader of fewer elements recomputes a broadcast value: that takes no longer than a call."""
ROW_BYTES = 4096
"""The most bytes of a row between two products of one group. The rows of a register tile, at most 16, are then 64 KiB
and fit every L2 beside the second operand's panel; longer rows lose nothing by going through memory."""


def attention(view: View) -> Iterator[Choice]:
    """Group a product, a softmax of its rows and the product with these weights: if both products are batched, or if
    the second has at most WIDEST columns and nothing else reads the values between. Any maximum and sum between the
    products count as a softmax."""
    for last in view.names:
        if view.kind(last) is not Kind.CONTRACTION:
            continue
        batched, narrow = _is_product(view.block(last), BATCHED), _may_weigh(view, last)
        above = _above(view, last, (Kind.ELEMENTWISE, Kind.ROWS)) if batched or narrow else []
        for first in above:
            has_batched_products = batched and _is_product(view.block(first), BATCHED)
            if not has_batched_products and not (narrow and _is_of_matrices(view.block(first))):
                continue
            between = _below(view, [first], above)
            combiners = {c for name in between for c in view.block(name).combiners}
            if {"max", "add"} <= combiners and (has_batched_products or _is_apart(view, [first, *between], last)):
                yield Choice(first, ((*between, last),))


def casts(view: View) -> Iterator[Choice]:
    """Add the cast of the result of an attention to its group, for targets whose attention casts its results."""
    for name in view.names:
        block, producers = view.block(name), view.producers(name)
        value = block.body[0] if len(producers) == len(block.reads) == len(block.body) == 1 else None
        if not isinstance(value, Apply) or value.kind is not TruncFOp or not isinstance(value.operands[0], Read):
            continue
        anchors = view.anchors(producers[0])
        if anchors.rows and anchors.contractions > 1 and _takes_all(view, producers[0], name):
            yield Choice(name, ((producers[0],),))


def products(view: View) -> Iterator[Choice]:
    """Group two consecutive products and the elementwise computes between them, each the only reader of the previous
    one, if the second product sums along the rows of the first, of at most ROW_BYTES. Each product is in one pair at
    most."""
    for first in view.names:
        if view.kind(first) is not Kind.CONTRACTION or view.anchors(first).rows:
            continue
        between = list(_single_readers(view, first))
        second = between.pop() if between else ""
        if not second or view.kind(second) is not Kind.CONTRACTION or view.anchors(second).rows:
            continue
        alone = all(view.anchors(name).contractions == 1 for name in (first, second))
        plain = all(_is_product(view.block(name)) and _is_plain(view.block(name)) for name in (first, second))
        if alone and plain and _reads_rows(view, second, [first, *between][-1]):
            yield Choice(first, ((*between, second),))


def partial_sums(view: View) -> Iterator[Choice]:
    """Group a sum of rows and the contraction that is its only producer, of which it is the only reader: a contraction
    in two steps."""
    for name in view.names:
        producers = view.producers(name)
        if view.kind(name) is not Kind.ROWS or view.block(name).combiners != ("add",) or len(producers) != 1:
            continue
        if view.kind(producers[0]) is Kind.CONTRACTION and view.readers(producers[0]) == [name]:
            yield Choice(name, (tuple(producers),))


def rows(view: View) -> Iterator[Choice]:
    """Group reductions of the same rows and the elementwise computes between them: softmax and norms."""
    for name in view.names:
        if view.kind(name) is not Kind.ROWS or view.anchors(name).contractions:
            continue
        above = _above(view, name, (Kind.ELEMENTWISE,))
        near = [r for r in above if _works_by_rows(view, r) and view.kind(r) is Kind.ROWS and _same_rows(view, name, r)]
        options = [(*_below(view, alike, above), *alike) for alike in (near, *([r] for r in near)) if alike]
        if options:
            yield Choice(name, tuple(dict.fromkeys(options)))


def consumers(view: View) -> Iterator[Choice]:
    """Add an elementwise compute outside groups of reductions to the group of its producer with the deepest reduction,
    and to groups alike; if these make a cycle, to the group of another producer: biases, activations."""
    for name in view.names:
        if view.kind(name) is not Kind.ELEMENTWISE or view.anchors(name):
            continue
        near = [p for p in view.producers(name) if _takes(view, p, name)]
        near.sort(key=partial(_age, view), reverse=True)
        if near:
            together = tuple(p for p in near if p is near[0] or _alike(view, p, near[0]))
            free = [p for p in view.producers(name) if not view.anchors(p)]
            around = ((p, *_between(view, p, name)) for p in near if free)
            yield Choice(name, tuple(dict.fromkeys([together, *((p,) for p in near), *around])))


def producers(view: View) -> Iterator[Choice]:
    """Add an elementwise compute, a gather or a compute without operands to the only group that reads it: padding,
    casts, operands of a norm, counts of a pooling's windows. A broadcast value is not added and computed once: the
    scales of a batch norm, which often depend on constants only."""
    for name in reversed(view.names):
        if view.anchors(name) or _is_broadcast(view, name):
            continue
        readers = {view.group(r): r for r in view.readers(name)}
        if len(readers) == 1:
            yield Choice(name, (tuple(readers.values()),))


def _is_broadcast(view: View, name: str) -> bool:
    """Whether a compute is elementwise with arithmetic on operands, and each of its readers, at least one, has
    BROADCAST times its elements or more and at least BROADCAST_POINTS."""
    block = view.block(name)
    if view.kind(name) is not Kind.ELEMENTWISE or not view.nodes[name].operands or not scalar_operations(block):
        return False
    readers = [points(view.block(reader)) for reader in view.readers(name)]
    return bool(readers) and min(readers) >= max(BROADCAST * points(block), BROADCAST_POINTS)


def chains(view: View) -> Iterator[Choice]:
    """Group elementwise computes and gathers outside groups of reductions: with producers that they read pointwise; and
    a compute that no compute reads with the first such one that has a common operand and as many elements."""
    ends: dict[tuple[str, int], str] = {}
    for name in view.names:
        if view.kind(name).is_anchor or view.anchors(name):
            continue
        near = [p for p in view.producers(name) if not view.anchors(p) and _is_pointwise(view, p, name)]
        if not view.readers(name):
            near += [ends.setdefault((value, points(view.block(name))), name) for value in view.nodes[name].operands]
        options = tuple((neighbour,) for neighbour in dict.fromkeys(near) if neighbour != name)
        if options:
            yield Choice(name, options)


RULES: Sequence[Rule] = Extended(
    "grouping rule", (attention, products, partial_sums, rows, consumers, producers, chains)
)
"""The default rules, after those of plugins."""


def with_casts(rules: Sequence[Rule] = RULES) -> Sequence[Rule]:
    """Return rules with `casts` behind `attention`."""
    return [each for rule in rules for each in ((rule, casts) if rule is attention else (rule,))]


def _above(view: View, name: str, through: tuple[Kind, ...]) -> list[str]:
    """The nearest computes, about NEAR, that `name` depends on via computes of the kinds `through`, the latest
    first."""
    producers_above: dict[str, None] = {}
    queue = deque([name])
    while queue and len(producers_above) < NEAR:
        for producer in view.producers(queue.popleft()):
            if producer not in producers_above:
                producers_above[producer] = None
                queue += [producer] if view.kind(producer) in through else []
    return sorted(producers_above, key=view.place.__getitem__, reverse=True)


def _below(view: View, first: Iterable[str], among: Iterable[str]) -> list[str]:
    """The computes in `among`, except contractions, that depend on `first` via computes which are no contractions;
    without `first`, in the order of `among`."""
    reached = set(first)
    for name in sorted(among, key=view.place.__getitem__):
        if view.kind(name) is not Kind.CONTRACTION and not reached.isdisjoint(view.producers(name)):
            reached.add(name)
    return [name for name in among if name in reached - set(first)]


def _single_readers(view: View, name: str) -> Iterator[str]:
    """Yield the only reader of a compute, its only reader, and so on, at most NEAR; the first that is not elementwise
    and pointwise is the last."""
    for _ in range(NEAR):
        readers = view.readers(name)
        if len(readers) != 1:
            return
        yield readers[0]
        if view.kind(readers[0]) is not Kind.ELEMENTWISE or not _is_pointwise(view, name, readers[0]):
            return
        name = readers[0]


def _is_apart(view: View, computes: Sequence[str], last: str) -> bool:
    """Whether only `computes` and `last` read the results of `computes`, and the function returns none of them."""
    inside = {*computes, last}
    return not any(name in view.returned or not inside.issuperset(view.readers(name)) for name in computes)


def _may_weigh(view: View, name: str) -> bool:
    """Whether a compute can be the second product of attention without batches: a matrix product of at most WIDEST
    columns and the only reader of an elementwise operand."""
    alone = any(view.kind(p) is Kind.ELEMENTWISE and len(view.readers(p)) == 1 for p in view.producers(name))
    return alone and _is_of_matrices(view.block(name)) and rows_of(view.block(name))[-1] <= WIDEST


def _is_of_matrices(block: Block) -> bool:
    """Whether a block is a product of two operands, one indexed by the result's row, the other by its column."""
    long_axes = {n for n in range(block.spatial) if block.axes[n].size > 1}
    moved = [{v for form in access.index for v in form.variables()} & long_axes for access in block.reads]
    return _is_product(block) and len(long_axes) == 2 and sorted(map(len, moved)) == [1, 1] and moved[0] != moved[1]


def _is_product(block: Block, spatial: int = 2) -> bool:
    """Whether a block is a contraction of two unconditional reads over one reduce axis, with at least `spatial` spatial
    axes."""
    is_unconditional = len(block.reads) == 2 and not any(access.where for access in block.reads)
    return (
        is_unconditional
        and block.spatial >= spatial
        and len(block.axes) == block.spatial + 1
        and kind_of(block) is Kind.CONTRACTION
    )


def _is_plain(block: Block) -> bool:
    """Whether each index of each read is a single axis, quotient or remainder, without a factor or a constant added to
    it."""
    forms = [form for access in block.reads for form in access.index]
    return all(form.constant == 0 and [factor for _, factor in form.terms] == [1] for form in forms)


def _reads_rows(view: View, product: str, producer: str) -> bool:
    """Whether a product sums along the last dimension of the result of `producer`, at most ROW_BYTES long."""
    block, (value, *_) = view.block(product), view.nodes[producer].results
    indices = [access.index for access in block.reads if access.buffer == value.name]
    if len(indices) != 1 or not indices[0] or indices[0][-1].variables() != {block.spatial}:
        return False
    return value.shape[-1] * element_bytes(value.element) <= ROW_BYTES


def _works_by_rows(view: View, name: str) -> bool:
    """Whether the deepest reduction of a compute's group is by rows, and none of its reductions is a contraction; False
    for a group without reductions."""
    anchors = view.anchors(name)
    return bool(anchors) and view.kind(anchors.latest) is Kind.ROWS and not anchors.contractions


def _age(view: View, producer: str) -> tuple[int, int, list[int], int]:
    """A sort key: the depth of the deepest reduction in a producer's group, then the producer's depth, then that
    reduction's extents. The order in the program comes last, so that equal parts of a program are grouped alike."""
    latest = view.anchors(producer).latest
    extents = [axis.size for axis in view.block(latest).axes]
    return view.age[latest][0], view.age[producer][0], extents, view.place[latest]


def _between(view: View, producer: str, name: str) -> list[str]:
    """The elementwise computes outside groups of reductions between a producer's group and `name`, such as a rotation
    of the halves of rows; the earliest first."""
    reached: list[str] = []
    for above in reversed(_above(view, name, (Kind.ELEMENTWISE,))):
        near = view.producers(above)
        if not view.anchors(above) and any(p in reached or view.same(p, producer) for p in near):
            reached.append(above)
    return reached


def _alike(view: View, first: str, second: str) -> bool:
    """Whether the groups of two computes have no contractions and their deepest reductions have equal row extents.
    Requires a reduction in each."""
    ends = view.anchors(first), view.anchors(second)
    if any(anchors.contractions for anchors in ends):
        return False
    return rows_of(view.block(ends[0].latest)) == rows_of(view.block(ends[1].latest))


def _same_rows(view: View, first: str, second: str) -> bool:
    """Whether two row reductions have equal extents of rows and of reduce axes."""
    blocks = view.block(first), view.block(second)
    lengths = [[axis.size for axis in block.axes if axis.is_reduce] for block in blocks]
    return rows_of(blocks[0]) == rows_of(blocks[1]) and lengths[0] == lengths[1]


def _takes(view: View, producer: str, name: str) -> bool:
    """Whether an elementwise reader can join the group of a producer: any reader if the deepest reduction is by rows
    and there are no contractions, else a pointwise one. Nothing joins a group without reduction, nor attention: its
    schedule ends with the product."""
    anchors = view.anchors(producer)
    if not anchors or (anchors.rows and anchors.contractions > 1):
        return False
    return _works_by_rows(view, producer) or _is_pointwise(view, producer, name)


def _takes_all(view: View, producer: str, name: str) -> bool:
    """Whether a compute is the only reader of a producer, element by element, which the function does not return."""
    alone = view.readers(producer) == [name] and producer not in view.returned
    return alone and _is_pointwise(view, producer, name)


def _is_pointwise(view: View, producer: str, name: str) -> bool:
    return all(is_pointwise(view.block(name), value) for value in view.read(name, producer))
