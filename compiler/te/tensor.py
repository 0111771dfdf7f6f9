"""Tensors, reads of them, and the ops that define them: computes, gathers, constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NoReturn, TypeAlias

from xdsl.dialects.builtin import LocationAttr

from compiler.affine import linear as lin
from compiler.affine.limits import bad_size
from compiler.dialects.dense_elements import Dense
from compiler.program.names import fresh, spelled
from compiler.support import display, spans
from compiler.support.errors import TeError
from compiler.te.expr import AxisValue, Expr, Holds, Joint, Number, const
from compiler.te.index import (
    Axis,
    Condition,
    Index,
    IndexLike,
    Size,
    as_index,
    check_extent,
    check_name,
    compared,
    numbered,
)
from compiler.te.sizes import Dim, capacity_of, check_dim, dims_text, domain_of, same, sizes_in
from compiler.types.dtypes import INDICES, TYPES, check_dtype
from compiler.types.elements import element_bytes

Shape: TypeAlias = Dim | Sequence[Dim]
Indices: TypeAlias = IndexLike | tuple[IndexLike, ...]
TensorOperator: TypeAlias = "Callable[..., Tensor]"
OPERATORS: dict[str, TensorOperator] = {}
"""The function of each of Python's operators on tensors by its symbol, or neg, abs; te.nn fills the table."""


def shown(tensor: Tensor) -> str:
    """Format a tensor's name, dtype and shape: `C: f32[64, 32]`."""
    return f"{tensor.name}: {tensor.dtype}[{', '.join(map(str, tensor.dims))}]"


def _operator(name: str, reflected: bool = False) -> Callable[[Tensor, Tensor | Number], Tensor]:
    """Return the method of an operator; if `reflected`, the tensor is the right operand."""
    return lambda self, other: OPERATORS[name](other, self) if reflected else OPERATORS[name](self, other)


def _function(name: str) -> Callable[[Tensor], Tensor]:
    return lambda self: OPERATORS[name](self)


