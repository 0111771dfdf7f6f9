"""streamed: attention by blocks of keys, which computes the scores twice and has no array of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat, BFloat16Type, Float16Type, Float32Type, FloatAttr
from xdsl.ir import Attribute, Operation

from compiler.affine import linear as lin
from compiler.affine.condition import Condition
from compiler.dialects.access import axis_attribute
from compiler.dialects.combiner import identity
from compiler.dialects.upstream.arith import SelectOp
from compiler.dialects.upstream.casts import ExtFOp, TruncFOp
from compiler.graph.grouping.facts import Kind, kind_of
from compiler.graph.laws.dead_nodes import drop_dead
from compiler.graph.tree import Compute, Graph
from compiler.program import body
from compiler.program.body import Apply, Read, Scalar, leaves, rewrite
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
    and `keys_again` copy keys, `values` copies values, `columns` has them in tiles of columns, and a tile of ones.

    >>> strata.alternatives.StreamedNames().top
    'top'
    """

    rows: str = "rows"
    keys: str = "keys"
    scores: str = "scores"
    top: str = "top"
    keys_again: str = "keys.again"
    scores_again: str = "scores.again"
    powers: str = "powers"
    values: str = "values"
    columns: str = "columns"
    wide: str = "wide"
    result: str = "result"


NAMES = StreamedNames()


def streamed_attention(graph: Graph, policy: str) -> Graph | None:
    """Rewrite a group of attention to a form that works by blocks of keys; None for any other group, under `strict`,
    for fewer than FEWEST queries, unless queries, keys and values have one dtype of f16, bf16 and f32 and the powers
    are f32, and for f16 or bf16 values of a number of columns that is no multiple of LANES.

        S = sum over d of Q[m, d] * K[n, d];  L = c * f(S);  T = max over n of L;  E = exp(L - T);  Z = sum over n of E
        Y[m, e] = sum over n of (E / Z) * V[n, e]
      ->
        T = max over n of f(sum over d of Q * K)
        P[m, n] = narrow(2^(c * log2(e) * (f(sum over d of Q * K) - T)))
        W[m, e] = sum over n of P * V1[n, e], where V1 is V and a column of ones;  Y[m, e] = W[m, e] / W[m, last]

    The scores are computed twice, and all but their maximum can stay in registers: no value but T, which has a row's
    extent, is needed for all keys at once. The powers are rounded to the dtype of V, and so is their sum, which the
    column of ones gives; the division follows the product. Extents are padded: keys beyond the last one have power 0,
    and zeros for values.

    Rounding: a power p is rounded once more, by p * 2^-11 for f16 and by 2^-25 at least; the weights still add up to
    one. Source: Dao, FlashAttention-2, 2023 (division after the product, order of blocks); Rabe and Staats, 2021. Their
    running maximum, by which sums are scaled whenever it grows, is not used: the first pass has it.

    >>> Q, K, V = (te.placeholder((2, 64, 64), "f16", name=name) for name in "QKV")
    >>> f = te.function("attention", [Q, K, V], te.nn.attention(Q, K, V))
    >>> graph = strata.graph.read(strata.dialects.find_function(strata.graph.canonicalize(f.module)))
    >>> [node.block.label for node in strata.alternatives.streamed_attention(graph, "contract").nodes][-3:]
    ['columns', 'wide', 'result']
    """
    attention = None if policy == "strict" else _matched(graph)
    return None if attention is None else _Streamed(graph, attention).graph()


# --- what is matched --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Attention:
    """The computes of an attention: `top` is the maximum of the logits, `powers` the exponentials, `total` their sum,
    `weights` the quotients, `product` the weights times V, `cast` an elementwise compute of the product, or None.
    queries, keys: the reads of `scores`. values: the read of V by `product`. chain: the elementwise computes between
    the scores and the powers. axes: those of `product` over batches, queries and columns; its other axes have extent
    one."""

    scores: Compute
    chain: tuple[Compute, ...]
    top: Compute
    powers: Compute
    total: Compute
    weights: Compute
    product: Compute
    cast: Compute | None
    queries: Access
    keys: Access
    values: Access
    axes: tuple[int, ...]


