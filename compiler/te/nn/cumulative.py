"""Sums and products of all elements up to a place, as reductions over a triangle."""

from __future__ import annotations

from typing import Protocol

from compiler.support.errors import TeError
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr, Reduce
from compiler.te.index import Condition, Index
from compiler.te.nn.common import accumulator, check_axis, check_flag, check_tensor, named, result_dtype, rounded
from compiler.te.tensor import Tensor, reduce_axis

WHOLE = 256
"""The longest axis of one triangle."""
MOST = 1 << 16
"""The longest axis in blocks."""


class Cumulative(Protocol):
    """A reduction of the elements up to each place along an axis."""

    def __call__(
        self, x: Tensor, axis: int = -1, exclusive: bool = False, reverse: bool = False, name: str = ...
    ) -> Tensor: ...


def _cumulative(operator: str, said: str, combine: e.Reduction, neutral: int) -> Cumulative:
    @named(
        operator,
        f"Y[..., i, ...] = the {said} of X[..., k, ...] over k <= i along one axis; in reverse over k >= i.\n\n"
        "If exclusive, over k < i, or k > i. Formed as `sum` forms sums. The work is the extent times up to 256 for\n"
        "extents up to 256, beyond that, up to 65536, times two roots of it; longer axes are refused. Raises TeError.",
    )
    def build(
        x: Tensor, axis: int = -1, exclusive: bool = False, reverse: bool = False, name: str = operator
    ) -> Tensor:
        along = check_axis(operator, check_tensor(operator, x), axis)
        check_flag(operator, "exclusive", exclusive)
        check_flag(operator, "reverse", reverse)
        extent, wide = x.shape[along], accumulator(x.dtype)
        if extent > MOST:
            raise TeError(f"{operator}: axis {along} of '{x.name}' has {extent} elements; up to {MOST} are scanned")
        wanted = result_dtype(operator, x.dtype, None)
        label = name if wanted == wide else f"{name}.wide"
        over = _Scan(x, along, wide, combine, neutral, exclusive, reverse)
        made = over.whole(label) if extent <= WHOLE else over.in_blocks(label)
        return rounded(made, wanted, name)

    return build


class _Scan:
    """One scan: its tensor, its axis, and the places that count."""

    def __init__(
        self, x: Tensor, along: int, wide: str, combine: e.Reduction, neutral: int, exclusive: bool, reverse: bool
    ) -> None:
        self.x, self.along, self.wide, self.combine, self.neutral = x, along, wide, combine, neutral
        self.exclusive, self.reverse = exclusive, reverse

    def counts(self, k: Index, i: Index) -> Condition:
        """Whether place k counts for place i."""
        if self.reverse:
            return k > i if self.exclusive else k >= i
        return k < i if self.exclusive else k <= i

    def at(self, i: tuple[Index, ...], index: Index) -> tuple[Index, ...]:
        """An index with another one along the axis."""
        return (*i[: self.along], index, *i[self.along + 1 :])

    def whole(self, name: str) -> Tensor:
        """Over one triangle."""
        k = reduce_axis(self.x.shape[self.along], "k")

        def element(*i: Index) -> Reduce:
            read = e.select(self.counts(k, i[self.along]), self.x[self.at(i, k)], self.neutral)
            return self.combine(e.cast(read, self.wide), axis=k)

        return compute(self.x.shape, element, name)

    def in_blocks(self, name: str) -> Tensor:
        """A scan in blocks: totals of blocks, then the totals before each block, then the scan within it."""
        extent, d = self.x.shape[self.along], self.along
        size = 1 << (extent.bit_length() + 1) // 2
        blocks = -(-extent // size)
        k, b = reduce_axis(size, "k"), reduce_axis(blocks, "b")

        def read(i: tuple[Index, ...], place: Index, *holds: Condition) -> Expr:
            inside = e.all_of(place < extent, *holds)
            return e.cast(e.select(inside, self.x[self.at(i, place)], self.neutral), self.wide)

        def total(*i: Index) -> Reduce:
            return self.combine(read(i, i[d] * size + k), axis=k)

        shape = [blocks if n == d else m for n, m in enumerate(self.x.shape)]
        totals = compute(shape, total, f"{name}.blocks")

        def before(*i: Index) -> Reduce:
            counts = b > i[d] if self.reverse else b < i[d]
            return self.combine(e.select(counts, totals[self.at(i, b)], self.neutral), axis=b)

        of_blocks = compute(shape, before, f"{name}.others")

        def within(*i: Index) -> Reduce:
            place = i[d] // size * size + k
            return self.combine(read(i, place, self.counts(place, i[d])), axis=k)

        in_block = compute(self.x.shape, within, f"{name}.within")

        def joined(*i: Index) -> Expr:
            before_block = of_blocks[self.at(i, i[d] // size)]
            return in_block[i] * before_block if self.neutral else in_block[i] + before_block

        return compute(self.x.shape, joined, name)


cumsum = _cumulative("cumsum", "sum", e.sum, 0)
cumprod = _cumulative("cumprod", "product", e.prod, 1)