@dataclass(frozen=True, eq=False)
class Tensor:
    """A tensor: an input, a constant, or one result of a compute.

    dims: its extents, each an integer or an expression of sizes. source: the op that defines it, None for an input.
    position: the number of the op's result.

    Python's operators on tensors build the operators of te.nn, elementwise with numpy's broadcasting; == and hash are
    by identity, te.nn.equal compares elements.

    >>> A = te.placeholder((4, 8), name="A")
    >>> A.shape, A.dtype
    ((4, 8), 'f32')
    >>> 2.0 * A + 1.0
    <Tensor add: f32[4, 8]>
    """

    name: str
    dims: tuple[Dim, ...]
    dtype: str
    source: Source | None = None
    position: int = 0

    def __post_init__(self) -> None:
        checked_dims(f"tensor '{self.name}'", self.dims)
        fault = bad_size(f"tensor '{self.name}'", self.capacities, element_bytes(TYPES[check_dtype(self.dtype)]))
        if fault:
            raise TeError(fault)

    def __repr__(self) -> str:
        return display.line(f"<Tensor {shown(self)}>")

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents, which are integers. Raises TeError for a tensor with sizes in its shape."""
        if any(isinstance(dim, Index) for dim in self.dims):
            raise TeError(f"the shape {dims_text(self.dims)} of '{self.name}' has sizes; a static one is needed here")
        return self.capacities

    @property
    def capacities(self) -> tuple[int, ...]:
        """The most that each extent can be; the shape of a tensor without sizes."""
        return tuple(map(capacity_of, self.dims))

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.dims)

    def __getitem__(self, indices: Indices) -> Read:
        return Read(self, self.indices(indices))

    def at(self, *indices: IndexLike | Read) -> TableRead:
        """A read at a data-dependent index, for te.gather: `T.at(I[i], d)`. Raises TeError for invalid indices."""
        return table_read(self, indices)

    def padded(self, value: Number) -> Padded:
        """A view whose reads out of bounds yield a value: `A.padded(0.0)[i - 1]` is 0.0 for i = 0. Raises TeError for a
        value that the dtype cannot represent."""
        return Padded(self, const(value, self.dtype).value)

    def indices(self, positions: object) -> tuple[Index, ...]:
        """Convert a read's index, or a tuple with one for each dimension, to index expressions. Raises TeError for
        another number of them, and for other values."""
        positions = positions if isinstance(positions, tuple) else (positions,)
        if len(positions) != self.rank:
            raise TeError(f"tensor '{self.name}' has {self.rank} dimensions, indexed with {len(positions)}")
        indices = []
        for position in positions:
            index = as_index(position)
            if index is None:
                kind = "a data-dependent value" if isinstance(position, Expr) else f"{position!r}"
                raise TeError(
                    f"tensor '{self.name}' is indexed with {kind}; indices are quasi-affine in the axes"
                    f"{'; te.gather reads at one' if isinstance(position, Expr) else ''}"
                )
            indices.append(index)
        return tuple(indices)

    __add__, __radd__ = _operator("+"), _operator("+", reflected=True)
    __sub__, __rsub__ = _operator("-"), _operator("-", reflected=True)
    __mul__, __rmul__ = _operator("*"), _operator("*", reflected=True)
    __truediv__, __rtruediv__ = _operator("/"), _operator("/", reflected=True)
    __floordiv__, __rfloordiv__ = _operator("//"), _operator("//", reflected=True)
    __mod__, __rmod__ = _operator("%"), _operator("%", reflected=True)
    __pow__, __rpow__ = _operator("**"), _operator("**", reflected=True)
    __matmul__, __rmatmul__ = _operator("@"), _operator("@", reflected=True)
    __and__, __rand__ = _operator("&"), _operator("&", reflected=True)
    __or__, __ror__ = _operator("|"), _operator("|", reflected=True)
    __xor__, __rxor__ = _operator("^"), _operator("^", reflected=True)
    __lshift__, __rlshift__ = _operator("<<"), _operator("<<", reflected=True)
    __rshift__, __rrshift__ = _operator(">>"), _operator(">>", reflected=True)
    __lt__, __le__, __gt__, __ge__ = map(_operator, ("<", "<=", ">", ">="))
    __neg__, __abs__, __invert__ = map(_function, ("neg", "abs", "~"))
    __array_ufunc__ = None

    def __iter__(self) -> NoReturn:
        raise TeError(f"tensor '{self.name}' cannot be iterated over; write a compute")

    def __bool__(self) -> NoReturn:
        raise TeError(f"tensor '{self.name}' has no value while the program is built")


@dataclass(frozen=True, eq=False)
class Padded:
    """A view of a tensor whose reads out of bounds yield a value."""

    tensor: Tensor
    value: Number

    def __getitem__(self, positions: Indices) -> Read:
        indices = self.tensor.indices(positions)
        constraints: list[Condition] = []
        for index, size in zip(indices, self.tensor.dims, strict=True):
            low, high = _bounds(index)
            constraints += [compared(index, ">=", 0)] if low < 0 else []
            if isinstance(size, Index):
                constraints += [] if index in below(size, index.axes()) else [compared(index, "<", size)]
            else:
                constraints += [compared(index, "<=", size - 1)] if high >= size else []
        if not constraints:
            return Read(self.tensor, indices)
        condition = Condition(tuple(c for constraint in constraints for c in constraint.constraints))
        return Read(self.tensor, indices, condition, self.value)


def below(extent: Index, axes: Sequence[Axis]) -> list[Axis]:
    """The axes that have an extent, an expression of sizes."""
    return [axis for axis in axes if axis.below is not None and same(axis.below, extent)]


def _bounds(index: Index) -> lin.Range:
    axes = index.axes()
    sizes = sizes_in([index, *(axis.below for axis in axes)])
    domain = domain_of(axes, sizes)
    form = domain.form(index.affine(numbered(axes, sizes)), domain.ranges)
    return lin.bounds(form, domain.ranges)


@dataclass(frozen=True, eq=False)
class Read(Expr):
    """A read of a tensor's element, or of `otherwise` if the condition is false; both are None for an unconditional
    read."""

    tensor: Tensor
    indices: tuple[Index, ...]
    condition: Condition | None = None
    otherwise: Number | None = None

    @property
    def dtype(self) -> str:  # type: ignore[override]
        """The tensor's dtype."""
        return self.tensor.dtype


