"""te.gather: tensors read at an index that other tensors hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compiler.elements import INDICES
from compiler.errors import TeError
from compiler.te.expr import Expr, Read, const
from compiler.te.index import Axis, Index, as_index, check_name

if TYPE_CHECKING:
    from compiler.te.tensor import Tensor


@dataclass(frozen=True, eq=False)
class TableRead(Expr):
    """One element of a table: each index is quasi-affine, or an integer tensor's element."""

    tensor: Tensor
    indices: tuple[Index | Read, ...]

    @property
    def dtype(self) -> str:  # type: ignore[override]
        """The table's dtype."""
        return self.tensor.dtype


def table_read(tensor: Tensor, given: tuple[Any, ...]) -> TableRead:
    """The element of a tensor at given indices. Raises TeError for another number, or for what is no index."""
    if len(given) != tensor.rank:
        raise TeError(f"tensor '{tensor.name}' has {tensor.rank} dimensions, indexed with {len(given)}")
    return TableRead(tensor, tuple(_index(tensor, item) for item in given))


def _index(tensor: Tensor, item: Any) -> Index | Read:
    index = as_index(item)
    if index is not None:
        return index
    if not isinstance(item, Read):
        kind = "the value of an expression; compute it as a tensor first" if isinstance(item, Expr) else repr(item)
        raise TeError(f"tensor '{tensor.name}' is indexed with {kind}")
    if item.dtype not in INDICES:
        raise TeError(f"tensor '{tensor.name}' is indexed with '{item.tensor.name}' of {item.dtype}, not integers")
    return item


@dataclass(frozen=True, eq=False)
class Gather:
    """One te.gather: its axes, what it reads, and the value outside the table."""

    name: str
    axes: tuple[Axis, ...]
    read: TableRead
    otherwise: float | int

    def sources(self) -> list[Tensor]:
        """The tensors that it reads: those of the indices, then the table."""
        return [*(index.tensor for index in self.reads), self.read.tensor]

    @property
    def reads(self) -> list[Read]:
        """The reads of index tensors, in the order of the table's dimensions."""
        return [index for index in self.read.indices if isinstance(index, Read)]


def gather(
    shape: Sequence[int],
    fn: Callable[..., Any],
    name: str = "T",
    axes: Sequence[str] | None = None,
    otherwise: float | int = 0,
) -> Tensor:
    """A tensor whose elements are read at an index that other tensors hold: `lambda i, d: T.at(I[i], d)`.

    fn takes one axis a dimension and returns one `.at` of a table, in which at least one index is an element of an
    integer tensor. Where that value is outside the table, `otherwise` is read; negative values do not wrap.

    Raises TeError, naming the tensor and the axis, for whatever does not fit.
    """
    from compiler.te.tensor import Tensor, axis_names, static_shape

    check_name("a tensor", name)
    extents = static_shape(f"tensor '{name}'", shape)
    names = axis_names(name, extents, fn, axes)
    spatial = tuple(Axis(n, extent) for n, extent in zip(names, extents, strict=True))
    try:
        op = _gather(name, spatial, fn(*spatial), otherwise)
    except TeError as error:
        raise TeError(f"in gather '{name}': {error}") from error
    return Tensor(name, extents, op.read.dtype, op)


def _gather(name: str, axes: tuple[Axis, ...], read: Any, otherwise: float | int) -> Gather:
    from compiler.te.tensor import check_indices, check_read

    if not isinstance(read, TableRead):
        raise TeError("the function must return one read of a table, such as T.at(I[i], d)")
    op = Gather(name, axes, read, const(otherwise, read.dtype).value)  # type: ignore[attr-defined]
    if not op.reads:
        raise TeError(f"no index of '{read.tensor.name}' is an element of a tensor; write a te.compute")
    for index in op.reads:
        check_read(axes, index)
    known = [(d, index) for d, index in enumerate(read.indices) if not isinstance(index, Read)]
    check_indices(axes, read.tensor, known, None)
    return op
