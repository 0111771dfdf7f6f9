"""Operators that move elements, such as transpose, reshape, slice and concat."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from itertools import accumulate

from compiler.support.errors import TeError
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr
from compiler.te.index import Index
from compiler.te.nn.common import check_axes, check_axis, check_tensor, is_count
from compiler.te.nn.elementwise import read_at
from compiler.te.tensor import Tensor


def transpose(x: Tensor, perm: Sequence[int] | None = None, name: str = "transpose") -> Tensor:
    """Y = X with permuted dimensions: dimension d of Y is dimension perm[d] of X (reversed by default). Raises TeError
    for a `perm` that is no permutation."""
    check_tensor("transpose", x)
    order = list(range(x.rank))[::-1] if perm is None else list(perm) if isinstance(perm, tuple | list) else [-1]
    if not all(is_count(d) for d in order) or sorted(order) != list(range(x.rank)):
        raise TeError(f"transpose: {perm!r} is not a permutation of the {x.rank} dimensions of '{x.name}'")

    def element(*i: Index) -> Expr:
        return x[tuple(i[order.index(d)] for d in range(x.rank))]

    return compute([x.dims[d] for d in order], element, name)


def reshape(x: Tensor, shape: Sequence[int], name: str = "reshape") -> Tensor:
    """Y = X in row-major order with another shape, of which one extent may be -1 and is inferred. Raises TeError for an
    invalid shape, and for one with another number of elements."""
    check_tensor("reshape", x)
    out_shape = _inferred(x, shape)

    def element(*i: Index) -> Expr:
        if x.shape == out_shape:
            return x[i]
        flat: Index | int = 0
        for index, size in zip(i, out_shape, strict=True):
            flat = flat * size + index
        position = []
        for size in reversed(x.shape):
            position.append(flat % size if size > 1 else 0)
            flat = flat // size
        return x[tuple(reversed(position))]

    return compute(out_shape, element, name)


def _inferred(x: Tensor, shape: object) -> tuple[int, ...]:
    extents = tuple(shape) if isinstance(shape, tuple | list) else ()
    fits = isinstance(shape, tuple | list) and all(
        isinstance(n, int) and not isinstance(n, bool) and (n > 0 or n == -1) for n in extents
    )
    known_count, count = math.prod(n for n in extents if fits and n > 0), math.prod(x.shape)
    if not fits or extents.count(-1) > 1 or count % known_count or (-1 not in extents and known_count != count):
        raise TeError(f"reshape: '{x.name}' of shape {x.shape} cannot become {shape!r}")
    return tuple(count // known_count if n == -1 else n for n in extents)


def flatten(x: Tensor, start: int = 0, name: str = "flatten") -> Tensor:
    """Y = X with the dimensions from `start` on fused in row-major order. Raises TeError for a start out of range."""
    first = check_axis("flatten", check_tensor("flatten", x), start)
    return reshape(x, (*x.shape[:first], -1), name)


def expand_dims(x: Tensor, axis: int, name: str = "expand_dims") -> Tensor:
    """Y = X with a dimension of extent 1 inserted before `axis` (-1: at the end). Raises TeError for an invalid
    axis."""
    rank = check_tensor("expand_dims", x).rank + 1
    if isinstance(axis, bool) or not isinstance(axis, int) or not -rank <= axis < rank:
        raise TeError(f"expand_dims: {axis!r} is no place among {rank} dimensions")
    dim = axis % rank
    return reshape(x, (*x.shape[:dim], 1, *x.shape[dim:]), name)


def squeeze(x: Tensor, axis: int | Sequence[int] | None = None, name: str = "squeeze") -> Tensor:
    """Y = X without the dimensions `axis` of extent 1 (None: all that have it). Raises TeError for other extents, and
    for an axis out of range."""
    check_tensor("squeeze", x)
    removed_dims = [d for d, n in enumerate(x.shape) if n == 1] if axis is None else check_axes("squeeze", x, axis)
    for d in removed_dims:
        if x.shape[d] != 1:
            raise TeError(f"squeeze: dimension {d} of '{x.name}' has extent {x.shape[d]}, not 1")
    return reshape(x, tuple(n for d, n in enumerate(x.shape) if d not in removed_dims), name)


def broadcast_to(x: Tensor, shape: Sequence[int], name: str = "broadcast_to") -> Tensor:
    """Y[i...] = X[i...] with X broadcast to a shape as numpy does. Raises TeError for other arguments."""
    check_tensor("broadcast_to", x)
    out_shape = tuple(shape) if isinstance(shape, tuple | list) else ()
    last_extents = out_shape[len(out_shape) - x.rank :]
    fits = isinstance(shape, tuple | list) and len(last_extents) == x.rank and all(is_count(n) and n for n in out_shape)
    if not fits or any(m not in (1, n) for m, n in zip(x.shape, last_extents, strict=True)):
        raise TeError(f"broadcast_to: '{x.name}' of shape {x.shape} does not broadcast to {shape!r}")
    return compute(out_shape, lambda *i: read_at(x, i), name)


def concat(tensors: Sequence[Tensor], axis: int = 0, name: str = "concat") -> Tensor:
    """Y = the tensors concatenated along one axis. Raises TeError for other arguments, and if dtypes, ranks or extents
    of other axes differ."""
    tensor_list: list[Tensor] = list(tensors) if isinstance(tensors, tuple | list) else []
    if not tensor_list:
        raise TeError("concat: it takes a sequence of at least one tensor")
    dim = check_axis("concat", check_tensor("concat", tensor_list[0]), axis)
    first = tensor_list[0]
    for part in tensor_list[1:]:
        check_tensor("concat", part)
        fits_beside = (*part.shape[:dim], *part.shape[dim + 1 :]) == (*first.shape[:dim], *first.shape[dim + 1 :])
        if part.rank != first.rank or not fits_beside or part.dtype != first.dtype:
            raise TeError(
                f"concat: '{first.name}' is {first.dtype} of shape {first.shape}, '{part.name}' {part.dtype} of "
                f"{part.shape}: they differ beyond axis {dim}"
            )

    ends = list(accumulate(part.shape[dim] for part in tensor_list))

    def read(i: tuple[Index, ...], part: Tensor, end: int) -> Expr:
        start = end - part.shape[dim]
        inside = e.all_of(i[dim] >= start, i[dim] < end)
        return e.select(inside, part[(*i[:dim], i[dim] - start, *i[dim + 1 :])], 0)

    def element(*i: Index) -> Expr:
        if len(tensor_list) == 1:
            return tensor_list[0][i]
        value = read(i, tensor_list[-1], ends[-1])
        for part, end in reversed(list(zip(tensor_list[:-1], ends, strict=False))):
            value = e.select(i[dim] < end, read(i, part, end), value)
        return value

    shape = (*first.shape[:dim], ends[-1], *first.shape[dim + 1 :])
    return compute(shape, element, name)


def stack(tensors: Sequence[Tensor], axis: int = 0, name: str = "stack") -> Tensor:
    """Y = tensors of one shape and dtype stacked along a new axis. Raises TeError for other arguments."""
    tensor_list: list[Tensor] = list(tensors) if isinstance(tensors, tuple | list) else []
    if not tensor_list:
        raise TeError("stack: it takes a sequence of at least one tensor")
    rank = check_tensor("stack", tensor_list[0]).rank + 1
    if isinstance(axis, bool) or not isinstance(axis, int) or not -rank <= axis < rank:
        raise TeError(f"stack: {axis!r} is no place among {rank} dimensions")
    expanded = [expand_dims(check_tensor("stack", p), axis, f"{name}.{n}") for n, p in enumerate(tensor_list)]
    return concat(expanded, axis, name)


def slice(
    x: Tensor,
    starts: Sequence[int],
    stops: Sequence[int | None],
    steps: Sequence[int] | None = None,
    name: str = "slice",
) -> Tensor:
    """Y[i...] = X[start + i * step...], as Python slices each dimension: negative bounds count from the end.

    starts, stops and steps (default 1; may be negative) have an entry a dimension; the stop None is the last element,
    or the first for a negative step, included. Raises TeError for an empty slice and for other arguments.
    """
    check_tensor("slice", x)
    bounds = [starts, stops, (1,) * x.rank if steps is None else steps]
    if any(not isinstance(bound, tuple | list) or len(bound) != x.rank for bound in bounds):
        raise TeError(f"slice: '{x.name}' has {x.rank} dimensions; starts, stops and steps have an entry for each")
    ranges = []
    for d, (start, stop, step) in enumerate(zip(*bounds, strict=True)):
        are_integers = all(n is None or (isinstance(n, int) and not isinstance(n, bool)) for n in (start, stop, step))
        if not are_integers or start is None or step is None or step == 0:
            raise TeError(f"slice: {start!r}:{stop!r}:{step!r} is no slice of dimension {d} of '{x.name}'")
        ranges.append(range(*builtins.slice(start, stop, step).indices(x.shape[d])))
        if not ranges[-1]:
            raise TeError(f"slice: {start}:{stop}:{step} has no elements in dimension {d} of '{x.name}' {x.shape}")

    def element(*i: Index) -> Expr:
        return x[tuple(r.start + index * r.step for r, index in zip(ranges, i, strict=True))]

    return compute([len(r) for r in ranges], element, name)


def flip(x: Tensor, axis: int | Sequence[int] | None = None, name: str = "flip") -> Tensor:
    """Y = X with its elements reversed along the axes `axis` (None: all). Raises TeError for an axis out of range."""
    flipped_dims = check_axes("flip", check_tensor("flip", x), axis)

    def element(*i: Index) -> Expr:
        return x[tuple(x.shape[d] - 1 - index if d in flipped_dims else index for d, index in enumerate(i))]

    return compute(x.shape, element, name)


def tile(x: Tensor, repeats: Sequence[int], name: str = "tile") -> Tensor:
    """Y[i...] = X[i mod X's extents...]: X repeated `repeats` times in each dimension. Raises TeError for a count below
    1, or another number of them."""
    check_tensor("tile", x)
    counts = repeats if isinstance(repeats, tuple | list) else ()
    are_counts = all(is_count(n) and n for n in counts)
    if not isinstance(repeats, tuple | list) or len(counts) != x.rank or not are_counts:
        raise TeError(f"tile: {repeats!r} is not a count of at least 1 for each dimension of '{x.name}'")

    def element(*i: Index) -> Expr:
        return x[tuple(index % size if size > 1 else 0 for index, size in zip(i, x.shape, strict=True))]

    return compute([n * r for n, r in zip(x.shape, counts, strict=True)], element, name)
