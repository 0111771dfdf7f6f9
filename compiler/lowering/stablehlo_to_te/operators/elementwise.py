"""Functions of elements, constants, iota, map, batch_norm_inference."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, DenseResourceAttr, FloatAttr

from compiler.dialects.dense import DenseAttr, from_upstream
from compiler.dialects.numbers import array_of
from compiler.lowering.stablehlo_to_te.call import HloCall
from compiler.lowering.stablehlo_to_te.scalars import FUNCTIONS, apply_region, scalar_of
from compiler.lowering.stablehlo_to_te.table import handles
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr, const
from compiler.te.index import Index
from compiler.te.tensor import Tensor
from compiler.types.dtypes import DTYPES, is_float


def pointwise(call: HloCall, function: Callable[[Sequence[Expr]], Expr]) -> Tensor:
    """Return the tensor, of the shape of the op's result, of `function(scalars)` of the operands' elements at each
    index; operands of rank 0 broadcast. Raises LoweringError for an operand of another shape than the result's."""
    shape = call.shape
    for operand in call.operands:
        if operand.shape not in ((), shape):
            raise call.refused(f"has an operand of shape {operand.shape} for a result of shape {shape}")

    def element(*i: Index) -> Expr:
        return function([call.at(x, *(i if x.rank else ())) for x in call.operands])

    return compute(shape, element, call.name)


@handles(*FUNCTIONS, "convert", "compare", "reduce_precision")
def _elementwise(call: HloCall) -> Tensor:
    neutral = _NEUTRAL.get(call.op.name)
    if neutral is not None and is_float(call.dtype):
        for x, number_tensor in (call.operands, call.operands[::-1]):
            if call.number(number_tensor) == neutral and x.shape == call.shape:
                return x
    return pointwise(call, lambda operands: scalar_of(call.op, operands))


_NEUTRAL = {"stablehlo.maximum": -math.inf, "stablehlo.minimum": math.inf, "stablehlo.multiply": 1.0}
"""Map ops on two floats to the number that leaves the other one."""


@handles("map")
def _map(call: HloCall) -> Tensor:
    block = call.op.regions[0].block
    return compute(
        call.shape, lambda *i: apply_region(block, [call.at(x, *i) for x in call.operands], {})[0], call.name
    )


@handles("bitcast_convert")
def _bitcast(call: HloCall) -> Tensor:
    """Reinterpret the bits of a tensor as the result's dtype. Raises LoweringError unless the elements are known or the
    dtype is the same."""
    x = call.operands[0]
    if x.dtype == call.dtype:
        return x
    array = call.array(x)
    if array is None:
        raise call.refused("reads the bits of values that are computed: te has no form of that")
    return call.conversion.constant(array.view(DTYPES[call.dtype].array), call.dtype, call.name)


@handles("constant")
def _constant(call: HloCall) -> Tensor:
    value, elements = call.op.properties.get("value"), call.conversion.elements
    if isinstance(value, DenseResourceAttr):
        handle = value.resource_handle.data
        if handle not in elements:
            raise call.refused(f"has no elements: the text has the name '{handle}' in place of them")
        return call.conversion.constant(elements[handle], call.dtype, call.name)
    if isinstance(value, DenseIntOrFPElementsAttr):
        value = from_upstream(value)
    if not isinstance(value, DenseAttr):
        raise call.refused("has no elements")
    dense = value.data
    if dense.is_splat and len(dense.bits) > 1:
        return _filled(call, array_of(dense).reshape(-1)[0])
    return call.conversion.constant(array_of(dense), call.dtype, call.name)


def _filled(call: HloCall, number: np.generic) -> Tensor:
    value = number.item() if number.dtype.kind in "biuf" else float(number)
    tensor = compute(call.shape, lambda *i: const(value, call.dtype), call.name)
    return call.known.add_number(tensor, value)


@handles("iota")
def _iota(call: HloCall) -> Tensor:
    (dim,) = call.dims("iota_dimension", len(call.shape))
    counted = compute(call.shape, lambda *i: e.cast(i[dim], call.dtype), call.name)
    call.known.computed.add(counted)
    return counted


@handles("batch_norm_inference")
def _batch_norm(call: HloCall) -> Tensor:
    x, scale, offset, mean, variance = call.operands
    epsilon = call.attribute("epsilon")
    assert isinstance(epsilon, FloatAttr)
    (dim,) = call.dims("feature_index", x.rank)

    def element(*i: Index) -> Expr:
        def of(t: Tensor) -> Expr:
            return call.at(t, i[dim])

        return (x[i] - of(mean)) * e.rsqrt(of(variance) + epsilon.value.data) * of(scale) + of(offset)

    return compute(x.shape, element, call.name)


def convert_to(x: Tensor, dtype: str, name: str) -> Tensor:
    """Return a tensor cast to a dtype, as a compute `name`; `x` itself if it has the dtype."""
    return x if x.dtype == dtype else compute(x.shape, lambda *i: e.cast(x[i], dtype), name)


@handles("optimization_barrier")
def _barrier(call: HloCall) -> Sequence[Tensor]:
    return call.operands
