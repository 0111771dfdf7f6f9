"""`compute`: tensors defined element by element."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TypeAlias, overload

from compiler.affine.exact import escape
from compiler.affine.sized import escape_below, size_set
from compiler.program.names import spellings
from compiler.support.errors import TeError
from compiler.te.expr import AxisValue, Const, Expr, Holds, Joint, Reduce, Scalar, as_expr
from compiler.te.index import Axis, Condition, Index, check_fits, check_name, numbered
from compiler.te.sizes import Dim, capacity_of, domain_of, expression, sizes_in
from compiler.te.tensor import Compute, Gather, Read, Shape, TableRead, Tensor, checked_dims, nodes_of

Labels: TypeAlias = Sequence[str] | None
"""Names of axes; None for those of the function's parameters."""


@overload
def compute(shape: Shape, fn: Callable[..., Scalar], name: str = "T", axes: Labels = None) -> Tensor: ...
@overload
def compute(
    shape: Shape, fn: Callable[..., tuple[Scalar, ...]], name: str = "T", axes: Labels = None
) -> tuple[Tensor, ...]: ...
def compute(
    shape: Shape, fn: Callable[..., Scalar | tuple[Scalar, ...]], name: str = "T", axes: Labels = None
) -> Tensor | tuple[Tensor, ...]:
    """Define a tensor element by element: `fn` maps one axis a dimension to a scalar expression.

    A tuple of expressions, all of them reductions over the same axes or none, defines a tuple of tensors of the same
    shape. `axes` are the names of the axes, by default those of fn's parameters; i0, i1, ... for `*i`. Raises TeError,
    naming the tensor and the axis, for an invalid shape, expression or read.

    >>> A, B, k = te.placeholder((4, 8), name="A"), te.placeholder((8, 2), name="B"), te.reduce_axis(8, "k")
    >>> te.compute((4, 2), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    <Tensor C: f32[4, 2]>
    """
    spatial = spatial_axes(name, shape, fn, axes)
    try:
        value = fn(*spatial)
        op = _compute(name, spatial, value if isinstance(value, tuple) else (value,))
    except TeError as error:
        raise TeError(f"in compute '{name}': {error}") from error
    except TypeError as error:
        if "ufunc" not in str(error):
            raise
        words = "numpy's functions take no expressions; te has its own, such as te.exp"
        raise TeError(f"in compute '{name}': {words}") from error
    extents = dims_of(spatial)
    tensors = [Tensor(name, extents, body.dtype, op, i) for i, body in enumerate(op.bodies)]
    return tuple(tensors) if isinstance(value, tuple) else tensors[0]


def spatial_axes(name: str, shape: Shape, fn: Callable[..., object], axes: Labels) -> tuple[Axis, ...]:
    """Return a spatial axis for each dimension, named by `axes`, else after fn's parameters (*i: i0, i1, ...). Raises
    TeError for an invalid or repeated name, an invalid shape, and a number of names other than that of dimensions."""
    check_name("a tensor", name)
    extents = checked_dims(f"tensor '{name}'", shape)
    names = _axis_names(name, extents, fn, axes)
    return tuple(
        Axis(axis, capacity_of(extent), below=extent if isinstance(extent, Index) else None)
        for axis, extent in zip(names, extents, strict=True)
    )


def dims_of(axes: Sequence[Axis]) -> tuple[Dim, ...]:
    """The extents of axes, integers or expressions of sizes."""
    return tuple(axis.extent if axis.below is None else axis.below for axis in axes)


def _axis_names(name: str, extents: Sequence[Dim], fn: Callable[..., object], axes: Labels) -> list[str]:
    if not callable(fn):
        raise TeError(f"in compute '{name}': {fn!r} is not a function of the axes")
    parameters = [p for p in inspect.signature(fn).parameters.values() if p.default is p.empty]
    variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if axes is not None and not isinstance(axes, tuple | list):
        raise TeError(f"in compute '{name}': {axes!r} are not the names of axes")
    if axes is None:
        axes = [f"i{d}" for d in range(len(extents))] if variadic else [p.name for p in parameters]
    if len(axes) != len(extents) or not (variadic or len(parameters) == len(extents)):
        raise TeError(f"in compute '{name}': the shape has {len(extents)} dimensions, the function takes {len(axes)}")
    names = spellings([check_name("an axis", axis) for axis in axes])
    if len(set(names)) != len(names):
        raise TeError(f"in compute '{name}': an axis name occurs twice in {names}")
    return names


