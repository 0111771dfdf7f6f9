"""Matrix products, and Einsum."""

from __future__ import annotations

from compiler.frontends.onnx.operators.elementwise import broadcast
from compiler.frontends.onnx.table import Node, Refused, handles
from compiler.te import nn
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr
from compiler.te.index import Index
from compiler.te.nn.common import accumulator, astype
from compiler.te.nn.contraction import broadcast_matmul
from compiler.te.tensor import Tensor, reduce_axis
from compiler.types.dtypes import is_float


@handles("MatMul")
def matmul(node: Node) -> Tensor:
    """The matrix product of the last two dimensions, with broadcast batches, as numpy's matmul."""
    return broadcast_matmul(node.tensor(0), node.tensor(1), node.name)


@handles("Gemm")
def gemm(node: Node) -> Tensor:
    """alpha A B + beta C, with A and B transposed if `transA` and `transB` are set, and C broadcast. Raises Refused for
    an `alpha` or `beta` that is no integer if the matrices are of integers."""
    a, b = node.tensor(0), node.tensor(1)
    alpha, beta = node.attribute("alpha", 1.0), node.attribute("beta", 1.0)
    transposed = bool(node.attribute("transA", 0)), bool(node.attribute("transB", 0))
    bias = node.optional(2) if beta else None
    dtype = a.dtype
    is_dense = alpha == 1.0 and beta == 1.0 and is_float(dtype)
    if is_dense and bias is not None and bias.rank == 1 and transposed == (False, True) and bias.shape[0] == b.shape[0]:
        return nn.dense(a, b, bias, name=node.name)
    product = nn.matmul(a, b, *transposed, dtype=dtype, name=node.name)
    if alpha != 1.0:
        product = nn.mul(product, _number(alpha, dtype), name=node.name)
    if bias is None:
        return product
    if beta != 1.0:
        bias = nn.mul(bias, _number(beta, dtype))
    return nn.add(product, broadcast(bias, (1, 1), f"{node.name}.c"), name=node.name)


def _number(value: float, dtype: str) -> float:
    """Convert a factor to a number of a dtype. Raises Refused for a fraction if the dtype is an integer one."""
    if is_float(dtype):
        return float(value)
    if value != int(value):
        raise Refused(f"the factor {value} is no integer, but the matrices are")
    return int(value)


@handles("Einsum")
def einsum(node: Node) -> Tensor:
    """Sum products of the inputs' elements over the labels that the result lacks, by an equation: `bij,bjk->bik`;
    extent 1 is broadcast, and the result has the first input's dtype. Raises Refused for labels that do not fit the
    shapes."""
    tensors = node.tensors()
    terms, output = _equation(node.attribute("equation", ""), [t.rank for t in tensors])
    extents: dict[str, int] = {}
    for term, tensor in zip(terms, tensors, strict=True):
        for label, extent in zip(term, tensor.shape, strict=True):
            if extents.get(label, 1) not in (1, extent) and extent != 1:
                raise Refused(f"the label {label} has two extents")
            extents[label] = max(extents.get(label, 1), extent)
    reduce_axes = {
        label: reduce_axis(extent, f"k{n}") for n, (label, extent) in enumerate(extents.items()) if label not in output
    }
    dtype = tensors[0].dtype
    sum_dtype = accumulator(dtype) if reduce_axes else dtype

    def element(*i: Index) -> Expr:
        index = dict(zip(output, i, strict=True)) | reduce_axes
        value: Expr | None = None
        for term, tensor in zip(terms, tensors, strict=True):
            read = tensor[tuple(0 if n == 1 else index[label] for label, n in zip(term, tensor.shape, strict=True))]
            factor = e.cast(read, sum_dtype)
            value = factor if value is None else value * factor
        assert value is not None
        return e.sum(value, axis=tuple(reduce_axes.values())) if reduce_axes else value

    products = compute(
        [extents[label] for label in output], element, node.name, axes=[f"i{d}" for d in range(len(output))]
    )
    return astype(products, dtype, node.name)


def _equation(text: str, ranks: list[int]) -> tuple[list[list[str]], list[str]]:
    """Parse an equation to the labels of each input and of the result, by default those that occur once, sorted; the
    dimensions of an ellipsis are labelled "1", "0" from the left. Raises Refused for labels that do not fit `ranks`."""
    left, arrow, right = text.replace(" ", "").partition("->")
    terms = [_labels(term, rank) for term, rank in zip(left.split(","), ranks, strict=True)]
    if arrow:
        ellipsis_rank = max((int(label) + 1 for term in terms for label in term if label.isdigit()), default=0)
        return terms, _labels(right, len(right.replace("...", "")) + (ellipsis_rank if "..." in right else 0))
    labels = [label for term in terms for label in term]
    dots = sorted({label for label in labels if label.isdigit()}, key=int, reverse=True)
    return terms, dots + sorted(label for label in set(labels) if labels.count(label) == 1 and not label.isdigit())


def _labels(term: str, rank: int) -> list[str]:
    before, dots, after = term.partition("...")
    missing = rank - len(before) - len(after) if dots else 0
    labels = [*before, *(str(n) for n in reversed(range(missing))), *after]
    if len(labels) != rank:
        raise Refused(f"the labels '{term}' are not those of {rank} dimensions")
    return labels
