"""flattened: merge a sum of sums into one sum."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from math import prod

from xdsl.dialects.builtin import IntegerType

from compiler.affine import linear as lin
from compiler.affine.linear import Linear
from compiler.alternatives.cost import gain
from compiler.alternatives.law import Conditions, Form, Law, LawScope
from compiler.dialects.access import axis_attribute
from compiler.graph.grouping.facts import size
from compiler.graph.normal_form import with_axes
from compiler.graph.tree import Compute, Graph
from compiler.program.tree import Block

BUSY = 64
"""The least number of results that keeps all threads busy if each result is reduced by a serial loop."""
_EXACT = ("max", "min")
"""The combiners of floats whose result does not depend on the order."""


def _forms(graph: Graph, conditions: Conditions) -> Iterator[Form]:
    """Merge a sum of sums into one sum, and a permutation of a gradient into its computation.

        %S = te.compute "S" [i = 64, j = 8, reduce k = 32] combine [add] (%a = %A[i, j, k] ...)
        %T = te.compute "T" [i = 64, reduce j = 8] combine [add] (%s = %S[i, j] ...) { yield %s }
      ->
        %T = te.compute "T" [i = 64, reduce j = 8, reduce k = 32] combine [add] (%a = %A[i, j, k] ...)

    It applies to any combiner, if nothing else reads the inner sums and the outer one reads each once. The order of the
    two sums is one of the orders of the merged one, so only the choice of an order changes: sums and products of floats
    are not merged under `strict`, other combiners are exact.

    It is a choice and no law of te-canonicalize, since sums in steps may have better schedules: a product is reduced
    along one axis by panels, and sums of rows along the rows. So it applies to gradients of a convolution's weights,
    whose rule schedules both at once, to windows along rows and columns, and to sums over neighbours in memory that fit
    L2 or have many results. Sums of -0.0 begin at 0.0 in both forms.
    """
    for outer in graph.nodes:
        inner = _summed(outer, graph)
        if inner is None or not isinstance(outer, Compute) or not _is_permitted(inner, conditions):
            continue
        block = one_block(outer.block, inner.block)
        if not (_is_gradient(block) or _is_pooling(block) or _is_contiguous(outer, block, graph, conditions)):
            continue
        nodes = [replace(outer, block=block) if node is outer else node for node in graph.nodes if node is not inner]
        new = graph.with_nodes(nodes)
        names = f"{inner.block.label} and {outer.block.label}"
        yield Form(new, gain(graph, new, conditions), where=f"{names} are one reduction")


def _summed(outer: object, graph: Graph) -> Compute | None:
    """The reduction that only `outer` reads, each result once: a reduction by the same combiner, or a permutation of a
    gradient. None for any other `outer`."""
    if not isinstance(outer, Compute) or len(outer.results) != 1 or len(outer.block.reads) != 1:
        return None
    (value,), block = outer.results, outer.block
    access = replace(outer, block=replace(block, combiners=())).copied(0)
    inner = None if access is None else graph.producers.get(access.buffer)
    if access is None or access.where or not isinstance(inner, Compute) or len(inner.results) != 1:
        return None
    if inner.results[0].element != value.element or len(graph.consumers[access.buffer]) != 1:
        return None
    if not isinstance(next(iter(inner.block.combiners), None), str) or access.buffer in graph.results:
        return None
    if block.combiners not in ((), inner.block.combiners) or not _is_permutation(block):
        return None
    return inner if block.combiners or _is_gradient(inner.block) else None


def _is_permutation(block: Block) -> bool:
    """Whether a block of one read reads each element at most once: along axes, or in windows that do not overlap."""
    index = [form for form in block.reads[0].index if not form.is_constant]
    axes = {n for n, axis in enumerate(block.axes) if axis.size > 1}
    moved = [axis for form in index for axis in _digits(form, block)]
    return len(moved) == len(set(moved)) and axes <= set(moved)


def _digits(form: Linear, block: Block) -> list[int]:
    """The axes of a form in which each stride is the product of the smaller extents, the largest stride first: [y, p]
    for `2 * y + p` with p of extent 2, windows that do not overlap. Each axis twice for any other form."""
    factors = sorted((form.coefficient(axis) or 0, axis) for axis in form.variables())
    sizes = [1, *(block.axes[axis].size for _, axis in factors)]
    strides = [prod(sizes[: n + 1]) for n in range(len(factors))]
    axes = [axis for _, axis in factors]
    return axes[::-1] if form.constant == 0 and [factor for factor, _ in factors] == strides else [*axes, *axes]


def _is_permitted(inner: Compute, conditions: Conditions) -> bool:
    exact = isinstance(inner.results[0].element, IntegerType) or inner.block.combiners[0] in _EXACT
    return exact or conditions.policy != "strict"


def one_block(outer: Block, inner: Block) -> Block:
    """The outer reduction with the inner one inlined for its read: one block that reduces over the axes of both."""
    (access,), count = outer.reads, len(outer.axes)
    reduces = inner.axes[inner.spatial :]
    axes = [axis_attribute(f"{inner.label}.{axis.label}", axis.size, True) for axis in reduces]
    forms = dict(enumerate(access.index)) | {inner.spatial + n: lin.variable(count + n) for n in range(len(reduces))}
    block = with_axes(inner, (*outer.axes, *axes), forms)
    return replace(block, label=outer.label, attributes=outer.attributes, location=outer.location)


def _is_gradient(block: Block) -> bool:
    """Whether a block is the gradient of a convolution's weights: a sum of products, one factor read through windows
    whose taps are axes of the result, both factors indexed by all reduce axes."""
    if block.combiners != ("add",) or len(block.reads) != 2 or block.spatial < 4:
        return False
    windows = [form for access in block.reads for form in access.index if len(form.variables()) == 2]
    reduced = set(range(block.spatial, len(block.axes)))
    moved = [set().union(*(form.variables() for form in access.index)) for access in block.reads]
    slides = all(len(form.variables() & reduced) == 1 for form in windows)
    return bool(windows) and slides and all(reduced <= axes for axes in moved)


def _is_pooling(block: Block) -> bool:
    """Whether a block reduces its only, unconditional read over the taps of windows along two or more dimensions."""
    if len(block.reads) != 1 or block.table is not None or block.reads[0].where:
        return False
    windows = [form.variables() for form in block.reads[0].index if len(form.variables()) > 1]
    reduced = [{n for n in used if n >= block.spatial} for used in windows]
    reduce_axes = set(range(block.spatial, len(block.axes)))
    return len(windows) > 1 and all(len(axes) == 1 for axes in reduced) and set().union(*reduced) == reduce_axes


def _is_contiguous(outer: Compute, block: Block, graph: Graph, conditions: Conditions) -> bool:
    """Whether `block`, the merged form of `outer`, reduces its only read along whole last dimensions, and the read
    buffer fits L2 or there are at least BUSY results."""
    if len(block.reads) != 1 or block.table is not None or block.reads[0].where:
        return False
    (access,), source = block.reads, graph.values[block.reads[0].buffer]
    reduced = {lin.variable(n): axis.size for n, axis in enumerate(block.axes) if axis.is_reduce}
    is_whole = [reduced.get(form) == extent for form, extent in zip(access.index, source.shape, strict=True)]
    are_last = all(before <= after for before, after in pairwise(is_whole)) and sum(is_whole) == len(reduced)
    is_fast = size(source) <= conditions.machine.l2_bytes or prod(outer.results[0].shape) >= BUSY
    return are_last and is_fast


FLATTENED = Law("flattened", LawScope.PROGRAM, _forms)
