"""Tensors: placeholders and computes, and the functions made of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from compiler.affine import linear as lin
from compiler.affine.exact import escape
from compiler.affine.limits import bad_size
from compiler.elements import TYPES, check_dtype, element_bytes
from compiler.errors import TeError
from compiler.te.expr import AxisValue, Const, Expr, Holds, Joint, Read, Reduce, as_expr, const
from compiler.te.gather import Gather, TableRead, table_read
from compiler.te.index import Axis, Condition, Index, as_index, check_extent, check_fits, check_name, compared


@dataclass(frozen=True, eq=False)
class Tensor:
    """A tensor of static shape: an input, or one result of a compute."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    source: Compute | Gather | None = None
    position: int = 0

    def __post_init__(self) -> None:
        shape = static_shape(f"tensor '{self.name}'", self.shape)
        fault = bad_size(f"tensor '{self.name}'", shape, element_bytes(TYPES[check_dtype(self.dtype)]))
        if fault:
            raise TeError(fault)

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def __getitem__(self, indices: Any) -> Read:
        return Read(self, self.indices(indices))

    def at(self, *indices: Any) -> TableRead:
        """One element at a data-dependent index, for te.gather: `T.at(I[i], d)`."""
        return table_read(self, indices)

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
                raise TeError(
                    f"tensor '{self.name}' is indexed with {kind}; indices are quasi-affine in the axes"
                    f"{'; te.gather reads at one' if isinstance(item, Expr) else ''}"
                )
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
    joint: Joint | None = None

    @property
    def axes(self) -> tuple[Axis, ...]:
        """All axes, spatial first."""
        return self.spatial + self.reduce

    def sources(self) -> list[Tensor]:
        """The tensors that it reads, in the order of its bodies."""
        return [e.tensor for body in self.bodies for e in reads_of(body) if isinstance(e, Read)]


def placeholder(shape: Sequence[int], dtype: str = "f32", name: str = "arg") -> Tensor:
    """An input tensor. Raises TeError for a shape that is not static and positive, or an unknown dtype."""
    check_name("a tensor", name)
    return Tensor(name, static_shape(f"tensor '{name}'", shape), dtype)


def static_shape(what: str, shape: Any) -> tuple[int, ...]:
    """A shape that was given, of something. Raises TeError unless it is static and positive."""
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
    extents = static_shape(f"tensor '{name}'", shape)
    names = axis_names(name, extents, fn, axes)
    spatial = tuple(Axis(n, extent) for n, extent in zip(names, extents, strict=True))
    try:
        value = fn(*spatial)
        several = isinstance(value, tuple)
        op = _compute(name, spatial, value if several else (value,))
    except TeError as error:
        raise TeError(f"in compute '{name}': {error}") from error
    results = [Tensor(name, extents, body.dtype, op, i) for i, body in enumerate(op.bodies)]
    return tuple(results) if several else results[0]


def axis_names(name: str, extents: Sequence[int], fn: Callable[..., Any], axes: Sequence[str] | None) -> list[str]:
    """The names of a compute's axes: as given, or of the function's parameters."""
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
    names = [check_name("an axis", axis) for axis in axes]
    if len(set(names)) != len(names):
        raise TeError(f"in compute '{name}': an axis name occurs twice in {names}")
    return names


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
    joint = _joint(reduces)
    names = () if joint else tuple(r.combiner for r in reduces if isinstance(r.combiner, str))
    op = Compute(name, spatial, reduce, bodies, names, joint)
    for body in bodies:
        _check(op, body)
    return op


def _joint(reduces: Sequence[Reduce]) -> Joint | None:
    """The joint combiner, of which all parts stand side by side, or None."""
    joint = next((r.combiner for r in reduces if isinstance(r.combiner, Joint)), None)
    if joint is None:
        return None
    whole = [r.part for r in reduces] == list(range(len(joint.results)))
    if not whole or any(r.combiner is not joint for r in reduces):
        raise TeError("a joint reduction gives all results of its compute: return the tuple of te.reduce as it is")
    return joint


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
    for expr in reads_of(body):
        if isinstance(expr, TableRead):
            raise TeError(f"'{expr.tensor.name}' is read at a data-dependent index: that is a te.gather of its own")
        if isinstance(expr, Read):
            check_read(op.axes, expr)
        elif isinstance(expr, AxisValue):
            check_fits("the index", expr.index, {axis: n for n, axis in enumerate(op.axes)})
        elif isinstance(expr, Holds):
            check_fits("the condition on", expr.condition, {axis: n for n, axis in enumerate(op.axes)})


def check_read(axes: Sequence[Axis], read: Read) -> None:
    """Raise TeError unless a read stays inside its tensor for all values of the axes."""
    check_indices(axes, read.tensor, list(enumerate(read.indices)), read.condition)


def check_indices(
    axes: Sequence[Axis], tensor: Tensor, indices: Sequence[tuple[int, Index]], condition: Condition | None
) -> None:
    """Raise TeError unless the indices of some dimensions stay inside wherever the condition holds."""
    from xdsl.ir.affine import AffineSet

    order = {axis: i for i, axis in enumerate(axes)}
    where = None if condition is None else AffineSet(len(order), 0, condition.affine(order))
    if condition is not None:
        check_fits(f"the read of '{tensor.name}': the condition on", condition, order)
    for dim, index in indices:
        size = tensor.shape[dim]
        check_fits(f"the read of '{tensor.name}' in dimension {dim}: the index", index, order)
        found = escape(index.affine(order), size, [axis.extent for axis in axes], where)
        if found is not None:
            at = ", ".join(f"{a.name}={v}" for a, v in zip(axes, found.point, strict=True))
            raise TeError(
                f"the read of '{tensor.name}' is out of bounds in dimension {dim}: {index} is {found.value} "
                f"at {at}, the size is {size}; guard it with te.select, or read it .padded(value)"
            )
