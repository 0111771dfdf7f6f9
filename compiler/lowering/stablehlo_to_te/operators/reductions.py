"""reduce and reduce_window: named combiners, regions as joint combiners, argmax and argmin."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import Block, SSAValue

from compiler.dialects.upstream.stablehlo.attributes import word
from compiler.lowering.stablehlo_to_te.call import HloCall
from compiler.lowering.stablehlo_to_te.operators.elementwise import convert_to
from compiler.lowering.stablehlo_to_te.scalars import FUNCTIONS, apply_region
from compiler.lowering.stablehlo_to_te.table import handles
from compiler.lowering.stablehlo_to_te.windows import DimWindow, read_window
from compiler.te import nn
from compiler.te import scalar as e
from compiler.te.combiner import Combiner, combiner
from compiler.te.combiner import reduce as joint_reduce
from compiler.te.compute import compute
from compiler.te.expr import Expr, const
from compiler.te.index import Axis, Index, IndexLike
from compiler.te.nn.common import accumulator
from compiler.te.tensor import Tensor, reduce_axis
from compiler.types.dtypes import is_float, limits

REDUCTIONS: dict[str, e.Reduction] = {"add": e.sum, "multiply": e.prod, "maximum": e.max, "minimum": e.min}
"""Map the combining ops to te's reductions."""
_OF_TRUTHS = {"or": "maximum", "and": "minimum", "add": "maximum", "multiply": "minimum"}
"""Map ops on truth values to those on 0 and 1."""


def combining_op(block: Block, dtype: str) -> str | None:
    """Return the name, a key of REDUCTIONS, of the single op by which a region combines its two arguments, for i1 that
    of the op on 0 and 1 that equals it; None for any other region, also for one with further ops."""
    ops = list(block.ops)
    if len(ops) != 2 or len(block.args) != 2 or {*ops[0].operands} != {*block.args}:
        return None
    if list(ops[1].operands) != [*ops[0].results]:
        return None
    name = ops[0].name.partition(".")[2]
    name = _OF_TRUTHS.get(name, name) if dtype == "i1" else name
    return name if name in REDUCTIONS else None


def identity_of(name: str, dtype: str) -> float:
    """Return the identity of `add`, `multiply`, `maximum` or `minimum` on numbers of a dtype: infinities for extrema of
    floats, the dtype's limits for those of integers."""
    if name in ("maximum", "minimum"):
        low, high = (-math.inf, math.inf) if is_float(dtype) else limits(dtype)
        return low if name == "maximum" else high
    return int(name == "multiply")


def sum_dtype(name: str, dtype: str) -> str:
    """Return the dtype in which the op `name` combines elements of `dtype`: i32 for i1, f32 for sums and products of
    floats narrower than f32, else `dtype`."""
    if dtype == "i1":
        return "i32"
    return accumulator(dtype) if is_float(dtype) and name in ("add", "multiply") else dtype


@handles("reduce")
def _reduce(call: HloCall) -> Tensor | Sequence[Tensor]:
    count = len(call.operands) // 2
    inputs, starts = call.operands[:count], call.operands[count:]
    dims = call.dims("dimensions", inputs[0].rank)
    block = call.op.regions[0].block
    if any(x.shape != inputs[0].shape for x in inputs) or len(block.args) != 2 * count:
        raise call.refused("has operands of several shapes, or a region that does not fit them")
    if not dims:
        return _without_axes(call, block, inputs, starts)
    name = combining_op(block, inputs[0].dtype) if count == 1 else None
    if name is not None:
        return _reduce_by_name(call, name, inputs[0], starts[0], dims)
    if count == 2 and len(dims) == 1:
        extremum = _arg_extremum(call, block, inputs, dims[0])
        if extremum is not None:
            return extremum
    return _reduce_jointly(call, block, inputs, starts, dims)


def _without_axes(call: HloCall, block: Block, inputs: Sequence[Tensor], starts: Sequence[Tensor]) -> Sequence[Tensor]:
    def element(*i: Index) -> tuple[Expr, ...]:
        arguments = [*(call.at(start) for start in starts), *(x[i] for x in inputs)]
        return tuple(apply_region(block, arguments, outside(call, block)))

    return compute(inputs[0].shape, element, call.name)


def _axes(x: Tensor, dims: Sequence[int]) -> tuple[list[int], dict[int, Axis]]:
    """Return the dimensions that are not reduced, and a reduce axis for each of `dims`."""
    return [d for d in range(x.rank) if d not in dims], {
        d: reduce_axis(x.shape[d], f"k{n}") for n, d in enumerate(dims)
    }


def _reduce_by_name(call: HloCall, name: str, x: Tensor, start: Tensor, dims: Sequence[int]) -> Tensor:
    stay, taps = _axes(x, dims)
    dtype = sum_dtype(name, x.dtype)

    def element(*i: Index) -> Expr:
        index: dict[int, IndexLike] = {**dict(zip(stay, i, strict=True)), **taps}
        value = call.at(x, *(index[d] for d in range(x.rank)))
        return REDUCTIONS[name](e.cast(value, dtype), axis=[*taps.values()])

    reduced = compute([x.shape[d] for d in stay], element, f"{call.name}.{name}" if dtype != x.dtype else call.name)
    return started(call, name, reduced, start, x.dtype)


