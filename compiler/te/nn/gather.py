"""Operators that read a table at indices that a tensor holds.

Indices are integers of any width. An index outside the table gives `otherwise`, zero by default; negative indices are
outside: they do not wrap as numpy's do.
"""

from __future__ import annotations

from compiler.elements import INDICES
from compiler.errors import TeError
from compiler.te.gather import gather as te_gather
from compiler.te.index import Index, IndexLike
from compiler.te.nn.common import Indices, check_axis, check_equal, check_rank, check_tensor
from compiler.te.tensor import Read, TableRead, Tensor


def _check_indices(operator: str, indices: object) -> Tensor:
    found = check_tensor(operator, indices)
    if found.dtype not in INDICES:
        raise TeError(f"{operator}: the indices '{found.name}' are {found.dtype}, not integers")
    return found


def gather(x: Tensor, indices: Tensor, axis: int = 0, otherwise: float = 0, name: str = "gather") -> Tensor:
    """Y[i..., j..., k...] = X[i..., I[j...], k...]: elements along one axis, which the axes of I replace.

    As numpy.take and ONNX Gather, but that an index outside gives `otherwise`. Raises TeError.
    """
    along = check_axis("gather", check_tensor("gather", x), axis)
    rank = _check_indices("gather", indices).rank
    shape = (*x.shape[:along], *indices.shape, *x.shape[along + 1 :])

    def element(*i: Index) -> TableRead:
        at = indices[i[along : along + rank]]
        return x.at(*i[:along], at, *i[along + rank :])

    return te_gather(shape, element, name, otherwise=otherwise)


def take_along_axis(
    x: Tensor, indices: Tensor, axis: int = -1, otherwise: float = 0, name: str = "take_along_axis"
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

    def element(*i: Index) -> TableRead:
        at: list[IndexLike | Read] = [*_within(x, i)]
        at[along] = indices[tuple(_within(indices, i))]
        return x.at(*at)

    return te_gather(shape, element, name, otherwise=otherwise)


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