def _matched(graph: Graph) -> _Attention | None:
    """Return the computes of a group that consists of one attention; None for any other group."""
    computes = {value.name: node for node in graph.nodes if isinstance(node, Compute) for value in node.results}
    if len(graph.results) != 1 or len(computes) != len(graph.nodes):
        return None
    last = computes.get(graph.results[0])
    cast = last if last is not None and kind_of(last.block) is Kind.ELEMENTWISE else None
    if cast is not None:
        last = computes.get(cast.block.reads[0].buffer) if len(cast.block.reads) == 1 else None
    for weights_first in (True, False):
        found = _of_product(last, cast, computes, weights_first) if last is not None else None
        if found is not None and set(map(id, _parts(found))) == set(map(id, graph.nodes)):
            return found
    return None


def _parts(found: _Attention) -> list[Compute]:
    single = [found.scores, found.top, found.powers, found.total, found.weights, found.product]
    return [*single, *found.chain, *([found.cast] if found.cast is not None else [])]


def _of_product(
    product: Compute, cast: Compute | None, computes: Mapping[str, Compute], weights_first: bool
) -> _Attention | None:
    pair = _operands(product)
    if pair is None or product.block.spatial < 2:
        return None
    read, values = pair if weights_first else pair[::-1]
    k, e = product.block.spatial, product.block.spatial - 1
    weights = computes.get(read.buffer)
    *batch, m = [n for n in range(e) if n in _axes(read)] or [e]
    single = all(product.block.axes[n].size == 1 for n in range(e) if n not in (*batch, m))
    if weights is None or not single or not _is_at(read, [*batch, m, k]) or m in _axes(values) or values.where:
        return None
    powers, total = _normalised(weights, computes)
    if powers is None or total is None:
        return None
    exponents = [computes.get(access.buffer) for access in powers.block.reads]
    top = next((node for node in exponents if node is not None and node.block.combiners == ("max",)), None)
    if top is None or len(top.block.reads) != 1 or not _is_exponential(powers) or not _reads_row(powers, top):
        return None
    chain = _chain(top.block.reads[0].buffer, computes)
    if not chain or not _is_at(top.block.reads[0], range(top.block.spatial + 1)):
        return None
    scores, *elementwise = chain
    reads = {value.name for node in chain for value in node.results}
    inner = [access for access in powers.block.reads if access.buffer in reads]
    if len(inner) != 1 or not _is_at(inner[0], range(powers.block.spatial)):
        return None
    sides = _sides(scores)
    if sides is None or sides[0].where or sides[1].where:
        return None
    axes = (*batch, m, e)
    return _Attention(scores, tuple(elementwise), top, powers, total, weights, product, cast, *sides, values, axes)


def _operands(node: Compute) -> tuple[Access, Access] | None:
    """Return the reads of a product of two reads, each at most widened, over one reduce axis; None for other blocks."""
    block = node.block
    if block.combiners != ("add",) or len(block.reads) != 2 or len(block.axes) != block.spatial + 1:
        return None
    value = block.body[0]
    if not isinstance(value, Apply) or value.kind is not arith.MulfOp:
        return None
    factors = [_uncast(operand) for operand in value.operands]
    if not all(isinstance(factor, Read) for factor in factors) or factors[0] is factors[1]:
        return None
    return block.reads[0], block.reads[1]


def _uncast(value: Scalar) -> Scalar:
    while isinstance(value, Apply) and value.kind in (ExtFOp, TruncFOp):
        value = value.operands[0]
    return value


def _sides(scores: Compute) -> tuple[Access, Access] | None:
    """Return the reads of queries and keys of the scores [.., m, n] over d; None if both depend on m, or on n."""
    pair, m, n = _operands(scores), scores.block.spatial - 2, scores.block.spatial - 1
    for queries, keys in (pair, pair[::-1]) if pair is not None and m >= 0 else ():
        if n not in _axes(queries) and m not in _axes(keys) and m in _axes(queries) and n in _axes(keys):
            return queries, keys
    return None