def started(call: HloCall, name: str, reduced: Tensor, start: Tensor, dtype: str) -> Tensor:
    """Return a reduction by the op `name`, a key of REDUCTIONS, cast to `dtype`, combined with its initial value
    `start`, of rank 0, first unless that is known to be the identity."""
    number = call.number(start)
    neutral = identity_of(name, dtype) if dtype != "i1" else int(name == "minimum")
    if number is not None and number == neutral:
        return convert_to(reduced, dtype, call.name)
    function = FUNCTIONS[f"stablehlo.{name}"]

    def element(*i: Index) -> Expr:
        return e.cast(function(reduced[i], e.cast(call.at(start), reduced.dtype)), dtype)

    return compute(reduced.shape, element, f"{call.name}.start")


def outside(call: HloCall, block: Block) -> dict[SSAValue, Expr]:
    """Return constants for the values around a region that its ops read directly, by value. Raises LoweringError for a
    value that is not one known number."""
    scalars: dict[SSAValue, Expr] = {}
    for op in block.ops:
        for value in op.operands:
            tensor = call.scope.get(value)
            if not isinstance(tensor, Tensor) or value in scalars:
                continue
            number = call.number(tensor)
            if number is None:
                raise call.refused("has a region that reads a computed value from around it")
            scalars[value] = const(number, tensor.dtype)
    return scalars


def _reduce_jointly(
    call: HloCall, block: Block, inputs: Sequence[Tensor], starts: Sequence[Tensor], dims: Sequence[int]
) -> Sequence[Tensor]:
    """Return the results of a reduction of several tensors over `dims` by a region, with the initial values as its
    identity. Raises LoweringError for unknown initial values."""
    stay, taps = _axes(inputs[0], dims)
    both, _ = _joint(call, block, starts)

    def element(*i: Index) -> Any:
        index: dict[int, IndexLike] = {**dict(zip(stay, i, strict=True)), **taps}
        values = [call.at(x, *(index[d] for d in range(x.rank))) for x in inputs]
        return joint_reduce(both, values, axis=[*taps.values()])

    return _several(compute([inputs[0].shape[d] for d in stay], element, call.name, axes=[f"i{d}" for d in stay]))


def _joint(call: HloCall, block: Block, starts: Sequence[Tensor]) -> tuple[Combiner, list[Any]]:
    """Return the te combiner of a region, and the initial values as its identity. Raises LoweringError for unknown
    initial values."""
    numbers: list[Any] = [call.number(start) for start in starts]
    if any(number is None for number in numbers):
        raise call.refused("begins with values that are computed, and its region is no combiner of te")
    scalars = outside(call, block)
    return combiner(lambda current, added: apply_region(block, [*current, *added], scalars), tuple(numbers)), numbers


def _arg_extremum(call: HloCall, block: Block, inputs: Sequence[Tensor], dim: int) -> list[Tensor] | None:
    """Return the value and the index along `dim` of an argmax or argmin in the form that JAX prints; None for another
    region, and if the second input is not known to be the index along `dim`. The index is that of the first of equal
    elements; NaN wins against all numbers."""
    direction = _EXTREMA.get(spelled_region(block))
    index = call.array(inputs[1])
    if direction is None or index is None:
        return None
    x = inputs[0]
    if not bool((index == _counted(x.shape, dim)).all()):
        return None
    if x.dtype == "i1":
        x = convert_to(x, "i32", f"{call.name}.numbers")
    pick = nn.argmax if direction == "GT" else nn.argmin
    place = convert_to(pick(x, dim, name=f"{call.name}.place"), inputs[1].dtype, f"{call.name}.index")
    value = (nn.max if direction == "GT" else nn.min)(x, axis=dim, name=f"{call.name}.value")
    return [convert_to(value, inputs[0].dtype, f"{call.name}.greatest"), place]


def _counted(shape: Sequence[int], dim: int) -> Any:
    return np.arange(shape[dim]).reshape([-1 if d == dim else 1 for d in range(len(shape))])


def spelled_region(block: Block) -> str:
    """Return the ops of a region, the block `block`, as one line of text, without dialect names and types, with values
    named by number (`?`: from outside)."""
    names = {value: f"a{n}" for n, value in enumerate(block.args)}
    lines = []
    for op in block.ops:
        operands = ",".join(names.get(value, "?") for value in op.operands)
        names |= {result: f"v{len(names)}" for result in op.results}
        lines.append(f"{op.name.partition('.')[2]}{word(op.properties.get('comparison_direction'))}({operands})")
    return ";".join(lines)


