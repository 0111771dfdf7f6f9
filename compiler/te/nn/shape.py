"""Operators that move elements."""

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
    """Y[..., i, ...] = X permuted: dimension d of Y is dimension perm[d] of X (reversed by default)."""
    check_tensor("transpose", x)
    order = list(range(x.rank))[::-1] if perm is None else list(perm) if isinstance(perm, tuple | list) else [-1]
    if not all(is_count(d) for d in order) or sorted(order) != list(range(x.rank)):
        raise TeError(f"transpose: {perm!r} is not a permutation of the {x.rank} dimensions of '{x.name}'")

    def element(*i: Index) -> Expr:
        return x[tuple(i[order.index(d)] for d in range(x.rank))]

    return compute([x.shape[d] for d in order], element, name)


def reshape(x: Tensor, shape: Sequence[int], name: str = "reshape") -> Tensor:
    """Y = X in row-major order under another shape, of which one extent may be -1, to be inferred. Raises TeError."""
    check_tensor("reshape", x)
    wanted = _inferred(x, shape)

    def element(*i: Index) -> Expr:
        if x.shape == wanted:
            return x[i]
        flat: Index | int = 0
        for index, size in zip(i, wanted, strict=True):
            flat = flat * size + index
        at = []
        for size in reversed(x.shape):
            at.append(flat % size if size > 1 else 0)
            flat = flat // size
        return x[tuple(reversed(at))]

    return compute(wanted, element, name)