def _normalised(weights: Compute, computes: Mapping[str, Compute]) -> tuple[Compute | None, Compute | None]:
    """Return the powers and their sum if the weights are powers / f(sum) or powers * f(sum); else (None, None)."""
    block = weights.block
    if block.combiners or block.table is not None:
        return None, None
    for access in block.reads:
        powers = computes.get(access.buffer)
        if powers is None or powers.block.combiners or not _is_at(access, range(block.spatial)):
            continue
        totals = [computes.get(read.buffer) for read in block.reads if read is not access]
        total = totals[0] if len(totals) == 1 else None
        if total is None or not _sums(total, powers) or not _reads_row(weights, total):
            continue
        position = block.reads.index(access)
        value = _uncast(block.body[0])
        factors = [_uncast(operand) for operand in value.operands] if isinstance(value, Apply) else []
        is_product = isinstance(value, Apply) and value.kind is arith.MulfOp
        is_quotient = isinstance(value, Apply) and value.kind is arith.DivfOp
        own = [n for n, factor in enumerate(factors) if isinstance(factor, Read) and factor.position == position]
        other = [leaf for n, factor in enumerate(factors) if n not in own for leaf in leaves([factor])]
        scales = all(isinstance(leaf, Read) and leaf.position != position for leaf in other)
        if scales and (own == [0] if is_quotient else is_product and len(own) == 1):
            return powers, total
    return None, None


def _sums(total: Compute, powers: Compute) -> bool:
    """Whether a compute is the sum of the powers along their last axis."""
    block = total.block
    return (
        block.combiners == ("add",)
        and [access.buffer for access in block.reads] == [powers.results[0].name]
        and len(block.axes) == block.spatial + 1
        and _is_at(block.reads[0], range(powers.block.spatial))
        and isinstance(_uncast(block.body[0]), Read)
    )


def _is_exponential(powers: Compute) -> bool:
    value = _uncast(powers.block.body[0])
    if powers.block.combiners or not isinstance(value, Apply) or value.kind is not math.ExpOp:
        return False
    difference = value.operands[0]
    return (
        isinstance(difference, Apply)
        and difference.kind is arith.SubfOp
        and all(operand_type == Float32Type() for operand_type in difference.types)
    )


def _reads_row(node: Compute, row: Compute) -> bool:
    """Whether a compute over [.., m, n] reads a value over rows at [.., m]."""
    reads = [access for access in node.block.reads if access.buffer == row.results[0].name]
    return len(reads) == 1 and _is_at(reads[0], range(node.block.spatial - 1))


def _chain(name: str, computes: Mapping[str, Compute]) -> list[Compute]:
    """Return the scores and the elementwise computes that lead from them to a value, in order; empty if it is no value
    that is computed from one product, element by element."""
    nodes: list[Compute] = []
    while (node := computes.get(name)) is not None:
        nodes.insert(0, node)
        if node.block.combiners:
            return nodes if kind_of(node.block) is Kind.CONTRACTION else []
        inner = [access for access in node.block.reads if access.buffer in computes]
        if node.block.table is not None or len(inner) != 1 or not _is_at(inner[0], range(node.block.spatial)):
            return []
        name = inner[0].buffer
    return []


def _is_at(access: Access, axes: Sequence[int]) -> bool:
    """Whether a read has no conditions and its index, apart from zeros, is `axes` in their order."""
    forms = [form for form in access.index if form.terms or form.constant]
    return not access.where and forms == [lin.variable(axis) for axis in axes]


def _axes(access: Access) -> set[int]:
    return set().union(*(form.variables() for form in access.index))


# --- what is written --------------------------------------------------------------------------------------------------


