"""Operators that read a table at indices that a tensor holds.

Indices are integers of any width. An index outside the table gives `otherwise`, zero by default. Negative indices are
outside, or with `wrap` count from the end as numpy's do.
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
from compiler.types.elements import INDICES, has_sign


def _check_indices(operator: str, indices: object) -> Tensor:
    checked = check_tensor(operator, indices)
    if checked.dtype not in INDICES:
        raise TeError(f"{operator}: the indices '{checked.name}' are {checked.dtype}, not integers")
    return checked


def _wrapped(operator: str, indices: Tensor, extent: int, wrap: bool, name: str) -> Tensor:
    """The indices, those below 0 counted from the end of an extent if they wrap."""
    check_flag(operator, "wrap", wrap)
    if not wrap or not has_sign(_check_indices(operator, indices).dtype):
        return indices

    return compute(indices.shape, lambda *i: _from_start(indices[i], extent), f"{name}.indices")


def _from_start(index: Read, extent: int) -> Expr:
    """An index that counts from the end where it is below 0, as one that counts from the start."""
    at = e.cast(index, "i64")
    return e.select(at < 0, at + extent, at)


def gather(
    x: Tensor, indices: Tensor, axis: int = 0, otherwise: float = 0, wrap: bool = False, name: str = "gather"
) -> Tensor:
    """Y[i..., j..., k...] = X[i..., I[j...], k...]: elements along one axis, which the axes of I replace.

    As numpy.take and ONNX Gather, but that an index outside gives `otherwise`. Raises TeError.
    """
    along = check_axis("gather", check_tensor("gather", x), axis)
    rank = _check_indices("gather", indices).rank
    indices = _wrapped("gather", indices, x.shape[along], wrap, name)
    shape = (*x.shape[:along], *indices.shape, *x.shape[along + 1 :])

    def element(*i: Index) -> TableRead:
        at = indices[i[along : along + rank]]
        return x.at(*i[:along], at, *i[along + rank :])

    return te_gather(shape, element, name, otherwise=otherwise)


def take_along_axis(
    x: Tensor,
    indices: Tensor,
    axis: int = -1,
    otherwise: float = 0,
    wrap: bool = False,
    name: str = "take_along_axis",
) -> Tensor:
    """Y[i..., j, k...] = X[i..., I[i..., j, k...], k...]: an index of its own for each element.

    X and I have one rank and, but for the axis, one shape, or extent 1 where the other is longer. As
    numpy.take_along_axis and ONNX GatherElements, but that an index outside gives `otherwise`. Raises TeError.
    """
    along = check_axis("take_along_axis", check_tensor("take_along_axis", x), axis)
    check_rank("take_along_axis", _check_indices("take_along_axis", indices), x.rank, "as many as the table")
    shape = []
    for d, (size, count) in enumerate(zip(x.shape, indices.shape, strict=True)):
        if d != along and 1 not in (size, count):
            check_equal("take_along_axis", f"the extents of dimension {d} of table and indices", size, count)
        shape.append(count if d == along or size == 1 else size)
    indices = _wrapped("take_along_axis", indices, x.shape[along], wrap, name)

    def element(*i: Index) -> TableRead:
        at: list[IndexLike | Read] = [*_within(x, i)]
        at[along] = indices[tuple(_within(indices, i))]
        return x.at(*at)

    return te_gather(shape, element, name, otherwise=otherwise)


def gather_nd(
    x: Tensor, indices: Tensor, batch: int = 0, otherwise: float = 0, wrap: bool = False, name: str = "gather_nd"
) -> Tensor:
    """Y[b..., j..., k...] = X[b..., I[b..., j..., :], k...]: the last axis of I holds an index for each dimension.

    The first `batch` dimensions of both are the same. As ONNX GatherND, but that an index outside gives `otherwise`.
    Raises TeError.
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
    parts, places = [], rank - 1
    for n, extent in enumerate(x.shape[batch : batch + count] if wrap else ()):

        def part(*i: Index, n: int = n, extent: int = extent) -> Expr:
            return _from_start(indices[(*i, n)], extent)

        parts.append(compute(indices.shape[:-1], part, f"{name}.indices{n}"))

    def element(*i: Index) -> TableRead:
        reads = [parts[n][i[:places]] if parts else indices[(*i[:places], n)] for n in range(count)]
        return x.at(*i[:batch], *reads, *i[places:])

    return te_gather((*indices.shape[:-1], *x.shape[batch + count :]), element, name, otherwise=otherwise)


def _within(tensor: Tensor, i: Indices) -> list[IndexLike]:
    """An index, with 0 where the tensor has extent 1."""
    return [0 if size == 1 else at for size, at in zip(tensor.shape, i, strict=True)]


def embedding(indices: Tensor, weight: Tensor, otherwise: float = 0, name: str = "embedding") -> Tensor:
    """Y[i..., d] = W[I[i...], d]: a row of the weights for each index.

    As torch's embedding, but that an index outside gives a row of `otherwise`. Raises TeError.
    """
    _check_indices("embedding", indices)
    check_rank("embedding", weight, 2, "a row for each index")
    shape = (*indices.shape, weight.shape[1])
    return te_gather(shape, lambda *i: weight.at(indices[i[:-1]], i[-1]), name, otherwise=otherwise)