def _inferred(x: Tensor, shape: object) -> tuple[int, ...]:
    given = tuple(shape) if isinstance(shape, tuple | list) else ()
    fits = isinstance(shape, tuple | list) and all(
        isinstance(n, int) and not isinstance(n, bool) and (n > 0 or n == -1) for n in given
    )
    stated, count = math.prod(n for n in given if fits and n > 0), math.prod(x.shape)
    if not fits or given.count(-1) > 1 or count % stated or (-1 not in given and stated != count):
        raise TeError(f"reshape: '{x.name}' of shape {x.shape} cannot become {shape!r}")
    return tuple(count // stated if n == -1 else n for n in given)


def flatten(x: Tensor, start: int = 0, name: str = "flatten") -> Tensor:
    """Y = X with its dimensions from `start` on joined into one, in row-major order. Raises TeError."""
    first = check_axis("flatten", check_tensor("flatten", x), start)
    return reshape(x, (*x.shape[:first], -1), name)


def expand_dims(x: Tensor, axis: int, name: str = "expand_dims") -> Tensor:
    """Y = X with a dimension of extent 1 inserted before `axis` (or at the end: -1). Raises TeError."""
    rank = check_tensor("expand_dims", x).rank + 1
    if isinstance(axis, bool) or not isinstance(axis, int) or not -rank <= axis < rank:
        raise TeError(f"expand_dims: {axis!r} is no place among {rank} dimensions")
    at = axis % rank
    return reshape(x, (*x.shape[:at], 1, *x.shape[at:]), name)


def squeeze(x: Tensor, axis: int | Sequence[int] | None = None, name: str = "squeeze") -> Tensor:
    """Y = X without the given dimensions of extent 1, or without all of these. Raises TeError."""
    check_tensor("squeeze", x)
    gone = [d for d, n in enumerate(x.shape) if n == 1] if axis is None else check_axes("squeeze", x, axis)
    for d in gone:
        if x.shape[d] != 1:
            raise TeError(f"squeeze: dimension {d} of '{x.name}' has extent {x.shape[d]}, not 1")
    return reshape(x, tuple(n for d, n in enumerate(x.shape) if d not in gone), name)


def broadcast_to(x: Tensor, shape: Sequence[int], name: str = "broadcast_to") -> Tensor:
    """Y[i...] = X at the last of these indices, 0 where X has extent 1: X repeated to a shape. Raises TeError."""
    check_tensor("broadcast_to", x)
    wanted = tuple(shape) if isinstance(shape, tuple | list) else ()
    last_extents = wanted[len(wanted) - x.rank :]
    fits = isinstance(shape, tuple | list) and len(last_extents) == x.rank and all(is_count(n) and n for n in wanted)
    if not fits or any(m not in (1, n) for m, n in zip(x.shape, last_extents, strict=True)):
        raise TeError(f"broadcast_to: '{x.name}' of shape {x.shape} does not broadcast to {shape!r}")
    return compute(wanted, lambda *i: read_at(x, i), name)


def concat(tensors: Sequence[Tensor], axis: int = 0, name: str = "concat") -> Tensor:
    """Y = the tensors one behind the other along one axis; otherwise their shapes and dtypes agree. Raises TeError."""
    parts: list[Tensor] = list(tensors) if isinstance(tensors, tuple | list) else []
    if not parts:
        raise TeError("concat: it takes a sequence of at least one tensor")
    along = check_axis("concat", check_tensor("concat", parts[0]), axis)
    first = parts[0]
    for part in parts[1:]:
        check_tensor("concat", part)
        alike = (*part.shape[:along], *part.shape[along + 1 :]) == (*first.shape[:along], *first.shape[along + 1 :])
        if part.rank != first.rank or not alike or part.dtype != first.dtype:
            raise TeError(
                f"concat: '{first.name}' is {first.dtype} of shape {first.shape}, '{part.name}' {part.dtype} of "
                f"{part.shape}: they differ beyond axis {along}"
            )

    ends = list(accumulate(part.shape[along] for part in parts))

    def read(i: tuple[Index, ...], part: Tensor, end: int) -> Expr:
        start = end - part.shape[along]
        inside = e.all_of(i[along] >= start, i[along] < end)
        return e.select(inside, part[(*i[:along], i[along] - start, *i[along + 1 :])], 0)

    def element(*i: Index) -> Expr:
        if len(parts) == 1:
            return parts[0][i]
        value = read(i, parts[-1], ends[-1])
        for part, end in reversed(list(zip(parts[:-1], ends, strict=False))):
            value = e.select(i[along] < end, read(i, part, end), value)
        return value

    shape = (*first.shape[:along], ends[-1], *first.shape[along + 1 :])
    return compute(shape, element, name)


def stack(tensors: Sequence[Tensor], axis: int = 0, name: str = "stack") -> Tensor:
    """Y = the tensors of one shape side by side along a new axis. Raises TeError."""
    parts: list[Tensor] = list(tensors) if isinstance(tensors, tuple | list) else []
    if not parts:
        raise TeError("stack: it takes a sequence of at least one tensor")
    rank = check_tensor("stack", parts[0]).rank + 1
    if isinstance(axis, bool) or not isinstance(axis, int) or not -rank <= axis < rank:
        raise TeError(f"stack: {axis!r} is no place among {rank} dimensions")
    raised = [expand_dims(check_tensor("stack", p), axis, f"{name}.{n}") for n, p in enumerate(parts)]
    return concat(raised, axis, name)


def slice(
    x: Tensor,
    starts: Sequence[int],
    stops: Sequence[int | None],
    steps: Sequence[int] | None = None,
    name: str = "slice",
) -> Tensor:
    """Y[i...] = X[start + i * step...], as Python slices each dimension: negative places count from the end.

    starts, stops (None for the end) and steps (1 where they are not given; they may be negative) have an entry a
    dimension. Raises TeError, also for a slice without elements.
    """
    check_tensor("slice", x)
    given = [starts, stops, (1,) * x.rank if steps is None else steps]
    if any(not isinstance(part, tuple | list) or len(part) != x.rank for part in given):
        raise TeError(f"slice: '{x.name}' has {x.rank} dimensions; starts, stops and steps have an entry for each")
    ranges = []
    for d, (start, stop, step) in enumerate(zip(*given, strict=True)):
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
    """Y = X with the given axes, or all of them, in reverse order. Raises TeError."""
    turned = check_axes("flip", check_tensor("flip", x), axis)

    def element(*i: Index) -> Expr:
        return x[tuple(x.shape[d] - 1 - index if d in turned else index for d, index in enumerate(i))]

    return compute(x.shape, element, name)


def tile(x: Tensor, repeats: Sequence[int], name: str = "tile") -> Tensor:
    """Y[i...] = X[i mod X's extents...]: X side by side, so many times in each dimension. Raises TeError."""
    check_tensor("tile", x)
    given = repeats if isinstance(repeats, tuple | list) else ()
    counts = all(isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in given)
    if not isinstance(repeats, tuple | list) or len(given) != x.rank or not counts:
        raise TeError(f"tile: {repeats!r} is not a count of at least 1 for each dimension of '{x.name}'")

    def element(*i: Index) -> Expr:
        return x[tuple(index % size if size > 1 else 0 for index, size in zip(i, x.shape, strict=True))]

    return compute([n * r for n, r in zip(x.shape, given, strict=True)], element, name)
