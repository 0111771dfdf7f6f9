"""Tensors: placeholders and computes, and the functions made of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from compiler.affine import linear as lin
from compiler.affine.exact import escape
from compiler.errors import TeError
from compiler.te.expr import Const, Expr, Read, Reduce, as_expr, check_dtype, const
from compiler.te.index import Axis, Condition, Index, as_index, check_extent, check_name, compared


@dataclass(frozen=True, eq=False)
class Tensor:
    """A tensor of static shape: an input, or one result of a compute."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    source: Compute | None = None
    position: int = 0

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def __getitem__(self, indices: Any) -> Read:
        return Read(self, self.indices(indices))

    def padded(self, value: float) -> Padded:
        """The tensor as if surrounded by a value: `A.padded(0.0)[i - 1]` reads it outside the bounds."""
        const(value, self.dtype)
        return Padded(self, value)

    def indices(self, given: Any) -> tuple[Index, ...]:
        """One index expression a dimension. Raises TeError for another number, or for what is not an index."""
        items = given if isinstance(given, tuple) else (given,)
        if len(items) != self.rank:
            raise TeError(f"tensor '{self.name}' has {self.rank} dimensions, indexed with {len(items)}")
        found = []
        for item in items:
            index = as_index(item)
            if index is None:
                kind = "a data-dependent value" if isinstance(item, Expr) else f"{item!r}"
                raise TeError(f"tensor '{self.name}' is indexed with {kind}; indices are quasi-affine in the axes")
            found.append(index)
        return tuple(found)

    def __iter__(self) -> Any:
        raise TeError(f"tensor '{self.name}' cannot be iterated over; write a compute")

    def __bool__(self) -> bool:
        raise TeError(f"tensor '{self.name}' has no value while the program is built")


def _refuse(name: str) -> Callable[[Tensor, Any], Any]:
    def operate(self: Tensor, other: Any) -> Any:
        raise TeError(f"tensor '{self.name}' is used whole with {name}; index it, or use te.nn")

    return operate


for _name, _symbol in {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "matmul": "@"}.items():
    setattr(Tensor, f"__{_name}__", _refuse(_symbol))
    setattr(Tensor, f"__r{_name}__", _refuse(_symbol))


@dataclass(frozen=True, eq=False)
class Padded:
    """A tensor whose reads outside the bounds give a value."""

    tensor: Tensor
    value: float

    def __getitem__(self, given: Any) -> Read:
        indices = self.tensor.indices(given)
        constraints: list[Condition] = []
        for index, size in zip(indices, self.tensor.shape, strict=True):
            low, high = _bounds(index)
            constraints += [compared(index, ">=", 0)] if low < 0 else []
            constraints += [compared(index, "<=", size - 1)] if high >= size else []
        if not constraints:
            return Read(self.tensor, indices)
        joined = Condition(tuple(c for one in constraints for c in one.constraints))
        return Read(self.tensor, indices, joined, self.value)


def _bounds(index: Index) -> lin.Range:
    axes = index.axes()
    expr = index.affine({axis: i for i, axis in enumerate(axes)})
    ranges = {i: (0, axis.extent - 1) for i, axis in enumerate(axes)}
    return lin.bounds(lin.linear(expr, [lin.variable(i) for i in range(len(axes))], ranges), ranges)


@dataclass(frozen=True, eq=False)
class Compute:
    """One te.compute: its axes, what it yields, and how that is reduced."""

    name: str
    spatial: tuple[Axis, ...]
    reduce: tuple[Axis, ...]
    bodies: tuple[Expr, ...]
    combiners: tuple[str, ...]

    @property
    def axes(self) -> tuple[Axis, ...]:
        """All axes, spatial first."""
        return self.spatial + self.reduce


def placeholder(shape: Sequence[int], dtype: str = "f32", name: str = "arg") -> Tensor:
    """An input tensor. Raises TeError for a shape that is not static and positive, or an unknown dtype."""
    check_name("a tensor", name)
    return Tensor(name, _shape(f"tensor '{name}'", shape), check_dtype(dtype))


def _shape(what: str, shape: Any) -> tuple[int, ...]:
    if isinstance(shape, int):
        return (check_extent(what, shape),)
    if not isinstance(shape, tuple | list):
        raise TeError(f"{what} has shape {shape!r}; a shape is a tuple of integers")
    return tuple(check_extent(f"dimension {d} of {what}", size) for d, size in enumerate(shape))


