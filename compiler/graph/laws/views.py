"""Views: values whose elements are copies of another value's elements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir.affine import AffineExpr

from compiler.affine import linear as lin
from compiler.affine.condition import Condition, to_set
from compiler.affine.exact import escape
from compiler.affine.limits import END
from compiler.affine.linear import Linear, Quotient
from compiler.graph.tree import Compute, Graph, Node
from compiler.program.body import Read
from compiler.program.tree import Access, Block, Buffer, Table

MOST_CONDITIONS = 8
"""The most conditions that a law may give a read."""
MOST_QUOTIENTS = 6
"""The most quotients and remainders that a law may give a read."""


@dataclass(frozen=True)
class ReadView:
    """A value of `shape` that copies elements of `source`. `access` is the read of the source over the value's indices,
    with conditions and the literal where they fail."""

    source: Buffer
    access: Access
    shape: tuple[int, ...]

    @property
    def where(self) -> tuple[Condition, ...]:
        """The conditions under which an element is a copy."""
        return self.access.where

    @property
    def otherwise(self) -> FloatAttr | IntegerAttr | None:
        """The literal of elements for which a condition fails; None without conditions."""
        return self.access.otherwise


def absorb_views(graph: Graph) -> Graph:
    """Read the source instead of a view: a permutation, reshape, slice, broadcast, flip, stride or pad.

        %R = te.compute "R" [i = 128, a = 12, d = 64] (%x = %X[i, a * 64 + d] : tensor<128x768xf32>) { yield %x }
        %Y = te.compute "Y" [a = 12, i = 128, d = 64] (%r = %R[i, a, d] ...) { ... }
      ->
        %Y = te.compute "Y" [a = 12, i = 128, d = 64] (%r = %X[i, a * 64 + d] ...) { ... }

    A read keeps the view if the read of the source would be slower: by a new quotient or remainder in a reduction, or
    one that stays in the memory offset in another compute; or by a condition in a reduction without windows. So it does
    if a value exceeds 64 bits. Conditions of both compose if their `else` values are equal or the view adds none.
    """
    views: dict[str, ReadView] = {}

    def view(access: Access, node: Compute) -> ReadView | None:
        return views.get(access.buffer)

    nodes: list[Node] = []
    for node in graph.nodes:
        if isinstance(node, Compute):
            node = reading_through(node, view)
            for position, value in enumerate(node.results):
                seen = view_of(node, position, value, graph)
                if seen is not None:
                    views[value.name] = seen
        nodes.append(node)
    return graph.with_nodes(nodes)


def view_of(node: Compute, position: int, value: Buffer, graph: Graph) -> ReadView | None:
    """Return the view of an input that result number `position` of a node, `value`, is, if it only copies elements;
    None for a computed or converted result."""
    access = node.copied(position)
    if access is None:
        return None
    source = graph.values[access.buffer]
    return ReadView(source, access, value.shape) if source.element == value.element else None


def reading_through(node: Compute, view: Callable[[Access, Compute], ReadView | None]) -> Compute:
    """Return a node that reads the sources of views if that is no slower; the same object if nothing changes. `view`
    returns the view that a read of the node accesses, or None."""
    block = node.block
    reads = []
    for access in block.reads:
        viewed = view(access, node)
        reads.append(access if viewed is None else composed(access, viewed, block) or access)
    table = block.table and _table_through(block.table, block, view, node)
    if table is block.table and all(a is b for a, b in zip(reads, block.reads, strict=True)):
        return node
    return replace(node, block=replace(block, reads=tuple(reads), table=table))


def composed(access: Access, view: ReadView, block: Block) -> Access | None:
    """The read of a view's source in place of a read of the view; None if it would be inexact, slower, not provably
    inside the source, under more than MOST_CONDITIONS conditions, or not in 64 bits."""
    new = through(access, view, block)
    if new is None or not _is_no_worse(access, new, view, block):
        return None
    return new if _is_inside(new, view.source, block) else None


def through(access: Access, view: ReadView, block: Block) -> Access | None:
    """The read of a view's source in place of a read of the view, even if slower; None if it would be inexact, have
    more than MOST_CONDITIONS conditions, or need more than 64 bits."""
    # The view R[i, a, d] = X[i, a * 64 + d], read at [m, k floordiv 64, k mod 64], k in 0..767, is X[m, k].
    ranges = block.axis_ranges
    values = dict(enumerate(access.index))
    index = tuple(lin.joined(lin.substitute(form, values, ranges)) for form in view.access.index)
    inner = [c for c in (c.substitute(values, ranges) for c in view.where) if not c.always(ranges)]
    inner = [c for c in inner if c not in access.where]
    if inner and access.where and access.otherwise != view.otherwise:
        return None
    where = tuple(dict.fromkeys((*access.where, *inner)))
    otherwise = (access.otherwise if access.where else view.otherwise) if where else None
    new = Access(view.source.name, index, where, otherwise)
    fits = all(lin.largest(form, ranges) < END for form in (*index, *(c.form for c in where)))
    return new if fits and len(where) <= MOST_CONDITIONS else None


def _is_no_worse(before: Access, after: Access, view: ReadView, block: Block) -> bool:
    """Whether a read `after` of a view's source is no slower than the read `before` of the view.

    It has no new quotients that stay in the memory offset, and in a reduction no new quotients. A reduction gets
    conditions only in windows, whose borders schedules can pad, and only if each window keeps a separate index.
    """
    new, reduces = quotients(after), any(axis.is_reduce for axis in block.axes)
    if reduces and after.where and _joins_windows(before, after, block):
        return False
    if reduces and len(after.where) > len(before.where) and all(len(form.terms) < 2 for form in before.index):
        return False
    if new <= quotients(before):
        return True
    if reduces:
        return False
    offset = lin.joined(lin.offset(after.index, view.source.shape))
    if not any(isinstance(atom, Quotient) for atom, _ in offset.terms):
        return not any(isinstance(atom, Quotient) for c in after.where for atom, _ in c.form.terms)
    is_view = block.table is None and len(block.body) == 1 and isinstance(block.body[0], Read)
    return is_view and new <= min(quotients(before) + quotients(view.access), MOST_QUOTIENTS)


def _joins_windows(before: Access, after: Access, block: Block) -> bool:
    """Whether an index of `after` combines the reduce axes of several windows that had separate indices in `before`."""
    taps = {n for n, axis in enumerate(block.axes) if axis.is_reduce and axis.size > 1}
    windows = [form.variables() & taps for form in before.index if len(form.variables()) > 1]
    return any(sum(1 for window in windows if window & form.variables()) > 1 for form in after.index)


def quotients(access: Access) -> int:
    """The number of quotients and remainders in a read's indices and conditions, nested ones included."""
    return sum(_quotients(form) for form in (*access.index, *(c.form for c in access.where)))