class _Streamed:
    """The streamed form of a graph that is an attention. `m`, `n`, `e`: the extents of queries, keys and results;
    `batch` the axes before them."""

    def __init__(self, graph: Graph, found: _Attention) -> None:
        self.old, self.found = graph, found
        self.names = Names(value.name for value in graph.inputs)
        self.computes: list[Compute] = []
        *batch, m, n = found.scores.block.axes[: found.scores.block.spatial]
        self.batch, self.m, self.n = batch, m.size, n.size
        self.element = graph.values[found.values.buffer].element
        self.is_narrow = isinstance(self.element, _NARROW)
        self.lanes = LANES if self.is_narrow else THREADS

    def graph(self) -> Graph | None:
        """Return the streamed graph; None for the dtypes, columns and numbers of queries that `streamed_attention`
        refuses."""
        found, values = self.found, self.old.values
        depth, columns = (
            found.scores.block.axes[-1].size,
            found.product.block.axes[found.product.block.spatial - 1].size,
        )
        elements = {values[access.buffer].element for access in (found.queries, found.keys, found.values)}
        is_f32 = isinstance(values[found.powers.results[0].name].element, Float32Type)
        fits = not columns % LANES if self.is_narrow else isinstance(self.element, Float32Type)
        if elements != {self.element} or not fits or not is_f32 or self.m < FEWEST:
            return None
        rows = self._copy(NAMES.rows, found.queries, self.m, ROWS, depth)
        keys, again = (self._copy(name, found.keys, self.n, ROWS, depth) for name in (NAMES.keys, NAMES.keys_again))
        top = self._top(self._logits(self._product(NAMES.scores, rows, keys), ""))
        logits = self._logits(self._product(NAMES.scores_again, rows, again), ".again")
        powers = self._powers(logits, top)
        wide = self._wide(powers, self._values(columns))
        self._result(wide, columns)
        return drop_dead(replace(self.old, nodes=tuple(self.computes), results=(self.computes[-1].results[0].name,)))

    def _add(
        self,
        label: str,
        sizes: Sequence[int],
        reads: Sequence[Access],
        value: Scalar,
        element: Attribute,
        reduce: int = 0,
        combiner: str = "",
        values: Mapping[str, Buffer] | None = None,
    ) -> Buffer:
        """Add a compute of `value` over axes of `sizes`, and one reduce axis of extent `reduce` unless that is 0;
        return its result. `values`: buffers that it reads besides those of the graph and of the added computes."""
        known = {**self.old.values, **{b.name: b for node in self.computes for b in node.results}, **(values or {})}
        axes = [axis_attribute(f"i{n}", size) for n, size in enumerate(sizes)]
        axes += [axis_attribute("r0", reduce, True)] if reduce else []
        types = tuple(known[access.buffer].scalar for access in reads)
        block = Block(label, tuple(axes), (), (), tuple(reads), types, (), (value,), (combiner,) if combiner else ())
        result = Buffer(self.names.fresh(label), tuple(sizes), element)
        self.computes.append(Compute(block, (result,)))
        return result

    def _copy(self, label: str, access: Access, extent: int, edge: int, depth: int) -> Buffer:
        """Add a copy [batch, rows, d] of queries or keys, padded with zeros: `extent` rows to a multiple of `edge`,
        `depth` elements to one of DEPTH. Return it."""
        count, spatial = len(self.batch), self.found.scores.block.spatial
        axis = count if access is self.found.queries else count + 1
        moved = {n: lin.variable(n) for n in range(count)} | {
            axis: lin.variable(count),
            spatial: lin.variable(count + 1),
        }
        sizes = [*(a.size for a in self.batch), _padded(extent, edge), _padded(depth, DEPTH)]
        where = [_below(axis, size) for axis, size in ((count, extent), (count + 1, depth)) if sizes[axis] > size]
        index = tuple(lin.substitute(form, moved, lin.box(sizes)) for form in access.index)
        read = Access(access.buffer, index, tuple(where), _number(0.0, self.element) if where else None)
        return self._add(label, sizes, [read], body.read(0, self.element), self.element)

    def _product(self, label: str, rows: Buffer, keys: Buffer) -> Buffer:
        """Add the products of all padded queries and keys, the scores, as a compute `label`; return its result."""
        *batch, m, n, d = map(lin.variable, range(len(self.batch) + 3))
        reads = [Access(rows.name, (*batch, m, d)), Access(keys.name, (*batch, n, d))]
        sizes = [*rows.shape[:-1], keys.shape[-2]]
        factors = [self._widened(body.read(number, self.element)) for number in range(2)]
        return self._add(label, sizes, reads, _apply(arith.MulfOp, factors), Float32Type(), rows.shape[-1], "add")

    def _widened(self, value: Scalar) -> Scalar:
        return value if not self.is_narrow else body.apply(ExtFOp, [value], {}, [Float32Type()])

    def _logits(self, scores: Buffer, suffix: str) -> Buffer:
        """Add the elementwise computes between the scores and their maximum, the last one without its factor; reads of
        masks are padded with zeros."""
        former, value = self.found.scores.results[0].name, scores
        for node in self.found.chain:
            reads = [self._padded_read(access, former, value) for access in node.block.reads]
            label = f"{node.block.label}{suffix}"
            names = {value.name: value}
            former, element = node.results[0].name, node.results[0].element
            new = _unscaled(node.block.body[0])[0] if node is self.found.chain[-1] else node.block.body[0]
            value = self._add(label, scores.shape, reads, new, element, values=names)
        return value

    def _padded_read(self, access: Access, former: str, value: Buffer) -> Access:
        """Return a read of a compute over [batch, m, n] in the padded form: of `value` instead of `former`; of another
        buffer only if the query and the key exist, else zero."""
        if access.buffer == former:
            return Access(value.name, tuple(lin.variable(n) for n in range(len(value.shape))))
        count, axes = len(self.batch), _axes(access) | {v for c in access.where for v in c.form.variables()}
        limits = [(count, self.m, value.shape[-2]), (count + 1, self.n, value.shape[-1])]
        where = tuple(_below(n, size) for n, size, padded in limits if n in axes and padded > size)
        zero = access.otherwise or identity("add", self.old.values[access.buffer].element)
        return replace(access, where=(*access.where, *where), otherwise=zero) if where else access

    def _masked(self, value: Scalar, axis: int, padded: int, otherwise: float, type_: Attribute) -> Scalar:
        """Return `value` of the key at `axis`, or `otherwise` beyond the last key; `value` itself if `padded`, the
        number of keys with padding, adds none."""
        if padded == self.n:
            return value
        return body.select([_below(axis, self.n)], value, body.constant(_number(otherwise, type_)), type_)

    def _top(self, logits: Buffer) -> Buffer:
        """Add the maximum over all keys of each padded query; return it."""
        block, count = self.found.top.block, len(self.batch) + 1
        index = tuple(lin.variable(n) for n in range(count + 1))
        value = self._masked(block.body[0], count, logits.shape[-1], float("-inf"), block.read_types[0])
        element = self.found.top.results[0].element
        return self._add(
            NAMES.top, logits.shape[:-1], [Access(logits.name, index)], value, element, logits.shape[-1], "max"
        )

    def _powers(self, logits: Buffer, top: Buffer) -> Buffer:
        """Add the powers, in the dtype of the values: 2 to the logits less their maximum, times log2(e)."""
        found, count = self.found, len(self.batch) + 1
        inputs = {value.name for value in self.old.inputs}
        reads = []
        for access in found.powers.block.reads:
            if access.buffer == found.top.results[0].name:
                reads.append(Access(top.name, tuple(lin.variable(n) for n in range(count))))
            else:
                former = "" if access.buffer in inputs else access.buffer
                reads.append(self._padded_read(access, former, logits))
        difference = _uncast(found.powers.block.body[0])
        assert isinstance(difference, Apply) and isinstance(difference.operands[0], Apply)
        logit, greatest = difference.operands[0].operands
        factor = LOG2_E * (_unscaled(found.chain[-1].block.body[0])[1] if found.chain else 1.0)
        exponent = _apply(arith.SubfOp, [_times(logit, factor), _times(greatest, factor)])
        power = _apply(math.Exp2Op, [exponent])
        power = body.apply(TruncFOp, [power], {}, [self.element]) if self.is_narrow else power
        power = self._masked(power, count, logits.shape[-1], 0.0, self.element)
        return self._add(NAMES.powers, logits.shape, reads, power, self.element)

    def _values(self, columns: int) -> Buffer:
        """Add a copy [batch, n, e] of the values, with ones beyond the last key, whose power is 0, and the same as
        [batch, n, e / lanes, lanes] with ones in another `lanes` columns; return the latter. lanes: 16 for f32, else
        8."""
        count, spatial = len(self.batch), self.found.product.block.spatial
        sizes = [*(axis.size for axis in self.batch), _padded(self.n, ROWS), _padded(columns, self.lanes)]
        moved = {n: lin.constant(0) for n in range(spatial)}
        moved |= {axis: lin.variable(n) for n, axis in enumerate(self.found.axes[:-2])}
        moved |= {spatial: lin.variable(count), spatial - 1: lin.variable(count + 1)}
        index = tuple(lin.substitute(form, moved, lin.box(sizes)) for form in self.found.values.index)
        limits = ((count, self.n), (count + 1, columns))
        where = tuple(_below(axis, size) for axis, size in limits if sizes[axis] > size)
        one = _number(1.0, self.element)
        read = Access(self.found.values.buffer, index, where, one if where else None)
        value = body.read(0, self.element)
        rows = self._add(NAMES.values, sizes, [read], value, self.element)
        tiles = sizes[-1] // self.lanes
        column = lin.variable(count + 1).scaled(self.lanes) + lin.variable(count + 2)
        index = (*map(lin.variable, range(count + 1)), column)
        read = Access(rows.name, index, (_below(count + 1, tiles),), one)
        return self._add(NAMES.columns, [*sizes[:-1], tiles + 1, self.lanes], [read], value, self.element)

    def _wide(self, powers: Buffer, values: Buffer) -> Buffer:
        """Add the product of powers and values, whose last columns are the sums of the powers."""
        *batch, m, q, lane, n = map(lin.variable, range(len(self.batch) + 4))
        reads = [Access(powers.name, (*batch, m, n)), Access(values.name, (*batch, n, q, lane))]
        factors = [self._widened(body.read(number, self.element)) for number in range(2)]
        sizes = [*powers.shape[:-1], *values.shape[-2:]]
        return self._add(
            NAMES.wide, sizes, reads, _apply(arith.MulfOp, factors), Float32Type(), powers.shape[-1], "add"
        )

    def _result(self, wide: Buffer, columns: int) -> None:
        """Add the quotient of the product and the sums, in the shape and dtype of the group's result."""
        found = self.found
        node = found.cast or found.product
        index = found.cast.block.reads[0].index if found.cast else tuple(map(lin.variable, range(node.block.spatial)))
        index = tuple(index[axis] for axis in found.axes)
        ranges = node.block.axis_ranges
        *batch, m, e = index
        lane = lin.mod(e, self.lanes, ranges)
        element = Access(wide.name, (*batch, m, lin.floordiv(e, self.lanes, ranges), lane))
        total = Access(wide.name, (*batch, m, lin.constant(_padded(columns, self.lanes) // self.lanes), lane))
        weights = found.weights.block
        by_name = {found.powers.results[0].name: 0, found.total.results[0].name: 1}
        f32 = Float32Type()
        places = {n: body.read(by_name[access.buffer], f32) for n, access in enumerate(weights.reads)}
        value = rewrite(_uncast(weights.body[0]), places)
        if found.cast is not None:
            value = rewrite(found.cast.block.body[0], {0: self._narrowed(value, found.cast.block.read_types[0])})
        else:
            value = self._narrowed(value, found.product.results[0].element)
        sizes = [axis.size for axis in node.block.axes[: node.block.spatial]]
        self._add(NAMES.result, sizes, [element, total], value, node.results[0].element)

    def _narrowed(self, value: Scalar, type_: Attribute) -> Scalar:
        return value if type_ == Float32Type() else body.apply(TruncFOp, [value], {}, [type_])


def _padded(extent: int, edge: int) -> int:
    return -(-extent // edge) * edge


def _below(axis: int, size: int) -> Condition:
    return Condition(lin.constant(size - 1) - lin.variable(axis))


def _number(value: float, type_: Attribute) -> FloatAttr:
    assert isinstance(type_, AnyFloat)
    return FloatAttr(value, type_)


def _unscaled(value: Scalar) -> tuple[Scalar, float]:
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
        parts = [
            (side, 1.0) if is_endless else _unscaled(side) for side, is_endless in zip(sides, endless, strict=True)
        ]
        factors = {number for (_, number), skip in zip(parts, endless, strict=True) if not skip}
        if len(factors) == 1:
            chosen = [truth, *(part for part, _ in parts)]
            return body.apply(SelectOp, chosen, dict(value.properties), value.types), factors.pop()
    return value, 1.0


def _constant(value: Scalar) -> float | None:
    number = dict(value.properties)["value"] if isinstance(value, Apply) and value.kind is arith.ConstantOp else None
    return number.value.data if isinstance(number, FloatAttr) else None


def _times(value: Scalar, factor: float) -> Scalar:
    return _apply(arith.MulfOp, [value, body.constant(_number(factor, Float32Type()))])


def _apply(kind: type[Operation], operands: Sequence[Scalar]) -> Scalar:
    return body.apply(kind, operands, {}, [Float32Type()])