@dataclass(frozen=True, eq=False)
class TableRead(Expr):
    """A read of an element of a table, a tensor; each index is quasi-affine, or a read of an integer tensor."""

    tensor: Tensor
    indices: tuple[Index | Read, ...]

    @property
    def dtype(self) -> str:  # type: ignore[override]
        """The dtype of the table's elements."""
        return self.tensor.dtype


def table_read(tensor: Tensor, positions: tuple[object, ...]) -> TableRead:
    """Build a read at data-dependent indices. Raises TeError for a wrong number of indices or an invalid one."""
    if len(positions) != tensor.rank:
        raise TeError(f"tensor '{tensor.name}' has {tensor.rank} dimensions, indexed with {len(positions)}")
    return TableRead(tensor, tuple(_index(tensor, position) for position in positions))


def _index(tensor: Tensor, position: object) -> Index | Read:
    index = as_index(position)
    if index is not None:
        return index
    if not isinstance(position, Read):
        kind = (
            "the value of an expression; compute it as a tensor first" if isinstance(position, Expr) else repr(position)
        )
        raise TeError(f"tensor '{tensor.name}' is indexed with {kind}")
    if position.dtype not in INDICES:
        raise TeError(
            f"tensor '{tensor.name}' is indexed with '{position.tensor.name}' of {position.dtype}, not integers"
        )
    return position


@dataclass(frozen=True, eq=False)
class Compute:
    """An op te.compute with one result for each body. combiners: the name of each result's combiner; empty without a
    reduction, and with `joint`."""

    name: str
    spatial: tuple[Axis, ...]
    reduce: tuple[Axis, ...]
    bodies: tuple[Expr, ...]
    combiners: tuple[str, ...]
    joint: Joint | None = None
    location: LocationAttr = field(default_factory=spans.of_caller)

    @property
    def axes(self) -> tuple[Axis, ...]:
        """All axes, spatial first."""
        return self.spatial + self.reduce

    @property
    def labels(self) -> list[str]:
        """Distinct names of the axes; a default name gets a suffix if another axis has it."""
        used_names = {axis.name for axis in self.axes if axis.named} | {size.name for size in self.sizes}
        labels = []
        for axis in self.axes:
            label = axis.name if axis.named else fresh(axis.name, used_names, "")
            used_names.add(label)
            labels.append(label)
        return labels

    @property
    def sizes(self) -> list[Size]:
        """The sizes in axes, tensors read, indices and conditions, each once."""
        reads = [e for body in self.bodies for e in nodes_of(body)]
        return sizes_in([*(axis.below for axis in self.axes), *(form for e in reads for form in _forms(e))])

    def sources(self) -> list[Tensor]:
        """Return the tensors that the bodies read, one entry for each read, in order."""
        return [e.tensor for body in self.bodies for e in nodes_of(body) if isinstance(e, Read)]


def _forms(expr: Expr) -> list[Dim | Condition | None]:
    """The extents, indices and conditions in one node of a body."""
    match expr:
        case Read():
            return [*expr.tensor.dims, *expr.indices, expr.condition]
        case AxisValue():
            return [expr.index]
        case Holds():
            return [expr.condition]
    return []


@dataclass(frozen=True, eq=False)
class Gather:
    """An op te.gather: its axes, all spatial, the read of the table, and the value (`otherwise`) of reads out of
    bounds."""

    name: str
    axes: tuple[Axis, ...]
    read: TableRead
    otherwise: Number
    location: LocationAttr = field(default_factory=spans.of_caller)

    def sources(self) -> list[Tensor]:
        """Return the tensors that the gather reads: those of the indices, then the table."""
        return [*(index.tensor for index in self.reads), self.read.tensor]

    @property
    def labels(self) -> list[str]:
        """The names of the axes, in order."""
        return [axis.name for axis in self.axes]

    @property
    def sizes(self) -> list[Size]:
        """The sizes in axes, in the table's extents, and in the reads of index tensors, each once."""
        forms = [form for read in self.reads for form in _forms(read)]
        return sizes_in([*(axis.below for axis in self.axes), *self.read.tensor.dims, *forms])

    @property
    def reads(self) -> list[Read]:
        """The reads of index tensors, in the order of the table's dimensions."""
        return [index for index in self.read.indices if isinstance(index, Read)]