def reduce_axis(extent: int, name: str = "k") -> Axis:
    """An axis to reduce over."""
    return Axis(check_name("an axis", name), check_extent(f"axis '{name}'", extent), True)


def compute(shape: Sequence[int], fn: Callable[..., Any], name: str = "T", axes: Sequence[str] | None = None) -> Any:
    """A tensor given element by element: `fn` takes one axis a dimension and returns a scalar expression.

    A tuple of expressions gives a tuple of tensors of the same shape. Axes are named after fn's parameters or
    `axes`. Raises TeError, naming the tensor and the axis, for whatever does not fit.
    """
    check_name("a tensor", name)
    extents = _shape(f"tensor '{name}'", shape)
    names = _axis_names(name, extents, fn, axes)
    spatial = tuple(Axis(n, extent) for n, extent in zip(names, extents, strict=True))
    try:
        value = fn(*spatial)
        several = isinstance(value, tuple)
        op = _compute(name, spatial, value if several else (value,))
    except TeError as error:
        raise TeError(f"in compute '{name}': {error}") from error
    results = [Tensor(name, extents, body.dtype, op, i) for i, body in enumerate(op.bodies)]
    return tuple(results) if several else results[0]


def _axis_names(name: str, extents: Sequence[int], fn: Callable[..., Any], axes: Sequence[str] | None) -> list[str]:
    if not callable(fn):
        raise TeError(f"in compute '{name}': {fn!r} is not a function of the axes")
    parameters = [p for p in inspect.signature(fn).parameters.values() if p.default is p.empty]
    variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if axes is None:
        axes = [f"i{d}" for d in range(len(extents))] if variadic else [p.name for p in parameters]
    if len(axes) != len(extents) or not (variadic or len(parameters) == len(extents)):
        raise TeError(f"in compute '{name}': the shape has {len(extents)} dimensions, the function takes {len(axes)}")
    if len(set(axes)) != len(axes):
        raise TeError(f"in compute '{name}': an axis name occurs twice in {list(axes)}")
    return [check_name("an axis", axis) for axis in axes]


def _compute(name: str, spatial: tuple[Axis, ...], values: Sequence[Any]) -> Compute:
    if not values:
        raise TeError("the function returns no expression")
    reduces = [v for v in values if isinstance(v, Reduce)]
    if reduces and len(reduces) != len(values):
        raise TeError("some results are reduced and some are not")
    reduce = reduces[0].axes if reduces else ()
    if any(set(r.axes) != set(reduce) for r in reduces):
        raise TeError("the results are reduced over different axes")
    for one in reduce:
        if one.name in [axis.name for axis in (*spatial, *reduce) if axis is not one]:
            raise TeError(f"the axis name '{one.name}' occurs twice")
    bodies = tuple(v.body if isinstance(v, Reduce) else _value(v) for v in values)
    op = Compute(name, spatial, reduce, bodies, tuple(r.combiner for r in reduces))
    for body in bodies:
        _check(op, body)
    return op


def _value(value: Any) -> Expr:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Const(float(value), "f32") if isinstance(value, float) else Const(value, "i64")
    return as_expr(value)


def reads_of(body: Expr) -> list[Expr]:
    """All expressions under one, each once, operands before users."""
    found: dict[Expr, None] = {}
    stack: list[tuple[Expr, bool]] = [(body, False)]
    while stack:
        expr, done = stack.pop()
        if expr in found:
            continue
        if done:
            found[expr] = None
        else:
            stack.append((expr, True))
            stack += [(operand, False) for operand in reversed(expr.operands())]
    return list(found)


def _check(op: Compute, body: Expr) -> None:
    order = {axis: i for i, axis in enumerate(op.axes)}
    for expr in reads_of(body):
        if isinstance(expr, Read):
            _check_read(op, order, expr)


def _check_read(op: Compute, order: dict[Axis, int], read: Read) -> None:
    from xdsl.ir.affine import AffineSet

    condition = None
    if read.condition is not None:
        condition = AffineSet(len(order), 0, read.condition.affine(order))
    extents = [axis.extent for axis in op.axes]
    for dim, (index, size) in enumerate(zip(read.indices, read.tensor.shape, strict=True)):
        found = escape(index.affine(order), size, extents, condition)
        if found is not None:
            at = ", ".join(f"{a.name}={v}" for a, v in zip(op.axes, found.point, strict=True))
            raise TeError(
                f"the read of '{read.tensor.name}' is out of bounds in dimension {dim}: {index} is {found.value} "
                f"at {at}, the size is {size}; guard it with te.select, or read it .padded(value)"
            )
