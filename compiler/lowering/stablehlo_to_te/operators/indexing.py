"""Reads and writes of boxes at data-dependent positions: gather, dynamic_slice, dynamic_update_slice."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.dialects.upstream.stablehlo.attributes import GatherAttr
from compiler.lowering.stablehlo_to_te.call import HloCall
from compiler.lowering.stablehlo_to_te.operators.shapes import Placed
from compiler.lowering.stablehlo_to_te.table import handles
from compiler.te import nn
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr
from compiler.te.gather import gather as te_gather
from compiler.te.index import Index, IndexLike
from compiler.te.tensor import Read, TableRead, Tensor


def known_starts(
    call: HloCall, starts: Sequence[Tensor], extents: Sequence[int], sizes: Sequence[int]
) -> list[int] | None:
    """Return the start of a box of `sizes` in each dimension, clamped so that the box is inside the `extents`; None if
    a start is unknown. A box as large as its dimension starts at 0, whatever its start. Requires sizes within the
    extents."""
    numbers = [call.number(start) if n != size else 0 for start, n, size in zip(starts, extents, sizes, strict=True)]
    if any(number is None for number in numbers):
        return None
    return [min(max(int(s), 0), n - size) for s, n, size in zip(numbers, extents, sizes, strict=True)]


def clamped(value: Expr, high: int) -> Expr:
    """Return a start cast to i64 and clamped to the range from 0 to `high`."""
    return e.minimum(e.maximum(e.cast(value, "i64"), 0), high)


def _check_box(call: HloCall, x: Tensor, sizes: Sequence[int], count: int) -> None:
    if len(sizes) != x.rank or count != x.rank or any(not 1 <= s <= n for s, n in zip(sizes, x.shape, strict=True)):
        raise call.refused(f"has {count} starts and a box of {list(sizes)} for a tensor of shape {x.shape}")


@handles("dynamic_slice")
def _dynamic_slice(call: HloCall) -> Tensor:
    x, *starts = call.operands
    sizes = call.integers("slice_sizes")
    _check_box(call, x, sizes, len(starts))
    begins = known_starts(call, starts, x.shape, sizes)
    if begins is not None:
        return nn.slice(x, begins, [s + n for s, n in zip(begins, sizes, strict=True)], name=call.name)
    places: dict[int, Tensor] = {}
    for d, (start, size, extent) in enumerate(zip(starts, sizes, x.shape, strict=True)):
        if size != extent:
            places[d] = compute(
                (size,),
                lambda i, start=start, high=extent - size: clamped(call.at(start), high) + e.cast(i, "i64"),
                f"{call.name}.at{d}",
            )

    def element(*i: Index) -> TableRead:
        return x.at(*(places[d][index] if d in places else index for d, index in enumerate(i)))

    return te_gather(sizes, element, call.name)


@handles("dynamic_update_slice")
def _dynamic_update_slice(call: HloCall) -> Tensor:
    x, update, *starts = call.operands
    _check_box(call, x, update.shape, len(starts))
    begins = known_starts(call, starts, x.shape, update.shape)
    if begins is not None:
        placed = Placed(update.shape, begins, [1] * x.rank)
        return compute(x.shape, lambda *i: placed.read(call, update, i, call.at(x, *i)), call.name)
    return _written_at(call, x, update, starts)


def _written_at(call: HloCall, x: Tensor, update: Tensor, starts: Sequence[Tensor]) -> Tensor:
    """Return x with a box replaced by `update`, from run-time starts, clamped so that the box is inside x: a select
    between x and a gather of the update. Requires that the update is smaller than x in a dimension."""
    places: dict[int, Tensor] = {}
    for d, (start, size, extent) in enumerate(zip(starts, update.shape, x.shape, strict=True)):
        if size != extent:
            places[d] = compute(
                (extent,),
                lambda i, start=start, high=extent - size: e.cast(i, "i64") - clamped(call.at(start), high),
                f"{call.name}.at{d}",
            )

    def read(*i: Index) -> TableRead:
        return update.at(*(places[d][index] if d in places else index for d, index in enumerate(i)))

    box = te_gather(x.shape, read, f"{call.name}.box")

    def element(*i: Index) -> Expr:
        conditions = [places[d][i[d]] >= 0 for d in places]
        conditions += [places[d][i[d]] < update.shape[d] for d in places]
        return e.select(e.all_of(*conditions), box[i], call.at(x, *i))

    return compute(x.shape, element, call.name)


class GatherDims:
    """The dimension numbers of a gather, checked. Raises LoweringError if they do not fit. window_of: for each windowed
    dimension of x, the dimension of the result. batching: for each batching dimension of x, the dimension of the
    indices. starts: the dimensions of x that a start vector is for. vector: the dimension of the indices along which
    these vectors run, their rank if each index is one start; index_dims: the other ones. offset, batch: the result's
    dimensions in a box, and the others. sizes: the extents of a box."""

    def __init__(self, call: HloCall, x: Tensor, indices: Tensor) -> None:
        numbers = call.attribute("dimension_numbers")
        if not isinstance(numbers, GatherAttr):
            raise call.refused("has no dimension_numbers")
        lists, rank = numbers.lists(), len(call.shape)
        self.offset = call.check_dims("offset_dims", lists.get("offset_dims", []), rank)
        collapsed = call.check_dims("collapsed_slice_dims", lists.get("collapsed_slice_dims", []), x.rank)
        batching = call.check_dims("operand_batching_dims", lists.get("operand_batching_dims", []), x.rank)
        own = call.check_dims("start_indices_batching_dims", lists.get("start_indices_batching_dims", []), indices.rank)
        self.starts = call.check_dims("start_index_map", lists.get("start_index_map", []), x.rank)
        self.vector = numbers.number("index_vector_dim")
        self.sizes = call.per_dim("slice_sizes", x.rank, 1)
        _check_box(call, x, self.sizes, x.rank)
        windows = [d for d in range(x.rank) if d not in (*collapsed, *batching)]
        if len(windows) != len(self.offset) or len(own) != len(batching):
            raise call.refused(f"has dimension_numbers that do not fit a tensor of shape {x.shape}")
        self.window_of = dict(zip(windows, self.offset, strict=True))
        self.batching = dict(zip(batching, own, strict=True))
        self.batch = [d for d in range(rank) if d not in self.offset]
        self.index_dims = [d for d in range(indices.rank) if d != self.vector]

    def index(self, batch: Sequence[IndexLike], component: int, rank: int) -> tuple[IndexLike, ...]:
        """Return the index in the start indices, of rank `rank`, of one component of the start vector of a batch index.
        `component` is dropped if the indices have no dimension for it."""
        listed = list(batch)
        return tuple(listed if self.vector == rank else [*listed[: self.vector], component, *listed[self.vector :]])


@handles("gather")
def _gather(call: HloCall) -> Tensor:
    """Return boxes of x at the starts in `indices`, clamped so that each box is inside x."""
    x, indices = call.operands
    dims = GatherDims(call, x, indices)
    batch_shape = [indices.shape[d] for d in dims.index_dims]
    places = {
        d: _places(call, dims, batch_shape, d, component)
        for component, d in enumerate(dims.starts)
        if dims.sizes[d] != x.shape[d]
    }

    def position(d: int, i: Sequence[Index]) -> Read | IndexLike:
        batch = [i[n] for n in dims.batch]
        if d in places:
            offset = [i[dims.window_of[d]]] if d in dims.window_of and dims.sizes[d] > 1 else []
            return places[d][(*batch, *offset)]
        if d in dims.batching:
            return batch[dims.index_dims.index(dims.batching[d])]
        return i[dims.window_of[d]] if d in dims.window_of else 0

    if not places:
        return compute(call.shape, lambda *i: x[tuple(position(d, i) for d in range(x.rank))], call.name)  # type: ignore[misc]
    return te_gather(call.shape, lambda *i: x.at(*(position(d, i) for d in range(x.rank))), call.name)


def _places(call: HloCall, dims: GatherDims, batch: Sequence[int], d: int, component: int) -> Tensor:
    """Return a tensor of positions in dimension d of x: by batch index, and by offset in the box if it is wider than 1.
    The starts, clamped so that the box is inside x, are component number `component` of the start vectors."""
    x, indices = call.operands
    size = dims.sizes[d]
    is_wide = d in dims.window_of and size > 1

    def element(*i: Index) -> Expr:
        own = i[: len(batch)]
        start = clamped(call.at(indices, *dims.index(own, component, indices.rank)), x.shape[d] - size)
        return start + e.cast(i[-1], "i64") if is_wide else start

    return compute((*batch, size) if is_wide else tuple(batch), element, f"{call.name}.at{d}")
