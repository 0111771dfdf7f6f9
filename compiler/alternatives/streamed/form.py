"""A streamed attention but its recurrences: the copies with padding, scores, logits, values, and the division."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat, BFloat16Type, Float16Type, Float32Type, FloatAttr
from xdsl.ir import Attribute, Operation

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.alternatives.streamed.matched import Attention, axes_of, uncast
from compiler.alternatives.streamed.recurrences import StreamedForm
from compiler.dialects.access import axis_attribute
from compiler.dialects.combiner import identity
from compiler.dialects.upstream.arith import SelectOp
from compiler.dialects.upstream.casts import ExtFOp, TruncFOp
from compiler.graph.tree import Compute, Graph
from compiler.program import body
from compiler.program.body import Apply, Scalar, rewrite
from compiler.program.names import Names
from compiler.program.tree import Access, Block, Buffer

LANES, DEPTH = 8, 16
"""The columns of a tile of results, and the depth of a product on tensor cores: extents are padded to multiples."""
FEWEST = 17
"""The fewest queries: of fewer most of a block of threads would be padding."""
THREADS = 16
"""The threads over the columns of a result in f32."""
LOG2_E = 1.4426950408889634
"""The factor of exponents by which powers of e are powers of 2."""
ROWS = 64
"""The queries and the keys of a block of threads: extents are padded to multiples."""
_NARROW = (Float16Type, BFloat16Type)


@dataclass(frozen=True)
class StreamedNames:
    """The labels of the computes of a streamed attention, by which a recipe finds them: `rows` copies queries, `keys`
    copies keys, `values` copies values, and `columns` has these in tiles of columns, and a tile of ones. `parts` and
    `top` are maxima of a block of keys, `running` those so far, `part` is the product of powers and values of a block
    of keys, and `wide` the sum of all so far.

    >>> strata.alternatives.StreamedNames().top
    'top'
    """

    rows: str = "rows"
    keys: str = "keys"
    scores: str = "scores"
    parts: str = "top.parts"
    top: str = "top"
    running: str = "running"
    powers: str = "powers"
    values: str = "values"
    columns: str = "columns"
    part: str = "part"
    wide: str = "wide"
    result: str = "result"


NAMES = StreamedNames()


@dataclass(frozen=True)
class CausalBlocks:
    """Blocks of `keys` keys of a causal attention, in which query m has the keys up to m + `offset`: all `queries`
    queries of a block have the same last block of keys."""

    offset: int
    queries: int
    keys: int

    def last(self, m: Linear, ranges: lin.Ranges) -> Linear:
        """Return the last block of keys for a query, -1 or less if it has no key."""
        block = lin.floordiv(m, self.queries, ranges)
        return lin.floordiv(
            block.scaled(self.queries) + lin.constant(self.queries - 1 + self.offset), self.keys, ranges
        )


class FormWriter:
    """The streamed form of a graph that is an attention. `m`, `n`, `e`: the extents of queries, keys and results;
    `batch` the axes before them."""

    def __init__(self, graph: Graph, found: Attention) -> None:
        self.old, self.found = graph, found
        self.names = Names(value.name for value in graph.inputs)
        self.computes: list[Compute] = []
        *batch, m, n = found.scores.block.axes[: found.scores.block.spatial]
        self.batch, self.m, self.n = batch, m.size, n.size
        self.element = graph.values[found.values.buffer].element
        self.is_narrow = isinstance(self.element, _NARROW)
        self.lanes = LANES if self.is_narrow else THREADS

    @property
    def depth(self) -> int:
        """The extent of the sum of a score."""
        return self.found.scores.block.axes[-1].size

    @property
    def columns(self) -> int:
        """The columns of the result."""
        return self.found.product.block.axes[self.found.product.block.spatial - 1].size

    def is_supported(self) -> bool:
        """Whether queries, keys and values have one dtype, powers are of f32, and queries are at least FEWEST."""
        found, values = self.found, self.old.values
        elements = {values[access.buffer].element for access in (found.queries, found.keys, found.values)}
        is_f32 = isinstance(values[found.powers.results[0].name].element, Float32Type)
        return elements == {self.element} and is_f32 and self.m >= FEWEST

    def written(self, former: Mapping[str, Buffer]) -> StreamedForm:
        """Return the form that consists of the added computes, the last of which is the result; `former` maps results
        to the inputs that stand for their former iterations."""
        inputs = (*self.old.inputs, *former.values())
        result = self.computes[-1].results[0].name
        graph = replace(self.old, inputs=inputs, nodes=tuple(self.computes), results=(result,))
        return StreamedForm(graph, {buffer.name: name for name, buffer in former.items()})

    def add(
        self,
        label: str,
        sizes: Sequence[int],
        reads: Sequence[Access],
        value: Scalar,
        element: Attribute,
        reduce: Sequence[int] = (),
        combiner: str = "",
        values: Mapping[str, Buffer] | None = None,
    ) -> Buffer:
        """Add a compute of `value` over axes of `sizes`, and reduce axes of the extents `reduce`; return its result.
        `values`: buffers that it reads besides those of the graph and of the added computes."""
        known = {**self.old.values, **{b.name: b for node in self.computes for b in node.results}, **(values or {})}
        axes = [axis_attribute(f"i{n}", size) for n, size in enumerate(sizes)]
        axes += [axis_attribute(f"r{n}", size, True) for n, size in enumerate(reduce)]
        types = tuple(known[access.buffer].scalar for access in reads)
        block = Block(label, tuple(axes), (), (), tuple(reads), types, (), (value,), (combiner,) if combiner else ())
        result = Buffer(self.names.fresh(label), tuple(sizes), element)
        self.computes.append(Compute(block, (result,)))
        return result

    def copy(self, label: str, access: Access, extent: int, edge: int, depth: int) -> Buffer:
        """Add a copy [batch, rows, d] of queries or keys, padded with zeros: `extent` rows to a multiple of `edge`,
        `depth` elements to one of DEPTH. Return it."""
        count, spatial = len(self.batch), self.found.scores.block.spatial
        axis = count if access is self.found.queries else count + 1
        moved = {n: lin.variable(n) for n in range(count)} | {
            axis: lin.variable(count),
            spatial: lin.variable(count + 1),
        }
        sizes = [*(a.size for a in self.batch), padded(extent, edge), padded(depth, DEPTH)]
        where = [below(axis, size) for axis, size in ((count, extent), (count + 1, depth)) if sizes[axis] > size]
        index = tuple(lin.substitute(form, moved, lin.box(sizes)) for form in access.index)
        read = Access(access.buffer, index, tuple(where), number(0.0, self.element) if where else None)
        return self.add(label, sizes, [read], body.read(0, self.element), self.element)

    def product(self, label: str, rows: Buffer, keys: Buffer) -> Buffer:
        """Add the products of all padded queries and keys, the scores, as a compute `label`; return its result."""
        *batch, m, n, d = map(lin.variable, range(len(self.batch) + 3))
        reads = [Access(rows.name, (*batch, m, d)), Access(keys.name, (*batch, n, d))]
        sizes = [*rows.shape[:-1], keys.shape[-2]]
        factors = [self.widened(body.read(number, self.element)) for number in range(2)]
        return self.add(label, sizes, reads, apply(arith.MulfOp, factors), Float32Type(), rows.shape[-1:], "add")

    def widened(self, value: Scalar) -> Scalar:
        """Return a value of the dtype of the operands in f32."""
        return value if not self.is_narrow else body.apply(ExtFOp, [value], {}, [Float32Type()])

    def logits(self, scores: Buffer) -> Buffer:
        """Add the elementwise computes between the scores and their maximum, the last one without its factor; reads of
        masks are padded with zeros."""
        former, value = self.found.scores.results[0].name, scores
        for node in self.found.chain:
            reads = [self.padded_read(access, former, value) for access in node.block.reads]
            names = {value.name: value}
            former, element = node.results[0].name, node.results[0].element
            new = unscaled(node.block.body[0])[0] if node is self.found.chain[-1] else node.block.body[0]
            value = self.add(node.block.label, scores.shape, reads, new, element, values=names)
        return value

    def padded_read(self, access: Access, former: str, value: Buffer) -> Access:
        """Return a read of a compute over [batch, m, n] in the padded form: of `value` instead of `former`; of another
        buffer only if the query and the key exist, else zero."""
        if access.buffer == former:
            return Access(value.name, tuple(lin.variable(n) for n in range(len(value.shape))))
        count, axes = len(self.batch), axes_of(access) | {v for c in access.where for v in c.form.variables()}
        limits = [(count, self.m, value.shape[-2]), (count + 1, self.n, value.shape[-1])]
        where = tuple(below(n, size) for n, size, padded in limits if n in axes and padded > size)
        zero = access.otherwise or identity("add", self.old.values[access.buffer].element)
        return replace(access, where=(*access.where, *where), otherwise=zero) if where else access

    def masked(self, value: Scalar, axis: int, padded: int, otherwise: float, type_: Attribute) -> Scalar:
        """Return `value` of the key at `axis`, or `otherwise` beyond the last key; `value` itself if `padded`, the
        number of keys with padding, adds none."""
        if padded == self.n:
            return value
        return body.select([below(axis, self.n)], value, body.constant(number(otherwise, type_)), type_)

    def power_reads(self, logits: Buffer, top: Access) -> list[Access]:
        """Return the reads of the powers in the padded form: of `logits`, of the maximum by `top`, and of masks."""
        found, inputs = self.found, {value.name for value in self.old.inputs}
        return [
            top
            if access.buffer == found.top.results[0].name
            else self.padded_read(access, "" if access.buffer in inputs else access.buffer, logits)
            for access in found.powers.block.reads
        ]

    @property
    def exponent(self) -> tuple[Scalar, Scalar]:
        """The logit and the maximum whose difference is the exponent, over the reads of the powers."""
        power = uncast(self.found.powers.block.body[0])
        assert isinstance(power, Apply) and isinstance(power.operands[0], Apply)
        logit, greatest = power.operands[0].operands
        return logit, greatest

    @property
    def factor(self) -> float:
        """The factor of exponents in powers of 2: that which `logits` omits, times log2(e)."""
        return LOG2_E * (unscaled(self.found.chain[-1].block.body[0])[1] if self.found.chain else 1.0)

    def power(self, exponent: Scalar, logits: Buffer) -> Scalar:
        """Return 2 to an exponent in the dtype of the values; 0 beyond the last key."""
        power = apply(math.Exp2Op, [exponent])
        power = body.apply(TruncFOp, [power], {}, [self.element]) if self.is_narrow else power
        return self.masked(power, len(self.batch) + 1, logits.shape[-1], 0.0, self.element)

    def values(self, columns: int) -> Buffer:
        """Add a copy [batch, n, e] of the values, with ones beyond the last key, whose power is 0, and the same as
        [batch, n, e / lanes, lanes] with ones in another `lanes` columns; return the latter. lanes: 16 for f32, else
        8."""
        count, spatial = len(self.batch), self.found.product.block.spatial
        sizes = [*(axis.size for axis in self.batch), padded(self.n, ROWS), padded(columns, self.lanes)]
        moved = {n: lin.constant(0) for n in range(spatial)}
        moved |= {axis: lin.variable(n) for n, axis in enumerate(self.found.axes[:-2])}
        moved |= {spatial: lin.variable(count), spatial - 1: lin.variable(count + 1)}
        index = tuple(lin.substitute(form, moved, lin.box(sizes)) for form in self.found.values.index)
        limits = ((count, self.n), (count + 1, columns))
        where = tuple(below(axis, size) for axis, size in limits if sizes[axis] > size)
        one = number(1.0, self.element)
        read = Access(self.found.values.buffer, index, where, one if where else None)
        value = body.read(0, self.element)
        rows = self.add(NAMES.values, sizes, [read], value, self.element)
        tiles = sizes[-1] // self.lanes
        column = lin.variable(count + 1).scaled(self.lanes) + lin.variable(count + 2)
        index = (*map(lin.variable, range(count + 1)), column)
        read = Access(rows.name, index, (below(count + 1, tiles),), one)
        return self.add(NAMES.columns, [*sizes[:-1], tiles + 1, self.lanes], [read], value, self.element)

    def result(self, wide: Buffer, columns: int, causal: CausalBlocks | None) -> None:
        """Add the quotient of the product and the sums, in the shape and dtype of the group's result: those of the last
        block of keys or, of a causal attention, of the last one that has a key for a query of the block."""
        found = self.found
        node = found.cast or found.product
        index = found.cast.block.reads[0].index if found.cast else tuple(map(lin.variable, range(node.block.spatial)))
        index = tuple(index[axis] for axis in found.axes)
        ranges = node.block.axis_ranges
        *batch, m, e = index
        lane = lin.mod(e, self.lanes, ranges)
        last = lin.constant(wide.shape[-3] - 1) if causal is None else causal.last(m, ranges)
        where = [Condition(last)] if causal is not None and lin.bounds(last, ranges)[0] < 0 else []
        zero = number(0.0, Float32Type()) if where else None
        at = [lin.floordiv(e, self.lanes, ranges), lin.constant(padded(columns, self.lanes) // self.lanes)]
        element, total = (Access(wide.name, (*batch, m, last, tile, lane), tuple(where), zero) for tile in at)
        weights = found.weights.block
        by_name = {found.powers.results[0].name: 0, found.total.results[0].name: 1}
        f32 = Float32Type()
        places = {n: body.read(by_name[access.buffer], f32) for n, access in enumerate(weights.reads)}
        value = rewrite(uncast(weights.body[0]), places)
        if found.cast is not None:
            value = rewrite(found.cast.block.body[0], {0: self.narrowed(value, found.cast.block.read_types[0])})
        else:
            value = self.narrowed(value, found.product.results[0].element)
        sizes = [axis.size for axis in node.block.axes[: node.block.spatial]]
        self.add(NAMES.result, sizes, [element, total], value, node.results[0].element)

    def narrowed(self, value: Scalar, type_: Attribute) -> Scalar:
        """Return a value of f32 in a type of float."""
        return value if type_ == Float32Type() else body.apply(TruncFOp, [value], {}, [type_])


def padded(extent: int, edge: int) -> int:
    """Return the least multiple of `edge` that is not below an extent."""
    return -(-extent // edge) * edge


def below(axis: int, size: int) -> Condition:
    """Return the condition that an axis is less than `size`."""
    return Condition(lin.constant(size - 1) - lin.variable(axis))


def number(value: float, type_: Attribute) -> FloatAttr:
    """Return a number as an attribute of a type of float."""
    assert isinstance(type_, AnyFloat)
    return FloatAttr(value, type_)


def unscaled(value: Scalar) -> tuple[Scalar, float]:
    """Return (x, c) for a value x * c with a positive, finite literal c, also below a select between such values and
    -inf; (value, 1.0) for any other. The maximum of x * c is c times that of x."""
    if isinstance(value, Apply) and value.kind is arith.MulfOp:
        for factor, rest in (value.operands, value.operands[::-1]):
            number = _constant(factor)
            if number is not None and 0 < number < float("inf"):
                return rest, number
    if isinstance(value, Apply) and value.kind is SelectOp:
        truth, *sides = value.operands
        endless = [_constant(side) == float("-inf") for side in sides]
        parts = [(side, 1.0) if is_endless else unscaled(side) for side, is_endless in zip(sides, endless, strict=True)]
        factors = {number for (_, number), skip in zip(parts, endless, strict=True) if not skip}
        if len(factors) == 1:
            chosen = [truth, *(part for part, _ in parts)]
            return body.apply(SelectOp, chosen, dict(value.properties), value.types), factors.pop()
    return value, 1.0


def _constant(value: Scalar) -> float | None:
    number = dict(value.properties)["value"] if isinstance(value, Apply) and value.kind is arith.ConstantOp else None
    return number.value.data if isinstance(number, FloatAttr) else None


def times(value: Scalar, factor: float) -> Scalar:
    """Return a value of f32 times a number."""
    return apply(arith.MulfOp, [value, body.constant(number(factor, Float32Type()))])


def apply(kind: type[Operation], operands: Sequence[Scalar]) -> Scalar:
    """Return the value of f32 that an operation without properties computes."""
    return body.apply(kind, operands, {}, [Float32Type()])
