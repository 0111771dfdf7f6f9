"""Split axes by whose quotients and remainders operands are indexed, such as the axes of a reshape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from compiler.affine import linear as lin
from compiler.affine.linear import Linear, Quotient
from compiler.dialects.access import axis_attribute
from compiler.graph.grouping.facts import Kind, kind_of
from compiler.graph.laws.views import ReadView, quotients, through, view_of
from compiler.graph.normal_form import with_axes
from compiler.graph.tree import Compute, Graph, Node
from compiler.program.tree import Access, Block, Buffer

Extents = tuple[tuple[int, ...], ...]
"""For each dimension of a value, the extents that it is split into."""


def split_axes(graph: Graph) -> Graph:
    """Split the axes that views of operands divide, and read the sources of these views.

        %U = te.compute "U" [k = 27, p = 64] (%x = %X[k floordiv 9, ...k mod 9...] ...) { yield %x }
        %V = te.compute "V" [o = 8, k = 27] (%w = %W[o, k floordiv 9, (k mod 9) floordiv 3, k mod 3] ...) { yield %w }
        %Y = te.compute "Y" [o = 8, p = 64, reduce k = 27] combine [add] (%V[o, k], %U[k, p]) { mulf }
      ->
        %Y = te.compute "Y" [o = 8, y = 8, x = 8, reduce c = 3, reduce r = 3, reduce s = 3] combine [add]
            (%W[o, c, r, s], %X[c, y + r, x + s]) { mulf }

    A split must leave no quotient in the compute and add none to readers of its result; results of the function keep
    their shapes. Axes of a product, and spatial axes of a reduction, are split only if that makes windows `y + r`. So
    the rows of several images, or the heads that a product sums over, stay one axis: copying them costs less than a
    reduction over two axes.
    """
    views: dict[str, ReadView] = {}
    splits: dict[str, Extents] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        if isinstance(node, Compute):
            node = _reading(node, splits)
            split = _split(node, views, graph)
            if split is not None:
                node = Compute(split.block, split.results(node))
                splits |= {value.name: split.extents for value in node.results}
            for position, value in enumerate(node.results):
                view = view_of(node, position, value, graph) if value.name not in splits else None
                if view is not None and view.access.buffer not in splits:
                    views[value.name] = view
        nodes.append(node)
    return graph.with_nodes(nodes)


@dataclass(frozen=True)
class _Split:
    """A block whose axes are split, and for each original spatial axis the extents that it is split into."""

    block: Block
    extents: Extents

    def results(self, node: Compute) -> tuple[Buffer, ...]:
        """The results of `node` with the dimensions split."""
        shape = tuple(extent for extents in self.extents for extent in extents)
        return tuple(replace(value, shape=shape) for value in node.results)


def _split(node: Compute, views: Mapping[str, ReadView], graph: Graph) -> _Split | None:
    """Read the sources of views, and split the axes of a compute so that no quotient is left; None if there is no
    quotient, one would be left, or the split does not pay or would change a result of the function."""
    block = node.block
    if block.table is not None:
        return None
    reads = tuple(_sources(access, views, block) if access.buffer in views else access for access in block.reads)
    if not any(map(_has_quotients, reads)):
        return None
    extents = [[axis.size] for axis in block.axes]
    new = replace(block, reads=reads)
    while (divided_axis := next(_divided(new), None)) is not None:
        new = _divide(new, *divided_axis, extents)
    split = _Split(new, tuple(map(tuple, extents[: block.spatial])))
    if any(map(quotients, new.reads)) or not _is_no_worse(block, split):
        return None
    return split if new.spatial == block.spatial or _can_split(node, split, graph) else None


def _has_quotients(access: Access) -> bool:
    """Whether an index of a read has a quotient or a remainder; those in conditions do not count."""
    return any(isinstance(atom, Quotient) for form in access.index for atom, _ in form.terms)


def _sources(access: Access, views: Mapping[str, ReadView], block: Block) -> Access:
    """Replace a read of a view by a read of its source, through views of views while that is exact."""
    while (view := views.get(access.buffer)) is not None and (new := through(access, view, block)) is not None:
        access = new
    return access


def _divided(block: Block) -> Iterator[tuple[int, int]]:
    """Yield each axis of which a read has the quotient or remainder by a divisor of its extent, and the divisor."""
    forms = [form for access in block.reads for form in (*access.index, *(c.form for c in access.where))]
    for atom in (atom for form in forms for atom in _atoms(form)):
        for axis in atom.form.variables():
            size = block.axes[axis].size
            if atom.form == lin.variable(axis) and size % atom.divisor == 0:
                yield axis, atom.divisor


def _atoms(form: Linear) -> Iterator[Quotient]:
    """The quotients and remainders of a form, nested ones first."""
    for atom, _ in form.terms:
        if isinstance(atom, Quotient):
            yield from _atoms(atom.form)
            yield atom


def _divide(block: Block, axis: int, divisor: int, extents: list[list[int]]) -> Block:
    """Split an axis n of a block into n.0 and n.1 with n = divisor * n.0 + n.1. Updates `extents`, which has the
    extents of each original axis."""
    before, old = 0, 0
    while before + len(extents[old]) <= axis:
        before, old = before + len(extents[old]), old + 1
    size = block.axes[axis].size // divisor
    extents[old][axis - before : axis - before + 1] = [size, divisor]
    label, is_reduce = block.axes[axis].label, block.axes[axis].is_reduce
    new = [axis_attribute(f"{label}.{n}", extent, is_reduce) for n, extent in enumerate((size, divisor))]
    moved = {n: lin.variable(n if n < axis else n + 1) for n in range(len(block.axes))}
    moved[axis] = lin.variable(axis).scaled(divisor) + lin.variable(axis + 1)
    return with_axes(block, [*block.axes[:axis], *new, *block.axes[axis + 1 :]], moved)


def _is_no_worse(block: Block, split: _Split) -> bool:
    """Whether a split costs nothing, or makes windows. It costs nothing for an elementwise compute, and for a reduction
    that is no contraction and gets no further conditions or spatial axes."""
    added = sum(len(access.where) for access in split.block.reads) - sum(len(a.where) for a in block.reads)
    is_product = kind_of(block) is Kind.CONTRACTION
    if not block.combiners or (not is_product and added <= 0 and split.block.spatial == block.spatial):
        return True
    return _windows(split.block) > _windows(block)


def _windows(block: Block) -> int:
    """The number of indices that combine spatial and reduce axes longer than 1, such as `y + r`."""
    long = {n for n, axis in enumerate(block.axes) if axis.size > 1}
    moved = [form.variables() & long for access in block.reads for form in access.index]
    return sum(min(axes) < block.spatial <= max(axes) for axes in moved if axes)


def _can_split(node: Compute, split: _Split, graph: Graph) -> bool:
    """Whether the results of a compute may get the split shape: none is returned or an operand of a call or a table,
    and no reader gets more quotients."""
    for value in node.results:
        for reader in graph.consumers[value.name]:
            if not isinstance(reader, Compute) or (reader.block.table and reader.block.table.buffer == value.name):
                return False
            reads = [access for access in reader.block.reads if access.buffer == value.name]
            if any(quotients(_at(a, split.extents, reader.block)) > quotients(a) for a in reads):
                return False
    return not any(value.name in graph.results for value in node.results)


def _reading(node: Compute, splits: Mapping[str, Extents]) -> Compute:
    """Adapt the reads of a node to values that are split; `splits` maps such a value to its extents."""
    block = node.block
    if not any(name in splits for name in block.sources):
        return node
    reads = tuple(_at(a, splits[a.buffer], block) if a.buffer in splits else a for a in block.reads)
    return replace(node, block=replace(block, reads=reads))


def _at(access: Access, extents: Extents, block: Block) -> Access:
    """A read of a value whose dimensions are split into `extents`: each index becomes one index for each part."""
    pairs = zip(access.index, extents, strict=True)
    return replace(access, index=tuple(digit for form, split in pairs for digit in _digits(form, split, block)))


def _digits(form: Linear, extents: Sequence[int], block: Block) -> Iterator[Linear]:
    """The indices of a split dimension for the index `form`, outermost first: for extents (4, 7), form floordiv 7 and
    form mod 7."""
    ranges, strides = block.axis_ranges, lin.strides(extents)
    for number, stride in enumerate(strides):
        remainder = form if number == 0 else lin.mod(form, strides[number - 1], ranges)
        yield remainder if stride == 1 else lin.floordiv(remainder, stride, ranges)