@dataclass(frozen=True, eq=False)
class Constant:
    """An op te.constant: its name and elements."""

    name: str
    value: Dense

    @property
    def sizes(self) -> list[Size]:
        """The sizes in the constant: none."""
        return []

    def sources(self) -> list[Tensor]:
        """Return the tensors that the constant reads: none."""
        return []


Source: TypeAlias = Compute | Gather | Constant
"""The op that defines a tensor."""


def placeholder(shape: Shape, dtype: object = "f32", name: str = "arg") -> Tensor:
    """An input tensor. `dtype` is a name of te ("f32"), or numpy's or torch's dtype or its name ("float32").

    Extents are integers or expressions of sizes (`te.size`). Raises TeError for a shape that is not positive for all
    sizes, an unknown dtype, and a name that is no text.

    >>> te.placeholder((4, 8), "f16", name="A"), te.placeholder((2,), np.int32, name="I")
    (<Tensor A: f16[4, 8]>, <Tensor I: i32[2]>)
    """
    check_name("a tensor", name)
    return Tensor(name, checked_dims(f"tensor '{name}'", shape), check_dtype(dtype))


def checked_dims(what: str, shape: object) -> tuple[Dim, ...]:
    """Return the shape, an extent or a sequence, of an object called `what` as a tuple. Raises TeError unless all
    extents are integers or expressions of sizes, and at least 1."""
    if isinstance(shape, int | Index):
        return (check_dim(what, shape),)
    if not isinstance(shape, tuple | list):
        raise TeError(f"{what} has shape {shape!r}; a shape is a tuple of integers")
    return tuple(check_dim(f"dimension {d} of {what}", size) for d, size in enumerate(shape))


def static_shape(what: str, shape: object) -> tuple[int, ...]:
    """Return the shape, an integer or a sequence, of an object called `what` as a tuple. Raises TeError unless all
    extents are positive integers."""
    if isinstance(shape, int):
        return (check_extent(what, shape),)
    if not isinstance(shape, tuple | list):
        raise TeError(f"{what} has shape {shape!r}; a shape is a tuple of integers")
    return tuple(check_extent(f"dimension {d} of {what}", size) for d, size in enumerate(shape))


def reduce_axis(extent: Dim | tuple[int, Dim], name: str | None = None) -> Axis:
    """An axis to reduce over, with values below its extent, an integer or an expression of sizes; or from the range (0,
    extent), as TVM writes it.

    The default name is k, or k1, k2 ... if a compute has several. Raises TeError for an extent below 1 or that is no
    integer, for a range that does not begin at 0, and for a name that is no text.

    >>> k = te.reduce_axis(8, "k")
    >>> k.name, k.extent
    ('k', 8)
    """
    label = spelled(check_name("an axis", "k" if name is None else name))
    if isinstance(extent, tuple | list) and len(extent) == 2:
        if extent[0] != 0:
            raise TeError(
                f"axis '{label}' runs over the range {tuple(extent)}; axes begin at 0: state the extent, and read at "
                f"{label} + {extent[0]!r}"
            )
        extent = extent[1]
    dim = check_dim(f"axis '{label}'", extent)
    return Axis(label, capacity_of(dim), True, name is not None, dim if isinstance(dim, Index) else None)


def nodes_of(body: Expr) -> list[Expr]:
    """Return all nodes of an expression, each once, operands before users; the expression itself is last."""
    visited: dict[Expr, None] = {}
    stack: list[tuple[Expr, bool]] = [(body, False)]
    while stack:
        expr, is_visited = stack.pop()
        if expr in visited:
            continue
        if is_visited:
            visited[expr] = None
        else:
            stack.append((expr, True))
            stack += [(operand, False) for operand in reversed(expr.operands())]
    return list(visited)
