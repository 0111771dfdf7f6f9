"""Matrix products."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.frontends.torch.operators.elements import Operand, converted, pointwise, read
from compiler.frontends.torch.table import Call, operator
from compiler.te import nn
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Reduce
from compiler.te.index import Axis, Index
from compiler.te.nn.common import Indices, accumulator
from compiler.te.nn.reduction import reduced
from compiler.te.tensor import Tensor, reduce_axis


def _rounded(sums: Tensor, call: Call) -> Tensor:
    return converted(sums, call.dtype, call.name)


@operator("mm")
def mm(call: Call, x: Tensor, y: Tensor) -> Tensor:
    """The product of two matrices."""
    return _rounded(nn.matmul(x, y, dtype=accumulator(x.dtype), name=f"{call.name}.sum"), call)


@operator("bmm")
def bmm(call: Call, x: Tensor, y: Tensor) -> Tensor:
    """The products of matrices, one for each index of a batch."""
    return _rounded(nn.batch_matmul(x, y, dtype=accumulator(x.dtype), name=f"{call.name}.sum"), call)


@operator("addmm")
def addmm(call: Call, bias: Tensor, x: Tensor, y: Tensor, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta bias + alpha x y."""
    sums = nn.matmul(x, y, dtype=accumulator(x.dtype), name=f"{call.name}.sum")
    return _added(call, sums, bias, beta, alpha)


@operator("baddbmm")
def baddbmm(call: Call, bias: Tensor, x: Tensor, y: Tensor, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta bias + alpha x y, for each index of a batch."""
    sums = nn.batch_matmul(x, y, dtype=accumulator(x.dtype), name=f"{call.name}.sum")
    return _added(call, sums, bias, beta, alpha)


def _added(call: Call, sums: Tensor, bias: Operand, beta: float, alpha: float) -> Tensor:
    if beta == 0:
        return pointwise(call, lambda s: s if alpha == 1 else s * alpha, sums)
    return pointwise(call, lambda s, b: (s if alpha == 1 else s * alpha) + (b if beta == 1 else b * beta), sums, bias)


@operator("addmv")
def addmv(call: Call, bias: Tensor, x: Tensor, y: Tensor, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta bias + alpha x y of a matrix and a vector."""
    column = nn.expand_dims(y, -1, f"{call.name}.column")
    sums = nn.matmul(x, column, dtype=accumulator(x.dtype), name=f"{call.name}.sum")
    return _added(call, nn.reshape(sums, call.shape, f"{call.name}.row"), bias, beta, alpha)


@operator("addbmm")
def addbmm(call: Call, bias: Tensor, x: Tensor, y: Tensor, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta bias + alpha times the sum of the products of a batch."""
    b, k, wide = reduce_axis(x.shape[0], "b"), reduce_axis(x.shape[2], "k"), accumulator(x.dtype)

    def element(m: Index, n: Index) -> Reduce:
        return e.sum(e.cast(x[b, m, k], wide) * e.cast(y[b, k, n], wide), axis=(b, k))

    return _added(call, compute((x.shape[1], y.shape[2]), element, f"{call.name}.sum"), bias, beta, alpha)


@operator("_trilinear")
def trilinear(
    call: Call,
    x: Tensor,
    y: Tensor,
    z: Tensor,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> Tensor:
    """The sum over dimensions of products of three tensors, each with dimensions of extent 1 put in."""
    raised = [_raised(call, t, dims, n) for n, (t, dims) in enumerate(((x, expand1), (y, expand2), (z, expand3)))]
    shape = broadcast(broadcast(raised[0].shape, raised[1].shape), raised[2].shape)
    wide = accumulator(x.dtype)

    def element(at: Indices, axes: tuple[Axis, ...]) -> Reduce:
        a, b, c = (read(t, at, wide) for t in raised)
        return e.sum(a * b * c, axis=axes)

    return _rounded(reduced(shape, sorted(sumdim), False, element, f"{call.name}.sum"), call)


def _raised(call: Call, x: Tensor, dims: Sequence[int], number: int) -> Tensor:
    shape = list(x.shape)
    for d in sorted(dims):
        shape.insert(d, 1)
    return x if len(shape) == x.rank else nn.reshape(x, tuple(shape), f"{call.name}.operand{number}")


@operator("linear")
def linear(call: Call, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x times a transposed weight, plus a bias."""
    rows = nn.reshape(x, (-1, x.shape[-1]), f"{call.name}.rows") if x.rank != 2 else x
    sums = nn.matmul(rows, weight, transpose_b=True, dtype=accumulator(x.dtype), name=f"{call.name}.sum")
    shaped = sums if x.rank == 2 else nn.reshape(sums, call.shape, f"{call.name}.shaped")
    return _rounded(shaped, call) if bias is None else _added(call, shaped, bias, 1, 1)


@operator("matmul")
def matmul(call: Call, x: Tensor, y: Tensor) -> Tensor:
    """The product of the last two dimensions, or of vectors; those before them are broadcast."""
    left = nn.expand_dims(x, 0, f"{call.name}.row") if x.rank == 1 else x
    right = nn.expand_dims(y, -1, f"{call.name}.column") if y.rank == 1 else y
    if right.rank == 2 and left.rank > 2:
        rows = nn.reshape(left, (-1, left.shape[-1]), f"{call.name}.rows")
        sums = nn.matmul(rows, right, dtype=accumulator(x.dtype), name=f"{call.name}.sum")
    else:
        sums = _batched(call, left, right)
    shaped = sums if sums.shape == call.shape else nn.reshape(sums, call.shape, f"{call.name}.shaped")
    return _rounded(shaped, call)


def _batched(call: Call, x: Tensor, y: Tensor) -> Tensor:
    batch = broadcast(x.shape[:-2], y.shape[:-2])
    k, wide = reduce_axis(x.shape[-1], "k"), accumulator(x.dtype)

    def part(tensor: Tensor, at: Sequence[Index], last: tuple[Index, Index]) -> tuple[Index | int, ...]:
        batch_index = at[len(at) - tensor.rank + 2 :]
        first = [0 if n == 1 else index for n, index in zip(tensor.shape[:-2], batch_index, strict=True)]
        return (*first, *last)

    def element(*at: Index) -> Reduce:
        *first, m, n = at
        left, right = x[part(x, first, (m, k))], y[part(y, first, (k, n))]
        return e.sum(e.cast(left, wide) * e.cast(right, wide), axis=k)

    return compute((*batch, x.shape[-2], y.shape[-1]), element, f"{call.name}.sum")


def broadcast(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    """The shape to which two shapes are broadcast."""
    rank = max(len(a), len(b))
    padded = [(1,) * (rank - len(s)) + tuple(s) for s in (a, b)]
    return tuple(max(m, n) for m, n in zip(*padded, strict=True))


@operator("dot", "vdot")
def dot(call: Call, x: Tensor, y: Tensor) -> Tensor:
    """The sum of products of two vectors."""
    return matmul(call, x, y)


@operator("mv")
def mv(call: Call, x: Tensor, y: Tensor) -> Tensor:
    """A matrix times a vector."""
    return matmul(call, x, y)
