"""Reads at indices that a tensor holds."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.elements import INDICES
from compiler.frontends.torch.operators.elements import dimension, read
from compiler.frontends.torch.table import Call, Unsupported, operator
from compiler.te import nn
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr
from compiler.te.gather import gather as te_gather
from compiler.te.index import Index, IndexLike
from compiler.te.tensor import Read, TableRead, Tensor


@operator("embedding")
def embedding(call: Call, weight: Tensor, indices: Tensor, *options: object) -> Tensor:
    """A row of the weight for each index."""
    return nn.embedding(indices, weight, name=call.name)


@operator("index_select")
def index_select(call: Call, x: Tensor, dim: int, indices: Tensor) -> Tensor:
    """Positions of a dimension that a vector lists."""
    return nn.gather(x, indices, dimension(dim, x.rank), name=call.name)


@operator("gather")
def gather(call: Call, x: Tensor, dim: int, indices: Tensor, sparse_grad: bool = False) -> Tensor:
    """An index of its own for each element, along a dimension."""
    along = dimension(dim, x.rank)

    def element(*i: Index) -> TableRead:
        return x.at(*i[:along], indices[i], *i[along + 1 :])

    return te_gather(call.shape, element, call.name)


def _wrapped(indices: Tensor, size: int, name: str) -> Tensor:
    """Indices, those below zero counted from the end."""

    def element(*i: Index) -> Expr:
        value = e.cast(read(indices, i, indices.dtype), "i64")
        return e.select(value < 0, value + size, value)

    return compute(indices.shape, element, name)


@operator("index.Tensor")
def index(call: Call, x: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    """Elements at tensors of indices, which are broadcast; their dimensions stand where the first one was."""
    given = [*indices, *[None] * (x.rank - len(indices))]
    by_dimension = {d: t for d, t in enumerate(given) if t is not None}
    if any(t.dtype not in INDICES for t in by_dimension.values()):
        raise Unsupported("an index by truth values: the shape depends on them")
    places = {d: _wrapped(t, x.shape[d], f"{call.name}.at{d}") for d, t in by_dimension.items()}
    rank = max(t.rank for t in places.values())
    together = sorted(places) == list(range(min(places), max(places) + 1))
    first = min(places) if together else 0

    def element(*i: Index) -> TableRead:
        table_index, plain_index = i[first : first + rank], [*i[:first], *i[first + rank :]]

        def place(table: Tensor) -> Read:
            last = table_index[rank - table.rank :]
            return table[tuple(0 if n == 1 else at for n, at in zip(table.shape, last, strict=True))]

        at: list[IndexLike | Read] = [place(places[d]) if d in places else plain_index.pop(0) for d in range(x.rank)]
        return x.at(*at)

    return te_gather(call.shape, element, call.name)