def _quotients(form: Linear) -> int:
    return sum(1 + _quotients(atom.form) for atom, _ in form.terms if isinstance(atom, Quotient))


def _is_inside(access: Access, source: Buffer, block: Block) -> bool:
    """Whether the verifier can prove that a read stays inside its source; a read without quotients counts as inside."""
    if not quotients(access):
        return True
    # X[k floordiv 9] of extent 3, k in 0..26: no k has its index outside of 0..2. With k in 0..27, k = 27 reads X[3].
    dims = {n: AffineExpr.dimension(n) for n in range(len(block.axes))}
    extents = [axis.size for axis in block.axes]
    condition = to_set(access.where, dims, len(dims)) if access.where else None
    sizes = zip(access.index, source.shape, strict=True)
    return all(escape(lin.to_affine(form, dims), size, extents, condition) is None for form, size in sizes)


def _table_through(
    table: Table, block: Block, view: Callable[[Access, Compute], ReadView | None], node: Compute
) -> Table:
    """The table of a gather; if it is a view, the view's source. A view stays unless it is unconditional and each
    data-dependent index is a whole dimension of the view and of the source."""
    forms = tuple(lin.constant(0) if isinstance(d, int) else d for d in table.index)
    viewed = view(Access(table.buffer, forms), node)
    if viewed is None or viewed.where:
        return table
    by_data = {d for d, index in enumerate(table.index) if isinstance(index, int)}
    index: list[Linear | int] = []
    moved: list[int] = []
    for form, size in zip(viewed.access.index, viewed.source.shape, strict=True):
        data_dimensions = form.variables() & by_data
        if not data_dimensions:
            index.append(lin.substitute(form, dict(enumerate(forms)), block.axis_ranges))
            continue
        (dimension, *more_dimensions) = data_dimensions
        if more_dimensions or form != lin.variable(dimension) or viewed.shape[dimension] != size:
            return table
        moved.append(dimension)
        operand = table.index[dimension]
        assert isinstance(operand, int)
        index.append(operand)
    plain = all(isinstance(form, int) or not _quotients(form) for form in index)
    return (
        Table(viewed.source.name, tuple(index), table.otherwise)
        if sorted(moved) == sorted(by_data) and plain
        else table
    )
