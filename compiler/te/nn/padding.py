"""`pad`: pad or crop a tensor."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.support.errors import TeError
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr
from compiler.te.index import Index
from compiler.te.nn.common import check_tensor
from compiler.te.tensor import Tensor

MODES = ("constant", "edge", "reflect", "wrap")


def pad(
    x: Tensor, widths: Sequence[tuple[int, int]], value: float = 0, mode: str = "constant", name: str = "pad"
) -> Tensor:
    """Pad X with a value; widths has (before, after) for each dimension, negative to crop.

    Other modes: `edge` repeats the outermost elements, `reflect` mirrors X without repeating them, `wrap` repeats X
    periodically; any widths. Raises TeError for other arguments. Elsewhere: numpy pad.
    """
    check_tensor("pad", x)
    if not isinstance(mode, str) or mode not in MODES:
        raise TeError(f"pad: unknown mode {mode!r} (there are {', '.join(MODES)})")
    width_pairs = widths if isinstance(widths, tuple | list) else ()
    pairs = [tuple(w) for w in width_pairs if isinstance(w, tuple | list) and len(w) == 2]
    are_integers = all(isinstance(n, int) and not isinstance(n, bool) for pair in pairs for n in pair)
    if not isinstance(widths, tuple | list) or len(width_pairs) != x.rank or len(pairs) != x.rank or not are_integers:
        raise TeError(f"pad: the widths {widths!r} are not (before, after) for each dimension of '{x.name}'")
    for d, (size, (before, after)) in enumerate(zip(x.shape, pairs, strict=True)):
        if size + min(before, 0) + min(after, 0) < 1 or size + before + after < 1:
            raise TeError(
                f"pad: the widths {before} and {after} leave nothing of dimension {d} of '{x.name}' {x.shape}"
            )
    if mode == "constant":
        return _constant_pad(x, pairs, value, name)
    return _periodic_pad(x, pairs, mode, name)


def _constant_pad(x: Tensor, pairs: Sequence[tuple[int, ...]], value: float, name: str) -> Tensor:
    source = x.padded(value)
    shape = [size + before + after for size, (before, after) in zip(x.shape, pairs, strict=True)]

    def element(*i: Index) -> Expr:
        return source[tuple(index - before for index, (before, _) in zip(i, pairs, strict=True))]

    return compute(shape, element, name)


def _periodic_pad(x: Tensor, pairs: Sequence[tuple[int, ...]], mode: str, name: str) -> Tensor:
    """Pad in mode edge, reflect or wrap: crop dimensions of negative width, then pad one dimension after the other."""
    if any(n < 0 for pair in pairs for n in pair):
        x = _constant_pad(x, [(min(b, 0), min(a, 0)) for b, a in pairs], 0, f"{name}.cut")
    padded_dims = [d for d, pair in enumerate(pairs) if max(pair) > 0]
    for d in padded_dims:
        label = name if d == padded_dims[-1] else f"{name}.dim{d}"
        x = _pad_dimension(x, d, max(pairs[d][0], 0), max(pairs[d][1], 0), mode, label)
    return x if padded_dims else compute(x.shape, lambda *i: x[i], name)


def _pad_dimension(x: Tensor, d: int, before: int, after: int, mode: str, name: str) -> Tensor:
    size = x.shape[d]
    shape = (*x.shape[:d], size + before + after, *x.shape[d + 1 :])

    def element(*i: Index) -> Expr:
        def at(position: Index | int) -> Expr:
            return x[(*i[:d], position, *i[d + 1 :])]

        position = i[d] - before
        if size == 1:
            return at(0)
        if mode == "wrap":
            return at(position % size)
        if mode == "edge":
            inside = e.select(e.all_of(position >= 0, position < size), at(position), 0)
            return e.select(position < 0, at(0), e.select(position >= size, at(size - 1), inside))
        period = 2 * (size - 1)
        phase = position % period
        forward = e.select(phase < size, at(phase), 0)
        return e.select(phase < size, forward, e.select(phase >= size, at(period - phase), 0))

    return compute(shape, element, name)
