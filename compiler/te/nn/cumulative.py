"""Prefix sums and products (scans), as masked reductions over a triangle."""

from __future__ import annotations

from typing import Protocol

from compiler.support.errors import TeError
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr, Reduce
from compiler.te.index import Condition, Index
from compiler.te.nn.common import accumulator, astype, check_axis, check_flag, check_tensor, named, result_dtype
from compiler.te.tensor import Tensor, reduce_axis

MAX_TRIANGLE = 256
"""The largest extent of an axis scanned by a single masked reduction; longer axes are scanned in blocks."""
MAX_EXTENT = 1 << 16
"""The largest extent of a scanned axis."""


class Cumulative(Protocol):
    """A scan operator: it reduces all elements up to each index along an axis, in `reverse` all from it on; without the
    element itself if `exclusive`."""

    def __call__(
        self, x: Tensor, axis: int = -1, exclusive: bool = False, reverse: bool = False, name: str = ...
    ) -> Tensor: ...


def _cumulative(operator: str, noun: str, combine: e.Reduction, neutral: int) -> Cumulative:
    @named(
        operator,
        f"Y[..., i, ...] = the {noun} of X[..., k, ...] over k <= i along one axis; in reverse over k >= i.\n\n"
        "If exclusive, over k < i, or k > i. dtypes as for te.nn.sum. The work is quadratic up to extent 256, and\n"
        "extent * 2 * sqrt(extent) up to 65536; longer axes are refused. Raises TeError for other arguments.",
    )
    def build(
        x: Tensor, axis: int = -1, exclusive: bool = False, reverse: bool = False, name: str = operator
    ) -> Tensor:
        dim = check_axis(operator, check_tensor(operator, x), axis)
        check_flag(operator, "exclusive", exclusive)
        check_flag(operator, "reverse", reverse)
        extent, acc_dtype = x.shape[dim], accumulator(x.dtype)
        if extent > MAX_EXTENT:
            raise TeError(f"{operator}: axis {dim} of '{x.name}' has {extent} elements; up to {MAX_EXTENT} are scanned")
        out_dtype = result_dtype(operator, x.dtype, None)
        label = name if out_dtype == acc_dtype else f"{name}.wide"
        scan = _Scan(x, dim, acc_dtype, combine, neutral, exclusive, reverse)
        scanned = scan.triangle(label) if extent <= MAX_TRIANGLE else scan.in_blocks(label)
        return astype(scanned, out_dtype, name)

    return build


class _Scan:
    """A scan along dimension `dim` of x in `acc_dtype`; `neutral`, 0 or 1, is the identity of `combine`."""

    def __init__(
        self, x: Tensor, dim: int, acc_dtype: str, combine: e.Reduction, neutral: int, exclusive: bool, reverse: bool
    ) -> None:
        self.x, self.dim, self.acc_dtype, self.combine, self.neutral = x, dim, acc_dtype, combine, neutral
        self.exclusive, self.reverse = exclusive, reverse

    def counts(self, k: Index, i: Index) -> Condition:
        """The condition for which element k contributes to result i: k <= i, < if exclusive, mirrored in reverse."""
        if self.reverse:
            return k > i if self.exclusive else k >= i
        return k < i if self.exclusive else k <= i

    def replaced(self, i: tuple[Index, ...], index: Index) -> tuple[Index, ...]:
        """Return an index with its component along the scanned axis replaced by another."""
        return (*i[: self.dim], index, *i[self.dim + 1 :])

    def triangle(self, name: str) -> Tensor:
        """Compute the scan as one reduction of quadratic work: result i reduces over all k, masked by `counts`."""
        k = reduce_axis(self.x.shape[self.dim], "k")

        def element(*i: Index) -> Reduce:
            read = e.select(self.counts(k, i[self.dim]), self.x[self.replaced(i, k)], self.neutral)
            return self.combine(e.cast(read, self.acc_dtype), axis=k)

        return compute(self.x.shape, element, name)

    def in_blocks(self, name: str) -> Tensor:
        """Compute the scan in stages: block totals; totals of the blocks before each; scans within blocks, combined
        with these."""
        extent, d = self.x.shape[self.dim], self.dim
        size = 1 << (extent.bit_length() + 1) // 2
        blocks = -(-extent // size)
        k, b = reduce_axis(size, "k"), reduce_axis(blocks, "b")

        def read(i: tuple[Index, ...], position: Index, *conditions: Condition) -> Expr:
            inside = e.all_of(position < extent, *conditions)
            return e.cast(e.select(inside, self.x[self.replaced(i, position)], self.neutral), self.acc_dtype)

        def total(*i: Index) -> Reduce:
            return self.combine(read(i, i[d] * size + k), axis=k)

        shape = [blocks if n == d else m for n, m in enumerate(self.x.shape)]
        totals = compute(shape, total, f"{name}.blocks")

        def preceding(*i: Index) -> Reduce:
            precedes = b > i[d] if self.reverse else b < i[d]
            return self.combine(e.select(precedes, totals[self.replaced(i, b)], self.neutral), axis=b)

        preceding_totals = compute(shape, preceding, f"{name}.others")

        def within(*i: Index) -> Reduce:
            position = i[d] // size * size + k
            return self.combine(read(i, position, self.counts(position, i[d])), axis=k)

        in_block = compute(self.x.shape, within, f"{name}.within")

        def combined(*i: Index) -> Expr:
            preceding_total = preceding_totals[self.replaced(i, i[d] // size)]
            return in_block[i] * preceding_total if self.neutral else in_block[i] + preceding_total

        return compute(self.x.shape, combined, name)


cumsum = _cumulative("cumsum", "sum", e.sum, 0)
cumprod = _cumulative("cumprod", "product", e.prod, 1)