def _extremum_text(direction: str, of_floats: bool) -> str:
    """Return the ops, as one line of text without dialect names and types and with values named by number, of the
    region that JAX prints for an argmax (`direction` GT) or argmin (LT), of floats, for which NaN wins, or of other
    elements."""
    if of_floats:
        return (
            f"compare{direction}(a0,a2);compareNE(a0,a0);or(v4,v5);compareEQ(a0,a2);compareLT(a1,a3);and(v7,v8);"
            "or(v6,v9);select(v6,a0,a2);select(v10,a1,a3);return(v11,v12)"
        )
    return (
        f"compare{direction}(a0,a2);compareEQ(a0,a2);compareLT(a1,a3);and(v5,v6);or(v4,v7);select(v4,a0,a2);"
        "select(v8,a1,a3);return(v9,v10)"
    )


_EXTREMA = {
    _extremum_text(direction, of_floats): direction for direction in ("GT", "LT") for of_floats in (True, False)
}


@handles("reduce_window")
def _reduce_window(call: HloCall) -> Tensor | Sequence[Tensor]:
    count = len(call.operands) // 2
    inputs, starts = call.operands[:count], call.operands[count:]
    block = call.op.regions[0].block
    if any(x.shape != inputs[0].shape for x in inputs) or len(block.args) != 2 * count:
        raise call.refused("has operands of several shapes, or a region that does not fit them")
    windows = _windows(call, inputs[0].rank)
    name = combining_op(block, inputs[0].dtype) if count == 1 else None
    if name is None:
        return _windows_jointly(call, block, inputs, starts, windows)
    return _windows_by_name(call, name, inputs[0], starts[0], windows)


def _windows_jointly(
    call: HloCall, block: Block, inputs: Sequence[Tensor], starts: Sequence[Tensor], windows: Sequence[DimWindow]
) -> Sequence[Tensor]:
    """Return the results of a reduction of windows of several tensors by a region, with the initial values as its
    identity and as padding. Raises LoweringError for unknown initial values."""
    both, numbers = _joint(call, block, starts)
    taps = [reduce_axis(window.size, f"r{d}") for d, window in enumerate(windows)]

    def element(*i: Index) -> Any:
        positions = [(d, w, w.position(i[d], tap)) for d, (w, tap) in enumerate(zip(windows, taps, strict=True))]
        values = [read_window(x, [0] * x.rank, positions, n) for x, n in zip(inputs, numbers, strict=True)]
        return joint_reduce(both, values, axis=taps)

    shape = [window.count(n) for window, n in zip(windows, inputs[0].shape, strict=True)]
    return _several(compute(shape, element, call.name))


def _several(results: Tensor | tuple[Tensor, ...]) -> Sequence[Tensor]:
    return [results] if isinstance(results, Tensor) else results


def _windows_by_name(call: HloCall, name: str, x: Tensor, start: Tensor, windows: Sequence[DimWindow]) -> Tensor:
    scanned = _scanned(call, x, name, windows)
    if scanned is not None:
        return started(call, name, scanned, start, x.dtype)
    dtype = sum_dtype(name, x.dtype)
    taps = {d: reduce_axis(window.size, f"r{d}") for d, window in enumerate(windows) if window.size > 1}
    neutral = identity_of(name, x.dtype) if x.dtype != "i1" else int(name == "minimum")

    def element(*i: Index) -> Expr:
        positions = [(d, w, w.position(i[d], taps.get(d, 0))) for d, w in enumerate(windows)]
        value = e.cast(read_window(x, [0] * x.rank, positions, neutral), dtype)
        return REDUCTIONS[name](value, axis=[*taps.values()]) if taps else value

    shape = [window.count(n) for window, n in zip(windows, x.shape, strict=True)]
    return started(call, name, compute(shape, element, f"{call.name}.{name}"), start, x.dtype)


def _windows(call: HloCall, rank: int) -> list[DimWindow]:
    sizes = call.positive("window_dimensions", rank)
    strides, base, dilations = (
        call.positive(name, rank) for name in ("window_strides", "base_dilations", "window_dilations")
    )
    padding = call.pairs("padding", rank)
    return [DimWindow(sizes[d], strides[d], dilations[d], base[d], *padding[d]) for d in range(rank)]


def _scanned(call: HloCall, x: Tensor, name: str, windows: Sequence[DimWindow]) -> Tensor | None:
    """Return the cumulative sums or products of floats along a dimension, if the windows are the prefixes or suffixes
    in one dimension of two elements or more; else None. name: the combining op."""
    wide = [d for d, window in enumerate(windows) if window != DimWindow(1)]
    if len(wide) != 1 or name not in ("add", "multiply") or not is_float(x.dtype):
        return None
    (dim,) = wide
    extent = x.shape[dim]
    for reverse, padding in ((False, (extent - 1, 0)), (True, (0, extent - 1))):
        if windows[dim] == DimWindow(extent, 1, 1, 1, *padding) and extent > 1:
            scan = nn.cumsum if name == "add" else nn.cumprod
            return scan(x, dim, reverse=reverse, name=call.name)
    return None
