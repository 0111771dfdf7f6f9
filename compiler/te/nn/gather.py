"""Operators that read a table at data-dependent indices.

Indices are integers of any width. An index out of bounds yields `otherwise`, zero by default. Negative indices are out
of bounds, or with `wrap` count from the end as numpy's do.
"""

from __future__ import annotations

from compiler.support.errors import TeError
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr
from compiler.te.gather import gather as te_gather
from compiler.te.index import Index, IndexLike
from compiler.te.nn.common import Indices, check_axis, check_equal, check_flag, check_rank, check_tensor, is_count
from compiler.te.tensor import Read, TableRead, Tensor
from compiler.types.dtypes import INDICES, has_sign


def _check_indices(operator: str, indices: object) -> Tensor:
    checked = check_tensor(operator, indices)
    if checked.dtype not in INDICES:
        raise TeError(f"{operator}: the indices '{checked.name}' are {checked.dtype}, not integers")
    return checked


def _wrapped(operator: str, indices: Tensor, extent: int, wrap: bool, name: str) -> Tensor:
    """Return indices; with `wrap`, a compute that adds the extent to negative ones, unless their dtype is unsigned.
    Raises TeError for a `wrap` that is no bool, and with `wrap` for indices that are no integers."""
    check_flag(operator, "wrap", wrap)
    if not wrap or not has_sign(_check_indices(operator, indices).dtype):
        return indices

    return compute(indices.shape, lambda *i: _from_start(indices[i], extent), f"{name}.indices")


def _from_start(index: Read, extent: int) -> Expr:
    """Build the index as i64, or index + extent if it is negative."""
    value = e.cast(index, "i64")
    return e.select(value < 0, value + extent, value)


def gather(
    x: Tensor, indices: Tensor, axis: int = 0, otherwise: float = 0, wrap: bool = False, name: str = "gather"
) -> Tensor:
    """Y[i..., j..., k...] = X[i..., I[j...], k...]: the axes of I replace one axis of X.

    An index out of bounds yields `otherwise`; negative ones are out of bounds, or with `wrap` count from the end.
    Raises TeError for other arguments. Elsewhere: numpy.take and ONNX Gather, for indices in bounds.
    """
    dim = check_axis("gather", check_tensor("gather", x), axis)
    rank = _check_indices("gather", indices).rank
    indices = _wrapped("gather", indices, x.shape[dim], wrap, name)
    shape = (*x.shape[:dim], *indices.shape, *x.shape[dim + 1 :])

    def element(*i: Index) -> TableRead:
        row = indices[i[dim : dim + rank]]
        return x.at(*i[:dim], row, *i[dim + rank :])

    return te_gather(shape, element, name, otherwise=otherwise)


def take_along_axis(
    x: Tensor,
    indices: Tensor,
    axis: int = -1,
    otherwise: float = 0,
    wrap: bool = False,
    name: str = "take_along_axis",
) -> Tensor:
    """Y[i..., j, k...] = X[i..., I[i..., j, k...], k...]: each element has its own index along one axis.

    X and I have equal ranks and, except along the axis, shapes that broadcast. An index out of bounds yields
    `otherwise`; negative ones are out of bounds, or with `wrap` count from the end. Raises TeError for other arguments.
    Elsewhere: numpy.take_along_axis and ONNX GatherElements, for indices in bounds.
    """
    dim = check_axis("take_along_axis", check_tensor("take_along_axis", x), axis)
    check_rank("take_along_axis", _check_indices("take_along_axis", indices), x.rank, "as many as the table")
    shape = []
    for d, (size, count) in enumerate(zip(x.shape, indices.shape, strict=True)):
        if d != dim and 1 not in (size, count):
            check_equal("take_along_axis", f"the extents of dimension {d} of table and indices", size, count)
        shape.append(count if d == dim or size == 1 else size)
    indices = _wrapped("take_along_axis", indices, x.shape[dim], wrap, name)

    def element(*i: Index) -> TableRead:
        position: list[IndexLike | Read] = [*_broadcast_index(x, i)]
        position[dim] = indices[tuple(_broadcast_index(indices, i))]
        return x.at(*position)

    return te_gather(shape, element, name, otherwise=otherwise)


def gather_nd(
    x: Tensor, indices: Tensor, batch: int = 0, otherwise: float = 0, wrap: bool = False, name: str = "gather_nd"
) -> Tensor:
    """Y[b..., j..., k...] = X[b..., I[b..., j..., :], k...]: the last axis of I holds an index for each dimension.

    The first `batch` dimensions of X and I are equal. An index out of bounds yields `otherwise`; negative ones are out
    of bounds, or with `wrap` count from the end. Raises TeError for other arguments. Elsewhere: ONNX GatherND, for
    indices in bounds.
    """
    rank = _check_indices("gather_nd", indices).rank
    count = indices.shape[-1] if rank else 0
    check_tensor("gather_nd", x)
    if not is_count(batch) or batch >= max(rank, 1) or not 1 <= count <= x.rank - batch:
        raise TeError(
            f"gather_nd: '{indices.name}' of shape {indices.shape} does not index '{x.name}' of shape {x.shape} "
            f"behind {batch!r} dimensions of both"
        )
    for d in range(batch):
        check_equal("gather_nd", f"the extents of dimension {d} of table and indices", x.shape[d], indices.shape[d])
    check_flag("gather_nd", "wrap", wrap)
    wrapped, index_rank = [], rank - 1
    for n, extent in enumerate(x.shape[batch : batch + count] if wrap else ()):

        def wrapped_index(*i: Index, n: int = n, extent: int = extent) -> Expr:
            return _from_start(indices[(*i, n)], extent)

        wrapped.append(compute(indices.shape[:-1], wrapped_index, f"{name}.indices{n}"))

    def element(*i: Index) -> TableRead:
        reads = [wrapped[n][i[:index_rank]] if wrapped else indices[(*i[:index_rank], n)] for n in range(count)]
        return x.at(*i[:batch], *reads, *i[index_rank:])

    return te_gather((*indices.shape[:-1], *x.shape[batch + count :]), element, name, otherwise=otherwise)


def _broadcast_index(tensor: Tensor, i: Indices) -> list[IndexLike]:
    """Return the index into a tensor that is broadcast to index i: 0 in dimensions of extent 1."""
    return [0 if size == 1 else index for size, index in zip(tensor.shape, i, strict=True)]


def embedding(indices: Tensor, weight: Tensor, otherwise: float = 0, name: str = "embedding") -> Tensor:
    """Y[i..., d] = W[I[i...], d]: a row of the weight [V, D] for each index; the result is [..., D].

    Elsewhere: torch embedding, except that an index out of bounds yields a row of `otherwise`. Raises TeError for other
    arguments.
    """
    _check_indices("embedding", indices)
    check_rank("embedding", weight, 2, "a row for each index")
    shape = (*indices.shape, weight.shape[1])
    return te_gather(shape, lambda *i: weight.at(indices[i[:-1]], i[-1]), name, otherwise=otherwise)
