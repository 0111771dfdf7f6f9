"""The reference evaluator of te functions: each te.compute on numpy arrays, box by box of its index space."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike
from xdsl.dialects.arith import MulfOp
from xdsl.dialects.builtin import ModuleOp, TensorType, bf16
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap, AffineSymExpr

from compiler.dialects.access import AccessAttr, AxisAttr, names_of
from compiler.dialects.calls import alone, called
from compiler.dialects.checks import element_type, shape_of
from compiler.dialects.functions import find_function
from compiler.dialects.gather import affine_part
from compiler.dialects.mathematics import Value
from compiler.dialects.numbers import Array, DType, array_of, constant, dtype_of, is_float, loaded, stored
from compiler.dialects.size_values import values_of
from compiler.dialects.sizes import sizes_of
from compiler.dialects.te import ComputeOp, ConstantOp, GatherOp
from compiler.interpret.combination import fold, joint, neutral
from compiler.interpret.maps import condition_function, index_function
from compiler.interpret.modules import HasModule, module_in
from compiler.interpret.scalar import Body, combiner
from compiler.support.errors import InputError, TeError
from compiler.te.bound import bound

Tensors: TypeAlias = dict[SSAValue, Array]
Box: TypeAlias = tuple[slice, ...]

MAX_POINTS = 1 << 22  # of the index space evaluated at once: 32 MB an intermediate value


def evaluate(
    module: ModuleOp | HasModule,
    inputs: Sequence[Array],
    dtype: DTypeLike | None = None,
    name: str | None = None,
    sizes: Mapping[str, int] | None = None,
) -> list[Array]:
    """Evaluate the te function `name`, or the only one, on arrays; return a new array for each result.

    module: with the function; or the te function itself.

    inputs: one array an argument, of its shape and dtype (i1 is bool, index is int64).
    dtype: a float dtype that replaces all float dtypes of the function, such as float64 for a more exact reference;
    float inputs may then have any float dtype. None: their own.
    sizes: values, by name, of sizes that no shape of an input gives. None: all are in shapes.

    Raises InputError for inputs that do not match the function, a `dtype` that is no float, a function that is missing
    or not unique, and an op of another level; TeError for a read out of bounds.

    >>> A = te.placeholder((2, 3), name="A")
    >>> f = te.function("f", [A], te.nn.sum(A, axis=1))
    >>> strata.interpret.evaluate(f.module, [np.ones((2, 3), np.float32)])
    [array([3., 3.], dtype=float32)]
    """
    function = find_function(module_in(module), name)
    if sizes_of(function) is not None or sizes:
        values: dict[Any, int] = {**values_of(function, [np.shape(array) for array in inputs], sizes or {})}
        function = find_function(bound(alone(module_in(module), function.sym_name.data), values))
    floats = _float_dtype(dtype)
    tensors = _bind(function, inputs, floats)
    with np.errstate(all="ignore"):
        return [np.array(array, order="C") for array in _results(function, tensors, floats)]


def _results(function: FuncOp, tensors: Tensors, floats: DType | None) -> list[Array]:
    """Evaluate the ops of a function in order, adding their results to `tensors`; return those of its return op.
    floats: the dtype of all floats, None for their own. Raises InputError for an op that is not of te, and without a
    return op."""
    for op in function.body.block.ops:
        match op:
            case ReturnOp():
                return [tensors[value] for value in op.operands]
            case GatherOp():
                tensors[op.output] = gather(op, tensors, floats)
            case ConstantOp():
                tensors[op.output] = array_of(op.value.data, floats)
            case ComputeOp():
                tensors.update(zip(op.outputs, _compute(op, tensors, floats), strict=True))
            case CallOp():
                callee = called(op)
                given = _bind(callee, [tensors[value] for value in op.arguments], floats)
                tensors.update(zip(op.results, _results(callee, given, floats), strict=True))
            case _:
                raise InputError(f"'{op.name}' is not a tensor expression (te.compute, gather and constant are)")
    raise InputError(f"@{function.sym_name.data} does not end with func.return")


def _float_dtype(dtype: DTypeLike | None) -> DType | None:
    if dtype is None:
        return None
    floats = np.dtype(dtype)
    if not is_float(floats):
        raise InputError(f"{floats} is not a float dtype to evaluate in")
    return floats


def _bind(function: FuncOp, inputs: Sequence[Array], floats: DType | None) -> Tensors:
    if not function.body.blocks:
        raise InputError(f"@{function.sym_name.data} has no body")
    arguments = function.body.block.args
    if len(inputs) != len(arguments):
        raise InputError(f"@{function.sym_name.data} takes {len(arguments)} inputs, not {len(inputs)}")
    return {
        argument: _argument(argument.name_hint or str(position), argument.type, np.asarray(array), floats)
        for position, (argument, array) in enumerate(zip(arguments, inputs, strict=True))
    }


def _argument(name: str, type_: object, array: Array, floats: DType | None) -> Array:
    if not isinstance(type_, TensorType):
        raise InputError(f"argument '{name}' is no tensor but {type_}: this is not a te function")
    expected = dtype_of(type_.get_element_type())
    fits = array.dtype == expected or (floats is not None and is_float(array.dtype) and is_float(expected))
    if array.shape != type_.get_shape() or not fits:
        raise InputError(f"input '{name}' is {type_}, not an array of shape {array.shape} and dtype {array.dtype}")
    return array.astype(dtype_of(type_.get_element_type(), floats), copy=False)


def _compute(op: ComputeOp, tensors: Tensors, floats: DType | None) -> list[Array]:
    if _is_contraction(op):
        return [_contract(op, tensors)]
    outputs = _initial(op, floats)
    body = Body(op.body.block, names_of(op.axes.data), floats)
    for box in _boxes([axis.size for axis in op.axes]):
        axes = _index_arrays(box)
        reads = zip(op.inputs, op.reads.data, strict=True)
        values = [_read(op, tensors[value], access, axes, floats) for value, access in reads]
        yielded = body(values, axes)
        if op.joint is not None:
            _write_joint(op, op.joint.block, outputs, box, yielded, floats)
            continue
        for position, value in enumerate(yielded):
            _write(op, outputs[position], position, box, value)
    return outputs


def _initial(op: ComputeOp, floats: DType | None) -> list[Array]:
    shape = [axis.size for axis in op.spatial_axes]
    dtypes = [dtype_of(element_type(output), floats) for output in op.outputs]
    if not op.is_reduction:
        return [np.empty(shape, dtype) for dtype in dtypes]
    return [np.full(shape, neutral(op, n, dtype, floats), dtype) for n, dtype in enumerate(dtypes)]


def _boxes(extents: Sequence[int]) -> Iterator[Box]:
    """Cut an index space into boxes of at most MAX_POINTS, along its leading axes."""
    room = MAX_POINTS
    ranges: list[list[slice]] = []
    for extent in reversed(extents):
        step = max(1, min(extent, room))
        room //= step
        ranges.insert(0, [slice(at, min(at + step, extent)) for at in range(0, extent, step)])
    return product(*ranges)


def _index_arrays(box: Box) -> list[Array]:
    """Arrays with the values of each axis in a box; they broadcast to the shape of the box."""
    rank = len(box)
    return [
        np.arange(part.start, part.stop).reshape([-1 if d == axis else 1 for d in range(rank)])
        for axis, part in enumerate(box)
    ]


def _read(
    op: ComputeOp | GatherOp, tensor: Array, access: AccessAttr, axes: Sequence[Array], floats: DType | None
) -> Value:
    mask = condition_function(access.condition, len(axes))(*axes)
    index = index_function(access.affine_map)(*axes)
    inside = tuple(np.clip(i, 0, size - 1) for i, size in zip(index, tensor.shape, strict=True))
    for dim, (wanted, clipped) in enumerate(zip(index, inside, strict=True)):
        if np.any(mask & (wanted != clipped)):
            raise TeError(f"'{op.label.data}' reads a tensor of shape {tensor.shape} outside its dimension {dim}")
    values = loaded(tensor[inside])
    return values if access.otherwise is None else np.where(mask, values, constant(access.otherwise, floats))


def gather(op: GatherOp, tensors: Tensors, floats: DType | None) -> Array:
    """Evaluate a te.gather, with floats of the dtype `floats`, or their own if None: the table's element if all index
    values are in bounds, else the `else` value.

    Raises TeError for an affine index of the table that is out of bounds.
    """
    table = tensors[op.table]
    axes = _index_arrays(tuple(slice(0, axis.size) for axis in op.axes))
    reads = zip(op.indices, op.reads, strict=True)
    values = [_index_values(_read(op, tensors[v], access, axes, floats), tensors[v].dtype) for v, access in reads]
    forms = index_function(AffineMap(len(axes), 0, tuple(map(affine_part, op.table_map.data.results))))(*axes)
    inside: Value = np.True_
    index = []
    for dim, (expr, form, size) in enumerate(zip(op.table_map.data.results, forms, table.shape, strict=True)):
        at = values[expr.position] if isinstance(expr, AffineSymExpr) else form
        within = (at >= 0) & (at < size)
        if not isinstance(expr, AffineSymExpr) and not np.all(within):
            raise TeError(f"'{op.label.data}' reads a table of shape {table.shape} outside its dimension {dim}")
        inside = inside & within
        index.append(np.clip(at, 0, size - 1))
    gathered = np.where(inside, loaded(table[tuple(index)]), constant(op.outside, floats))
    shape = [axis.size for axis in op.axes]
    return np.array(np.broadcast_to(stored(gathered, table.dtype), shape), dtype=table.dtype)


def _index_values(value: Value, dtype: DType) -> Array:
    """Convert values of an index tensor to int64, as signed or unsigned by its dtype."""
    return np.asarray(stored(np.asarray(value), dtype).astype(np.int64))


def _write(op: ComputeOp, output: Array, position: int, box: Box, value: Value) -> None:
    spatial = len(op.spatial_axes)
    if not op.combiners.data:
        output[box] = stored(value, output.dtype)
        return
    combine = combiner(op.combiners.data[position].data, output.dtype)
    full = np.broadcast_to(stored(value, output.dtype), [part.stop - part.start for part in box])
    partial = combine.reduce(full, axis=tuple(range(spatial, len(box))), dtype=output.dtype)
    output[box[:spatial]] = combine(output[box[:spatial]], partial)


def _write_joint(
    op: ComputeOp, region: Block, outputs: list[Array], box: Box, values: list[Value], floats: DType | None
) -> None:
    spatial = len(op.spatial_axes)
    combine = joint(region, floats)
    shape = [part.stop - part.start for part in box]
    partial = fold(combine, [np.broadcast_to(v, shape) for v in values], spatial)
    combined = combine([loaded(output[box[:spatial]]) for output in outputs], partial)
    for output, value in zip(outputs, combined, strict=True):
        output[box[:spatial]] = stored(value, output.dtype)


def _is_contraction(op: ComputeOp) -> bool:
    """Whether a compute sums products of two floats, each read at distinct full axes, so that einsum evaluates it; not
    for bf16, which einsum lacks."""
    if element_type(op.outputs[0]) == bf16:
        return False
    block = op.body.block
    product_ = block.first_op
    if [c.data for c in op.combiners] != ["add"] or not isinstance(product_, MulfOp):
        return False
    last = block.last_op
    if last is not product_.next_op or last is None or tuple(last.operands) != (product_.result,):
        return False
    return (
        tuple(product_.operands) == tuple(block.args)
        and all(map(_is_whole, op.reads, op.inputs, [op.axes.data] * len(op.inputs)))
        and len(set().union(*map(_axes_read, op.reads))) == len(op.axes)
    )


def _is_whole(read: AccessAttr, value: SSAValue, axes: Sequence[AxisAttr]) -> bool:
    if read.condition is not None or not all(isinstance(e, AffineDimExpr) for e in read.affine_map.results):
        return False
    dims = _axes_read(read)
    return len(set(dims)) == len(dims) and shape_of(value) == tuple(axes[dim].size for dim in dims)


def _axes_read(read: AccessAttr) -> list[int]:
    return [dim for expr in read.affine_map.results for dim in expr.used_dims()]


def _contract(op: ComputeOp, tensors: Tensors) -> Array:
    operands: list[Array | list[int]] = []
    for value, read in zip(op.inputs, op.reads, strict=True):
        operands += [tensors[value], _axes_read(read)]
    contracted = np.einsum(*operands, list(range(len(op.spatial_axes))), optimize=True)
    return np.asarray(contracted, tensors[op.inputs[0]].dtype)