def _compute(name: str, spatial: tuple[Axis, ...], values: Sequence[object]) -> Compute:
    if not values:
        raise TeError("the function returns no expression")
    reduces = [value for value in values if isinstance(value, Reduce)]
    if reduces and len(reduces) != len(values):
        raise TeError("some results are reduced and some are not")
    reduce = reduces[0].axes if reduces else ()
    if any(set(r.axes) != set(reduce) for r in reduces):
        raise TeError("the results are reduced over different axes")
    names = [axis.name for axis in (*spatial, *reduce) if axis.named]
    for axis in reduce:
        if axis.named and names.count(axis.name) > 1:
            raise TeError(f"the axis name '{axis.name}' occurs twice")
    bodies = tuple(v.body if isinstance(v, Reduce) else _value(v) for v in values)
    joint = _joint(reduces)
    combiners = () if joint else tuple(r.combiner for r in reduces if isinstance(r.combiner, str))
    op = Compute(name, spatial, reduce, bodies, combiners, joint)
    check_labels(op)
    for body in bodies:
        _check(op, body)
    return op


def _joint(reduces: Sequence[Reduce]) -> Joint | None:
    """Return the joint combiner of a compute's results, None without one. Raises TeError unless `reduces` are all
    results of one combiner, in order."""
    joint = next((r.combiner for r in reduces if isinstance(r.combiner, Joint)), None)
    if joint is None:
        return None
    is_complete = [r.part for r in reduces] == list(range(len(joint.results)))
    if not is_complete or any(r.combiner is not joint for r in reduces):
        raise TeError("a joint reduction gives all results of its compute: return the tuple of te.reduce as it is")
    return joint


def _value(value: object) -> Expr:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Const(float(value), "f32") if isinstance(value, float) else Const(value, "i64")
    return as_expr(value)


def check_labels(op: Compute | Gather) -> None:
    """Raise TeError if an axis has the name of a size."""
    sizes = {size.name for size in op.sizes}
    for axis in op.axes:
        if axis.named and axis.name in sizes:
            raise TeError(f"the axis '{axis.name}' has the name of a size")


def _check(op: Compute, body: Expr) -> None:
    for expr in nodes_of(body):
        if isinstance(expr, TableRead):
            raise TeError(f"'{expr.tensor.name}' is read at a data-dependent index: that is a te.gather of its own")
        if isinstance(expr, Read):
            check_read(op.axes, expr)
        elif isinstance(expr, AxisValue):
            check_fits("the index", expr.index, numbered(op.axes, op.sizes))
        elif isinstance(expr, Holds):
            check_fits("the condition on", expr.condition, numbered(op.axes, op.sizes))


def check_read(axes: Sequence[Axis], read: Read) -> None:
    """Raise TeError unless a read is in bounds for all values of the axes that satisfy its condition."""
    check_indices(axes, read.tensor, list(enumerate(read.indices)), read.condition)


def check_indices(
    axes: Sequence[Axis], tensor: Tensor, indices: Sequence[tuple[int, Index]], condition: Condition | None
) -> None:
    """Raise TeError unless each (dimension, index) of a read of `tensor` is in bounds for all values of the axes that
    satisfy `condition` (None: for all values), and of the size in them. With two sizes or more, te.function checks
    the read."""
    # A[i + 1] with i < 8 and A of 8 elements: `escape` finds i = 7, where the index is 8. With i below S and A of S
    # elements, `escape_below` finds i = 0 and S = 1, where the index is 1.
    sizes = sizes_in([*(axis.below for axis in axes), *tensor.dims, *(index for _, index in indices), condition])
    order = numbered(axes, sizes)
    domain = None if condition is None else size_set(len(axes), condition.affine(order), len(sizes))
    if condition is not None:
        check_fits(f"the read of '{tensor.name}': the condition on", condition, order)
    for dim, index in indices:
        size = tensor.dims[dim]
        check_fits(f"the read of '{tensor.name}' in dimension {dim}: the index", index, order)
        expr = index.affine(order)
        if len(sizes) > 1:  # te.function checks it, which has the relations between them
            continue
        if sizes:
            escaped = escape_below(expr, expression(size, order), domain_of(axes, sizes), domain)
        else:
            escaped = escape(expr, tensor.capacities[dim], [axis.extent for axis in axes], domain)
        if escaped is not None:
            names = [*(axis.name for axis in axes), *(s.name for s in sizes)]
            point = ", ".join(f"{name}={v}" for name, v in zip(names, escaped.point, strict=True))
            raise TeError(
                f"the read of '{tensor.name}' is out of bounds in dimension {dim}: {index} is {escaped.value} "
                f"at {point}, the size is {size}; guard it with te.select, or read it .padded(value)"
            )
