"""scatter: writes at data-dependent positions, as reductions over all writes to each element."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from compiler.dialects.upstream.stablehlo.attributes import ScatterAttr
from compiler.lowering.stablehlo_to_te.call import HloCall
from compiler.lowering.stablehlo_to_te.operators.elementwise import convert_to
from compiler.lowering.stablehlo_to_te.operators.reductions import REDUCTIONS, combining_op, identity_of, sum_dtype
from compiler.lowering.stablehlo_to_te.operators.shapes import Placed
from compiler.lowering.stablehlo_to_te.scalars import FUNCTIONS
from compiler.lowering.stablehlo_to_te.table import handles
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr, const
from compiler.te.gather import gather as te_gather
from compiler.te.index import Index, IndexLike
from compiler.te.nn.window import row_major
from compiler.te.tensor import TableRead, Tensor, reduce_axis

MAX_WRITES = 256
"""The most writes that each element of a result is compared with."""


class ScatterDims:
    """The dimension numbers of a scatter, checked. Raises LoweringError if they do not fit. window_of: for each
    windowed dimension of x, the dimension of the updates. batch: the updates' other dimensions. batching: for each
    batching dimension of x, the position among the batch. starts: the dimensions of x that an index vector is for.
    vector: the dimension of the indices along which these vectors run, their rank if each index is one number."""

    def __init__(self, call: HloCall, x: Tensor, indices: Tensor, updates: Tensor) -> None:
        numbers = call.attribute("scatter_dimension_numbers")
        if not isinstance(numbers, ScatterAttr):
            raise call.refused("has no scatter_dimension_numbers")
        lists = numbers.lists()
        window = call.check_dims("update_window_dims", lists.get("update_window_dims", []), updates.rank)
        inserted = call.check_dims("inserted_window_dims", lists.get("inserted_window_dims", []), x.rank)
        batching = call.check_dims("input_batching_dims", lists.get("input_batching_dims", []), x.rank)
        own = lists.get("scatter_indices_batching_dims", [])
        self.starts = call.check_dims(
            "scatter_dims_to_operand_dims", lists.get("scatter_dims_to_operand_dims", []), x.rank
        )
        self.vector = numbers.number("index_vector_dim")
        boxed = [d for d in range(x.rank) if d not in (*inserted, *batching)]
        if len(boxed) != len(window) or len(own) != len(batching):
            raise call.refused(f"has dimension numbers that do not fit a tensor of shape {x.shape}")
        self.window_of = dict(zip(boxed, window, strict=True))
        self.batch = [d for d in range(updates.rank) if d not in window]
        index_dims = [d for d in range(indices.rank) if d != self.vector]
        self.batching = {d: index_dims.index(n) for d, n in zip(batching, own, strict=True)}

    def index(self, batch: Sequence[IndexLike], component: int, rank: int) -> tuple[IndexLike, ...]:
        """Return the index in the scatter indices, of rank `rank`, of one component of the index vector of a batch
        index. `component` is dropped if the indices have no dimension for it."""
        listed = list(batch)
        return tuple(listed if self.vector == rank else [*listed[: self.vector], component, *listed[self.vector :]])


@handles("scatter")
def _scatter(call: HloCall) -> Tensor:
    if len(call.operands) != 3:
        raise call.refused("writes to several tensors at once")
    x, indices, updates = call.operands
    dims = ScatterDims(call, x, indices, updates)
    block = call.op.regions[0].block
    name = combining_op(block, x.dtype)
    last = block.last_op
    is_set = last is not None and list(last.operands) == [block.args[1]]
    if name is None and not is_set:
        raise call.refused("has a region that neither replaces an element nor combines it by a sum, product or extreme")
    boxed = _in_one_box(call, dims, name)
    if boxed is not None:
        return boxed
    for d in dims.starts:
        if d in dims.window_of and updates.shape[dims.window_of[d]] > 1:
            raise call.refused(
                f"writes boxes at positions of dimension {d} that a run decides; single elements are read"
            )
    for d, n in dims.window_of.items():
        if d not in dims.starts and updates.shape[n] != x.shape[d]:
            raise call.refused(f"writes to a part of dimension {d}")
    writes = ScatterWrites(call, dims)
    if writes.count > MAX_WRITES:
        raise call.refused(f"makes {writes.count} writes; up to {MAX_WRITES} are compared for each element")
    return writes.replaced() if is_set else writes.combined(str(name))


def _in_one_box(call: HloCall, dims: ScatterDims, name: str | None) -> Tensor | None:
    """Return the result of a scatter of a single box at a known position, by the combining op `name` (None: replacing);
    x if the box is not inside x. Return None for scatters of several boxes, at unknown positions or with batching
    dimensions."""
    x, indices, updates = call.operands
    array = call.array(indices)
    if array is None or any(updates.shape[d] != 1 for d in dims.batch) or dims.batching:
        return None
    starts = [0] * x.rank
    for component, d in enumerate(dims.starts):
        starts[d] = int(array.reshape(-1)[component])
    sizes = [updates.shape[dims.window_of[d]] if d in dims.window_of else 1 for d in range(x.rank)]
    if any(s < 0 or s + size > n for s, size, n in zip(starts, sizes, x.shape, strict=True)):
        return x
    order = [dims.window_of.get(d) for d in range(x.rank)]

    def box_at(*i: Index) -> Expr:
        index: list[IndexLike] = [0] * updates.rank
        for d, n in enumerate(order):
            if n is not None:
                index[n] = i[d]
        return call.at(updates, *index)

    box = compute(sizes, box_at, f"{call.name}.box")
    placed = Placed(sizes, starts, [1] * x.rank)

    def element(*i: Index) -> Expr:
        own = call.at(x, *i)
        if name is None:
            return placed.read(call, box, i, own)
        neutral = const(identity_of(name, x.dtype), x.dtype)
        return FUNCTIONS[f"stablehlo.{name}"](own, placed.read(call, box, i, neutral))

    return compute(x.shape, element, call.name)


class ScatterWrites:
    """The writes of a scatter: each element of x may be written once for each index of the batch dimensions of the
    updates. extents: of these dimensions. count: the number of their indices."""

    def __init__(self, call: HloCall, dims: ScatterDims) -> None:
        self.call, self.dims = call, dims
        self.x, self.indices, self.updates = call.operands
        self.extents = [self.updates.shape[d] for d in dims.batch]
        self.count = prod(self.extents)

    def hits(self, i: Sequence[Index], batch: Sequence[IndexLike]) -> Expr:
        """Return the truth value of whether the write of a batch index is to element i of x, by the dimensions that
        have a start or are batching. Requires at least one such dimension."""
        conditions: list[Expr] = []
        for component, d in enumerate(self.dims.starts):
            position = self.call.at(self.indices, *self.dims.index(batch, component, self.indices.rank))
            conditions.append(e.equal(e.cast(position, "i64"), e.cast(i[d], "i64")))
        for d, n in self.dims.batching.items():
            conditions.append(e.cast(e.equal(e.cast(i[d], "i64"), e.cast(_index(batch[n]), "i64")), "i1"))
        hit = conditions[0]
        for condition in conditions[1:]:
            hit = hit & condition
        return hit

    def update_index(self, i: Sequence[Index], batch: Sequence[IndexLike]) -> list[IndexLike]:
        """Return the index in the updates of the element that the write of a batch index has for element i of x."""
        index: list[IndexLike] = [0] * self.updates.rank
        for n, component in zip(self.dims.batch, batch, strict=True):
            index[n] = component
        for d, n in self.dims.window_of.items():
            index[n] = 0 if self.updates.shape[n] == 1 else i[d]
        return index

    def combined(self, name: str) -> Tensor:
        """Return x combined, by the op `name`, with all updates, reduced in the dtype of `sum_dtype` first."""
        dtype = sum_dtype(name, self.x.dtype)
        taps = [reduce_axis(n, f"k{d}") for d, n in enumerate(self.extents)]
        neutral = identity_of(name, dtype)

        def element(*i: Index) -> Expr:
            value = e.cast(self.call.at(self.updates, *self.update_index(i, taps)), dtype)
            return REDUCTIONS[name](e.select(self.hits(i, taps), value, e.const(neutral, dtype)), axis=taps)

        landed = compute(self.x.shape, element, f"{self.call.name}.landed")
        function = FUNCTIONS[f"stablehlo.{name}"]

        def total(*i: Index) -> Expr:
            return e.cast(function(e.cast(self.call.at(self.x, *i), dtype), landed[i]), self.x.dtype)

        return compute(self.x.shape, total, self.call.name)

    def replaced(self) -> Tensor:
        """Return x with each element replaced by the last update to it, if any, in row-major order of the batch."""
        taps = [reduce_axis(n, f"k{d}") for d, n in enumerate(self.extents)]
        if not taps:
            taps, flat = [reduce_axis(1, "k")], True
        else:
            flat = False

        def number(*i: Index) -> Expr:
            position = row_major(taps, self.extents or [1])
            hit = self.hits(i, [] if flat else taps)
            return e.max(e.select(hit, e.cast(position, "i64"), e.const(-1, "i64")), axis=taps)

        numbers = compute(self.x.shape, number, f"{self.call.name}.last")
        window_shape = [n for d, n in enumerate(self.updates.shape) if d not in self.dims.batch]
        kept = [d for d in range(self.updates.rank) if d not in self.dims.batch]
        rows = compute((self.count, *window_shape), lambda *i: self._row(i, kept), f"{self.call.name}.rows")

        def landed(*i: Index) -> TableRead:
            own = self.update_index(i, [0] * len(self.extents))
            return rows.at(numbers[i], *(own[d] for d in kept))

        values = te_gather(self.x.shape, landed, f"{self.call.name}.landed")
        result = compute(
            self.x.shape, lambda *i: e.select(numbers[i] >= 0, values[i], self.call.at(self.x, *i)), self.call.name
        )
        return convert_to(result, self.x.dtype, self.call.name)

    def _row(self, i: Sequence[Index], kept: Sequence[int]) -> Expr:
        """Return the element of the updates for batch number i[0], row-major, and window index i[1:] in the dimensions
        `kept`."""
        index: list[IndexLike] = [0] * self.updates.rank
        flat: Index = i[0]
        for d, n in reversed([*zip(self.dims.batch, self.extents, strict=True)]):
            index[d] = flat % n if n > 1 else 0
            flat = flat // n
        for d, own in zip(kept, i[1:], strict=True):
            index[d] = own
        return self.call.at(self.updates, *index)


def _index(value: IndexLike) -> Index:
    assert isinstance(value, Index)
    return value
