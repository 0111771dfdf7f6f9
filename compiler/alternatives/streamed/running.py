"""The form with one pass over the keys: a running maximum, by whose growth the sums so far are scaled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float32Type

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.alternatives.streamed.form import (
    LANES,
    NAMES,
    ROWS,
    THREADS,
    CausalBlocks,
    FormWriter,
    apply,
    number,
    padded,
    times,
)
from compiler.alternatives.streamed.matched import Attention
from compiler.alternatives.streamed.recurrences import StreamedForm
from compiler.graph.tree import Compute, Graph
from compiler.program import body
from compiler.program.body import Scalar
from compiler.program.tree import Access, Buffer

QUAD, PAIR = 4, 2
"""The threads of a warp that have a row of an accumulator, and the neighbouring columns of each."""
LONG = 256
"""The longest rows of keys and values together of which a block has 32, in f32."""
LOWEST = float(np.finfo(np.float32).min)
"""The maximum of no keys: a finite number, so that a block of keys that are all masked adds nothing, not NaN."""
_F32 = Float32Type()


class RunningMaximum(FormWriter):
    """Blocks t of keys, one after another: the maximum so far, and sums of powers of differences from it, which are
    scaled whenever it grows.

        S = sum over d of Q[m, d] * K[n, d];  L = c * f(S);  T = max over n of L;  E = exp(L - T);  Z = sum over n of E
        Y[m, e] = sum over n of (E / Z) * V[n, e]
      ->
        R[m, t] = max(R[m, t - 1], max over n in t of f(S));  F[m, t] = 2^(c * log2(e) * (R[m, t - 1] - R[m, t]))
        P[m, n] = narrow(2^(c * log2(e) * (f(S) - R[m, n / block])))
        W[m, t, e] = W[m, t - 1, e] * F[m, t] + sum over n in t of P * V1[n, e], where V1 is V and a column of ones
        Y[m, e] = W[m, last, e] / W[m, last, ones]

    R[m, -1] is the lowest number and W[m, -1] zero. No value has the extent of the scores for longer than a block. R
    and F have a copy j for each thread that has keys of a row: of four threads for the keys n with n / 2 mod 4 = j, and
    in f32 of 16 threads for those with n mod 16 = j.
    Powers are rounded to the dtype of V, and so is their sum, which the column of ones gives. Extents are padded: keys
    beyond the last one have power 0, and zeros for values.

    Of a causal attention, where query m has no keys beyond m + offset, Y reads W[m, t] of the last block t that has a
    key for one of the 64 or 128 queries beside m: later blocks have powers 0, and nobody needs their results. So a
    value that is infinite or NaN and hidden by the mask gives NaN only if it is in such a block.

    Rounding: a power p is rounded by p * 2^-11 for f16 and by 2^-25 at least. A sum is rounded twice more for each
    block of keys, by 2^-24 of itself, and the factor F by three units of the last place: 5 * 2^-24 for each block
    beyond that of the power. Source: Milakov and Gimelshein, Online normalizer calculation for softmax, 2018; Dao,
    FlashAttention-2, 2023.
    """

    def __init__(self, graph: Graph, found: Attention) -> None:
        super().__init__(graph, found)
        self.threads, self.pair = (QUAD, PAIR) if self.is_narrow else (THREADS, 1)
        self.block = self._keys_of_block()

    def form(self) -> StreamedForm | None:
        """Return the streamed form; None for the dtypes, columns and numbers of queries that `streamed_attention`
        refuses."""
        if not self.is_supported() or (self.is_narrow and self.columns % LANES):
            return None
        rows = self.copy(NAMES.rows, self.found.queries, self.m, ROWS, self.depth)
        keys = self.copy(NAMES.keys, self.found.keys, self.n, ROWS, self.depth)
        logits = self.logits(self.product(NAMES.scores, rows, keys))
        self.blocks = logits.shape[-1] // self.block
        running, factors, former = self._running(self._top(logits))
        powers = self._powers(logits, running)
        wide, former_wide = self._wide(self._part(powers, self.values(self.columns)), factors)
        self.result(wide, self.columns, self._causal())
        return self.written({running.name: former, wide.name: former_wide})

    def _causal(self) -> CausalBlocks | None:
        """Return the blocks of a causal attention, of the most queries for which each query has a last block; None
        where that is the last block of all, or of a query that is beyond the last key."""
        offset = self.found.offset
        for queries in (2 * ROWS, ROWS) if offset is not None else ():
            assert offset is not None
            ends = padded(self.m, queries) + offset
            if queries + offset <= (self.blocks - 1) * self.block and ends <= self.blocks * self.block:
                return CausalBlocks(offset, queries, self.block)
        return None

    def _keys_of_block(self) -> int:
        """Return the keys of a block: 64, or 32 of at most 64 keys, since a loop of one iteration has no former one,
        and of columns that are no multiple of 64, since uneven rows take registers for their addresses. Of f32 32, or
        16 if their rows are long, for the shared memory of a block of threads."""
        if not self.is_narrow:
            return 2 * THREADS if self.depth + self.columns <= LONG else THREADS
        return ROWS if self.n > ROWS and self.columns % ROWS == 0 else ROWS // 2

    def _axes(self, count: int) -> list[Linear]:
        """The batch axes and the axis of queries, and `count` axes more."""
        return [lin.variable(n) for n in range(len(self.batch) + 1 + count)]

    def _top(self, logits: Buffer) -> Buffer:
        """Add the maximum of each block of keys, for each thread that has keys of the row; return it."""
        *rows, t, j, pairs, pair = self._axes(4)
        source, sizes = self.found.top.block, [*logits.shape[:-1], self.blocks, self.threads]
        width = self.threads * self.pair
        n = t.scaled(self.block) + pairs.scaled(width) + j.scaled(self.pair) + pair
        value = self._or_lowest(source.body[0], n, logits)
        over = (self.block // width, self.pair)
        parts = self.add(NAMES.parts, sizes, [Access(logits.name, (*rows, n))], value, _F32, over, "max")
        *rows, t, _, j = self._axes(3)
        read = Access(parts.name, (*rows, t, j))
        return self.add(NAMES.top, sizes, [read], body.read(0, _F32), _F32, (self.threads,), "max")

    def _or_lowest(self, value: Scalar, n: Linear, logits: Buffer) -> Scalar:
        """Return a value of the key `n`, or -inf beyond the last key."""
        if logits.shape[-1] == self.n:
            return value
        is_key = Condition(lin.constant(self.n - 1) - n)
        return body.select([is_key], value, body.constant(number(float("-inf"), _F32)), _F32)

    def _former(self, name: str, sizes: Sequence[int]) -> tuple[Buffer, Access]:
        """Return an input that stands for a result `name` at former blocks of keys, and its read one block back;
        without index and otherwise."""
        former = Buffer(self.names.fresh(f"{name}.former"), tuple(sizes), _F32)
        *rows, t = self._axes(1)
        rest = [lin.variable(len(rows) + 1 + n) for n in range(len(sizes) - len(rows) - 1)]
        back = t - lin.constant(1)
        return former, Access(former.name, (*rows, back, *rest), (Condition(back),))

    def _running(self, top: Buffer) -> tuple[Buffer, Buffer, Buffer]:
        """Add the maximum so far and the factor by which it has grown; return both, and the input that stands for
        former maxima."""
        former, access = self._former(NAMES.running, top.shape)
        access = Access(access.buffer, access.index, access.where, number(LOWEST, _F32))
        before, maximum = body.read(0, _F32), apply(arith.MaximumfOp, [body.read(0, _F32), body.read(1, _F32)])
        growth = times(apply(arith.SubfOp, [before, maximum]), self.factor)
        reads = [access, Access(top.name, tuple(self._axes(2)))]
        values = {former.name: former}
        running = self.add(NAMES.running, top.shape, reads, maximum, _F32, values=values)
        block = self.computes[-1].block
        factors = Buffer(self.names.fresh("factors"), top.shape, _F32)
        both = (maximum, apply(math.Exp2Op, [growth]))
        self.computes[-1] = Compute(replace(block, body=both), (running, factors))
        return running, factors, former

    def _powers(self, logits: Buffer, running: Buffer) -> Buffer:
        """Add the powers, in the dtype of the values: 2 to the logits less the maximum so far, times log2(e)."""
        *rows, n = self._axes(1)
        ranges = lin.box(logits.shape)
        thread = lin.mod(lin.floordiv(n, self.pair, ranges), self.threads, ranges)
        read = Access(running.name, (*rows, lin.floordiv(n, self.block, ranges), thread))
        if self.factor <= 1:  # both products are finite
            exponent = apply(arith.SubfOp, [times(value, self.factor) for value in self.exponent])
        else:
            exponent = times(apply(arith.SubfOp, list(self.exponent)), self.factor)
        value = self.power(exponent, logits)
        return self.add(NAMES.powers, logits.shape, self.power_reads(logits, read), value, self.element)

    def _part(self, powers: Buffer, values: Buffer) -> Buffer:
        """Add the product of powers and values of each block of keys, whose last columns are sums of powers."""
        *rows, t, q, lane, n = self._axes(4)
        key = t.scaled(self.block) + n
        reads = [Access(powers.name, (*rows, key)), Access(values.name, (*rows[:-1], key, q, lane))]
        value = apply(arith.MulfOp, [self.widened(body.read(position, self.element)) for position in range(2)])
        sizes = [*powers.shape[:-1], self.blocks, *values.shape[-2:]]
        return self.add(NAMES.part, sizes, reads, value, _F32, (self.block,), "add")

    def _wide(self, part: Buffer, factors: Buffer) -> tuple[Buffer, Buffer]:
        """Add the products so far, scaled by the growth of the maximum; return them, and the input that stands for
        those of former blocks."""
        former, access = self._former(NAMES.wide, part.shape)
        access = Access(access.buffer, access.index, access.where, number(0.0, _F32))
        *rows, t, q, lane = self._axes(3)
        thread = lin.floordiv(lane, self.pair, lin.box(part.shape))
        reads = [access, Access(factors.name, (*rows, t, thread)), Access(part.name, (*rows, t, q, lane))]
        scaled = apply(arith.MulfOp, [body.read(0, _F32), body.read(1, _F32)])
        value = apply(arith.AddfOp, [scaled, body.read(2, _F32)])
        return self.add(NAMES.wide, part.shape, reads, value, _F32, values={former.name: former}), former
