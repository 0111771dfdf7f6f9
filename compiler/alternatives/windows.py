"""windows: turn a fold of one expression at the offsets of a box into a reduction over windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.alternatives.boxes import Box, box_of
from compiler.alternatives.cost import cycles
from compiler.alternatives.flattened import BUSY
from compiler.alternatives.folds import Fold, FoldTerm, folds_of, ranges
from compiler.alternatives.law import Conditions, Form, Law, LawScope
from compiler.dialects.access import AxisAttr, axis_attribute
from compiler.graph.grouping.facts import points
from compiler.graph.hashing import swapped
from compiler.graph.laws.reductions import merged
from compiler.graph.laws.views import through, view_of
from compiler.graph.tree import Compute, Graph
from compiler.program import body
from compiler.program.body import Apply, Read, Scalar
from compiler.program.names import Names
from compiler.program.tree import Access, Block, Buffer

FEW = 3
"""The most terms of a fold of neighbours for which a reduction is not faster."""
LOADS = 2
"""The elements that a core loads in a cycle, one by one."""


def _forms(graph: Graph, conditions: Conditions) -> Iterator[Form]:
    """Reduce over windows instead of folding one expression at the offsets of a box.

        %Y = te.compute "Y" [i = 28] (%a = %X[2 * i] ..., %b = %X[2 * i + 1] ...) { max(%a, %b) }
      ->
        %Y = te.compute "Y" [i = 28, reduce p = 2] combine [max] (%x = %X[2 * i + p] ...) { %x }

        %P = te.compute "P" [o = 8, i = 26, reduce c = 8] combine [add] (%X[c, i], %W[o, c, 0]) { mulf }  // %Q: i + 1
        %Y = te.compute "Y" [o = 8, i = 26] (%p = %P[o, i] ..., %q = %Q[o, i] ...) { %p + %q }
      ->
        %Y = te.compute "Y" [o = 8, i = 26, reduce c = 8, reduce p = 2] combine [add]
            (%X[c, i + p], %W[o, c, p]) { mulf }

    The fold may go through elementwise computes, in any order. Its terms are one expression, or reductions of one by
    the same combiner, whose reads differ by constants: these are the offsets of a box, each once. The window reads
    the same literals outside of a value as the terms do. The folded computes have no other readers.

    Maxima, minima and integers are exact. Sums of f32 and f64 change their order, not under `strict`; a sum of -0.0
    alone is 0.0. It pays for terms that are reductions, where these become windows or one longer axis, for more than
    three elements that several computes fold, and for strided windows, whose slices vectors load element by element.
    """
    inner_nodes, absorbed = set[int](), set[int]()
    for node in reversed(graph.nodes):
        for fold in folds_of(node, graph, conditions) if id(node) not in absorbed else ():
            reduction, root = _reduction(fold, graph), fold.root.block
            is_part = fold.is_part or id(node) in inner_nodes
            inner_nodes |= {id(each) for each in fold.absorbed}
            if reduction is None or not _pays(fold, reduction, is_part):
                continue
            absorbed |= {id(each) for each in fold.absorbed}
            new, count = _folded(graph, fold, reduction.block), len(fold.terms)
            loads = count * points(root) / LOADS if _is_strided(reduction.block, root.spatial) else 0
            gain = (cycles(graph, conditions) + loads) / max(cycles(new, conditions), 1)
            yield Form(new, gain, where=f"{root.label} reduces windows of {count} elements")
            break


@dataclass(frozen=True)
class _Reduction:
    """A reduction over windows. The axes of `block` are those of the root, then the reduce axes of the terms, then from
    position `first` on the axes of the windows."""

    block: Block
    first: int


def _reduction(fold: Fold, graph: Graph) -> _Reduction | None:
    """The reduction over windows equal to a fold; None if its terms are not one expression at the offsets of a box."""
    root, reduces = fold.root.block, fold.terms[0].reduces
    if any(len(term.reduces) != len(reduces) for term in fold.terms):
        return None
    sizes = {tuple(axis.size for axis in term.reduces) for term in fold.terms}
    if len(sizes) > 1 or (root.combiners and reduces):
        return None
    over_terms = replace(root, axes=(*root.axes, *reduces))
    first, *further_terms = [
        replace(t, reads=tuple(_source(read, over_terms, graph) for read in t.reads)) for t in fold.terms
    ]
    used = sorted({leaf.position for leaf in body.leaves([first.value]) if isinstance(leaf, Read)})
    matched_reads = [[first.reads[n]] for n in used]
    for term in further_terms:
        pairs: dict[int, int] = {}
        if not _matches(first, term, first.value, term.value, pairs):
            return None
        for n, reads in zip(used, matched_reads, strict=True):
            reads.append(term.reads[pairs[n]])
    offsets = [
        tuple(form.constant for each in term for form in each.index) for term in zip(*matched_reads, strict=True)
    ]
    box = box_of(offsets)
    if box is None or not box.sides:
        return None
    axes = (*over_terms.axes, *(axis_attribute(f"w{n}", side.extent, True) for n, side in enumerate(box.sides)))
    joined: list[Access] = []
    for reads in matched_reads:
        rank = sum(len(access.index) for access in joined)
        access = _joined(reads, _at_offsets(reads[0], box, rank, len(over_terms.axes)), graph, over_terms, axes)
        if access is None:
            return None
        joined.append(access)
    value = body.rewrite(first.value, {n: body.read(position, first.types[n]) for position, n in enumerate(used)})
    new = replace(root, axes=axes, body=(value,), combiners=(fold.combiner,))
    types = tuple(first.types[n] for n in used)
    return _Reduction(replace(new, reads=tuple(joined), read_types=types), len(over_terms.axes))


def _source(access: Access, block: Block, graph: Graph) -> Access:
    """Replace a read of a view by a read of its source, through views of views while that is exact."""
    while isinstance(node := graph.producers.get(access.buffer), Compute) and len(node.results) == 1:
        view = view_of(node, 0, node.results[0], graph)
        new = None if view is None else through(access, view, block)
        if new is None:
            break
        access = new
    return access


def _matches(first: FoldTerm, other: FoldTerm, a: Scalar, b: Scalar, pairs: dict[int, int]) -> bool:
    """Whether `a` of `first` and `b` of `other` are equal up to constants in indices. Adds to `pairs` the position in
    `other` of each read of `first`."""
    if isinstance(a, Read) and isinstance(b, Read):
        access, counterpart = first.reads[a.position], other.reads[b.position]
        same = access.buffer == counterpart.buffer and [f.terms for f in access.index] == [
            f.terms for f in counterpart.index
        ]
        return same and pairs.setdefault(a.position, b.position) == b.position
    if not isinstance(a, Apply) or not isinstance(b, Apply):
        return a is b
    for spelling in (b, swapped(b)):
        if isinstance(spelling, Apply) and _operation(a) == _operation(spelling):
            new_pairs = dict(pairs)
            if all(_matches(first, other, x, y, new_pairs) for x, y in zip(a.operands, spelling.operands, strict=True)):
                pairs |= new_pairs
                return True
    return False


def _operation(value: Apply) -> tuple[object, ...]:
    return value.kind, value.properties, value.types, value.result


def _at_offsets(access: Access, box: Box, start: int, count: int) -> Access:
    """A read over the axes of a box, without conditions: in dimension d the constant is coordinate `start + d` of the
    origin, and the factor of axis `count + n` is coordinate `start + d` of the direction of side n."""
    index: list[Linear] = []
    for position, form in enumerate(access.index, start):
        steps = [lin.variable(count + n).scaled(side.direction[position]) for n, side in enumerate(box.sides)]
        index.append(sum(steps, Linear(form.terms, box.origin[position])))
    return replace(access, index=tuple(index), where=(), otherwise=None)


def _joined(
    reads: Sequence[Access], access: Access, graph: Graph, block: Block, axes: Sequence[AxisAttr]
) -> Access | None:
    """The read `access`, which covers `reads` over windows, with its conditions; None unless the conditions of each
    read are exactly those of its bounds that can fail."""
    # X[i - 1] where (i - 1 >= 0), X[i] and X[i + 1] where (6 - i >= 0), of extent 8, are X[i + w - 1], w in 0..2, where
    # (i + w - 1 >= 0, 8 - i - w >= 0): each condition is a bound of X at its offset.
    source, literals = graph.values[access.buffer], {each.otherwise for each in reads if each.where}
    bounds = [{bound for bound in _bounds(each, source) if not bound.always(block.axis_ranges)} for each in reads]
    if len(literals) > 1 or any(
        set(each.where) != read_bounds for each, read_bounds in zip(reads, bounds, strict=True)
    ):
        return None
    where = tuple(bound for bound in _bounds(access, source) if not bound.always(ranges(axes)))
    return replace(access, where=where, otherwise=literals.pop()) if where else access


def _bounds(access: Access, source: Buffer) -> Iterator[Condition]:
    for form, size in zip(access.index, source.shape, strict=True):
        yield Condition(form)
        yield Condition(lin.constant(size - 1) - form)


def _pays(fold: Fold, reduction: _Reduction, is_part: bool) -> bool:
    """Whether a reduction over windows has a faster schedule than the fold.

    If the terms are reductions, it needs at least BUSY results, and windows that slide or one longer reduce axis. If
    they are elements, it must be a whole fold, not `is_part`, of more than FEW terms or strided: vectors load fewer
    neighbours as fast.
    """
    spatial = fold.root.block.spatial
    if reduction.first == spatial:
        return not is_part and (len(fold.terms) > FEW or _is_strided(reduction.block, spatial))
    used = [form.variables() for access in reduction.block.reads for form in access.index]
    slides = any(min(axes) < spatial and max(axes) >= reduction.first for axes in used if axes)
    is_longer = len(merged(reduction.block).axes) == reduction.first
    return points(reduction.block) >= BUSY and (slides or is_longer)


def _is_strided(block: Block, spatial: int) -> bool:
    """Whether windows have a stride above 1: an index with a reduce axis has a spatial axis of a factor above 1 in
    size."""
    forms = [form for access in block.reads for form in access.index]
    windows = [form for form in forms if any(n >= spatial for n in form.variables())]
    return any(abs(form.coefficient(n) or 1) > 1 for form in windows for n in range(spatial))


def _folded(graph: Graph, fold: Fold, block: Block) -> Graph:
    """Replace a fold by the reduction `block`, in a new compute if the fold is only part of its compute's value."""
    root = fold.root
    if fold.value is root.block.body[0]:
        new = [replace(root, block=block)]
    else:
        labels = [node.block.label for node in graph.nodes if isinstance(node, Compute)]
        name = Names([*graph.values, *labels]).fresh(f"{block.label}.windows")
        value = Buffer(name, tuple(axis.size for axis in root.block.axes), root.results[0].element)
        read = body.read(len(root.block.reads), value.scalar)
        reads = *root.block.reads, Access(name, tuple(map(lin.variable, range(len(root.block.axes)))))
        values = tuple(body.replaced(each, fold.value, read) for each in root.block.body)
        reader = replace(root.block, reads=reads, read_types=(*root.block.read_types, value.scalar), body=values)
        new = [Compute(replace(block, label=name), (value,)), replace(root, block=reader)]
    absorbed = {id(each) for each in fold.absorbed}
    nodes = [n for node in graph.nodes if id(node) not in absorbed for n in (new if node is root else [node])]
    return graph.with_nodes(nodes)


WINDOWS = Law("windows", LawScope.PROGRAM, _forms)
