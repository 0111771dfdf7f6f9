"""Folds: trees of one associative operation over terms. They extend into producers that have no other reader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type, Float64Type, IntegerType
from xdsl.ir import Attribute, Operation

from compiler.affine import linear as lin
from compiler.alternatives.law import Conditions
from compiler.dialects.access import AxisAttr
from compiler.graph.tree import Compute, Graph
from compiler.program import body
from compiler.program.body import Apply, Read, Scalar
from compiler.program.tree import Access, Block, access_at

FOLDS: Mapping[type[Operation], str] = {
    arith.AddfOp: "add",
    arith.AddiOp: "add",
    arith.MaximumfOp: "max",
    arith.MaxSIOp: "max",
    arith.MaxUIOp: "max",
    arith.MinimumfOp: "min",
    arith.MinSIOp: "min",
    arith.MinUIOp: "min",
}
"""Map an operation to the combiner of the equal reduction."""


@dataclass(frozen=True)
class FoldTerm:
    """A term of a fold. value: an expression over `reads`, of the dtypes `types`; their indices are forms over the axes
    of the root compute, then the term's reduce axes `reduces`."""

    value: Scalar
    reads: tuple[Access, ...]
    types: tuple[Attribute, ...]
    reduces: tuple[AxisAttr, ...] = ()


@dataclass(frozen=True)
class Fold:
    """A `value` in the compute `root` that folds `terms`. absorbed: the producers whose expressions became terms.
    is_part: whether the value is an operand of another fold in `root`."""

    root: Compute
    value: Apply
    combiner: str
    terms: tuple[FoldTerm, ...]
    absorbed: tuple[Compute, ...]
    is_part: bool


def folds_of(node: object, graph: Graph, conditions: Conditions) -> Iterator[Fold]:
    """The permitted folds in a compute of one result, outer ones first; in a reduction, only those by its combiner. An
    operation on a literal is none. max(max(a, b), c) is a fold of three terms, and inside it one of two."""
    if not isinstance(node, Compute) or len(node.results) != 1 or node.block.table is not None:
        return
    block, (result,), inner_nodes = node.block, node.results, set[int]()
    for value in block.body if block.combiners else body.reached(block.body):
        combiner = FOLDS.get(value.kind) if isinstance(value, Apply) else None
        if combiner is None or not isinstance(value, Apply) or value.types != (result.scalar,):
            continue
        if any(isinstance(each, Apply) and not each.operands for each in value.operands):  # such as max(x, 0)
            continue
        inner_nodes |= {id(each) for each in value.operands if isinstance(each, Apply) and each.kind is value.kind}
        if block.combiners in ((), (combiner,)) and _is_permitted(combiner, result.element, conditions):
            inside = _Inside(node, value.kind, graph, [])
            terms = tuple(inside.terms(FoldTerm(value, block.reads, block.read_types), node))
            yield Fold(node, value, combiner, terms, tuple(inside.absorbed), id(value) in inner_nodes)


def _is_permitted(combiner: str, element: Attribute, conditions: Conditions) -> bool:
    if isinstance(element, IntegerType):
        return bool(element.width.data > 1)
    is_exact = combiner != "add"
    return is_exact or (isinstance(element, Float32Type | Float64Type) and conditions.policy != "strict")


@dataclass(frozen=True)
class _Inside:
    """The search for the terms of a fold by the operation `kind` in the compute `root` of a graph; computes that it
    enters are added to `absorbed`."""

    root: Compute
    kind: type[Operation]
    graph: Graph
    absorbed: list[Compute]

    def terms(self, term: FoldTerm, reader: Compute) -> Iterator[FoldTerm]:
        """The terms into which a term of `reader` can be expanded; only the term itself if it is no fold."""
        value = term.value
        if isinstance(value, Apply) and value.kind is self.kind:
            for operand in value.operands:
                yield from self.terms(replace(term, value=operand), reader)
            return
        producer = self._only_read(term.reads[value.position], reader) if isinstance(value, Read) else None
        if producer is None or not isinstance(value, Read):
            yield term
            return
        self.absorbed.append(producer)
        inner = self._at(producer.block, term.reads[value.position])
        if producer.block.combiners:
            yield inner
        else:
            yield from self.terms(inner, producer)

    def _only_read(self, access: Access, reader: Compute) -> Compute | None:
        """The producer of a value that only `reader` reads, without conditions, if the producer folds or reduces by the
        same combiner and dtype; else None."""
        node = self.graph.producers.get(access.buffer)
        if not isinstance(node, Compute) or len(node.results) != 1 or node.block.table is not None or access.where:
            return None
        readers = self.graph.consumers[access.buffer]
        alone = len(readers) == 1 and readers[0] is reader and access.buffer not in self.graph.results
        block, first = node.block, node.block.body[0]
        folds = not block.combiners and isinstance(first, Apply) and first.kind is self.kind
        same = node.results[0].element == self.root.results[0].element
        return node if alone and same and (folds or block.combiners == (FOLDS[self.kind],)) else None

    def _at(self, block: Block, access: Access) -> FoldTerm:
        """The expression of a block's result at the index of a read of that result, as a term over the root's axes."""
        root, reduces = self.root.block, block.axes[block.spatial :]
        count = len(root.axes)
        forms = dict(enumerate(access.index))
        forms |= {block.spatial + n: lin.variable(count + n) for n in range(len(reduces))}
        extents = ranges((*root.axes, *reduces))
        reads = tuple(access_at(each, forms, extents) for each in block.reads)
        return FoldTerm(body.rewrite(block.body[0], {}, forms), reads, block.read_types, reduces)


def ranges(axes: Sequence[AxisAttr]) -> dict[int, lin.Range]:
    """Map the position of each axis to its range (0, extent - 1)."""
    return {n: (0, axis.size - 1) for n, axis in enumerate(axes)}
