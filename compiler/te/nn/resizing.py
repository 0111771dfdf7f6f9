"""`resize`: tensors at another size, as ONNX and torch mean it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from compiler.support.errors import TeError
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.constant import constant
from compiler.te.expr import Expr, Reduce
from compiler.te.index import Index
from compiler.te.nn.common import accumulator, check_axes, check_flag, check_float, check_number, check_tensor, rounded
from compiler.te.nn.interpolation import COORDINATES, MODES, ROUNDINGS, Line, Resizing, line
from compiler.te.tensor import Tensor, reduce_axis


def resize(
    x: Tensor,
    sizes: Sequence[int] | None = None,
    scales: Sequence[float] | None = None,
    axes: Sequence[int] | None = None,
    mode: str = "nearest",
    coordinates: str = "half_pixel",
    rounding: str = "round_prefer_floor",
    cubic: float = -0.75,
    exclude_outside: bool = False,
    antialias: bool = False,
    roi: Sequence[float] | None = None,
    extrapolation: float = 0.0,
    name: str = "resize",
) -> Tensor:
    """Y = X at other sizes along some axes (all by default): nearest elements, or mixed linearly or by cubics.

    sizes and scales have an entry for each of the axes, in order; one follows from the other where that is not given.
    The rest is what ONNX's Resize says, where `coordinates`, `rounding` and `cubic` are
    coordinate_transformation_mode, nearest_mode and cubic_coeff_a; roi has all starts and then all ends of the axes.
    Axes are resized one after another, in f32 of narrower floats. Raises TeError.
    """
    along = check_axes("resize", check_tensor("resize", x), list(axes) if isinstance(axes, range) else axes)
    words = (("mode", mode, MODES), ("coordinates", coordinates, COORDINATES), ("rounding", rounding, ROUNDINGS))
    for what, given, there in words:
        if not isinstance(given, str) or given not in there:
            raise TeError(f"resize: unknown {what} {given!r} (there are {', '.join(there)})")
    check_flag("resize", "exclude_outside", exclude_outside)
    check_flag("resize", "antialias", antialias)
    order = (
        list(range(x.rank)) if axes is None else [a % x.rank for a in (axes if not isinstance(axes, int) else [axes])]
    )
    factors, targets = _targets(x, order, sizes, scales)
    regions = _regions(order, roi)
    curve = check_number("resize", "cubic", cubic)
    how = {
        d: Resizing(x.shape[d], target, factor, mode, coordinates, rounding, curve, exclude_outside, antialias, region)
        for d, target, factor, region in zip(order, targets, factors, regions, strict=True)
    }
    assert set(how) == set(along)
    changed = [d for d in along if not how[d].is_identity]
    masks = _masks(how, name)
    label, value = f"{name}.inside" if masks else name, check_number("resize", "extrapolation", extrapolation)
    if mode == "nearest":
        resized = picked(
            x, {d: ([how[d].nearest(i) for i in range(how[d].size)], how[d].slopes) for d in changed}, label
        )
    else:
        resized, wide = check_float("resize", x), accumulator(x.dtype) != x.dtype
        for d in changed:
            resized = _mixed(resized, d, how[d], f"{name}.dim{d}" if wide or d != changed[-1] else label)
        resized = rounded(resized, x.dtype, label)
    if masks:
        return _outside(resized, masks, e.const(value, x.dtype), name)
    return resized if changed else compute(x.shape, lambda *i: resized[i], name)


def _targets(
    x: Tensor, order: Sequence[int], sizes: Sequence[int] | None, scales: Sequence[float] | None
) -> tuple[list[float], list[int]]:
    """The scale and the size of each axis. Raises TeError."""
    for what, given in (("sizes", sizes), ("scales", scales)):
        if given is not None and (not isinstance(given, tuple | list) or len(given) != len(order)):
            raise TeError(f"resize: the {what} {given!r} are not one for each of {len(order)} axes of '{x.name}'")
    if sizes is None and scales is None:
        raise TeError("resize: neither sizes nor scales are given")
    factors = [check_number("resize", "a scale", s) for s in scales or ()]
    if any(not 1e-6 < s < 1e6 for s in factors):
        raise TeError(f"resize: the scales {scales!r} are not all above 0")
    targets = (
        list(sizes) if sizes is not None else [math.floor(x.shape[d] * s) for d, s in zip(order, factors, strict=True)]
    )
    for n in targets:
        if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= LONGEST:
            raise TeError(f"resize: the sizes {targets!r} are not all from 1 to {LONGEST}")
    return factors or [n / x.shape[d] for d, n in zip(order, targets, strict=True)], targets


LONGEST = 1 << 16
"""The longest dimension of a result: the table of its shares stands in the program."""


def _regions(order: Sequence[int], roi: Sequence[float] | None) -> list[tuple[float, float]]:
    if roi is None:
        return [(0.0, 1.0)] * len(order)
    if not isinstance(roi, tuple | list) or len(roi) != 2 * len(order):
        raise TeError(f"resize: the region {roi!r} has not a start and an end for each of {len(order)} axes")
    numbers = [check_number("resize", "a bound of the region", n) for n in roi]
    return list(zip(numbers[: len(order)], numbers[len(order) :], strict=True))


def _index(line: Line, i: Index) -> Index:
    """Where the window of a place begins, as an index."""
    if line.divisor == 1:
        return i * line.slope + line.offset
    return (i * line.slope + line.offset) // line.divisor


def picked(x: Tensor, picks: Mapping[int, tuple[Sequence[int], Sequence[Fraction]]], name: str) -> Tensor:
    """The elements at known places of some dimensions, each with slopes that these may have.

    All dimensions whose places lie on a line are read at once, others by a table.
    """
    lines: dict[int, Line] = {}
    for d, (places, slopes) in picks.items():
        window = line(places, places, slopes)
        if window.length == 1:
            lines[d] = window
        else:
            x = _picked(x, d, places, window, f"{name}.dim{d}")
    shape = [len(picks[d][0]) if d in lines else n for d, n in enumerate(x.shape)]

    def element(*i: Index) -> Expr:
        return x[tuple(_index(lines[d], index) if d in lines else index for d, index in enumerate(i))]

    return compute(shape, element, name)


def _picked(x: Tensor, d: int, places: Sequence[int], over: Line, name: str) -> Tensor:
    """One dimension, whose places are within windows: the element of each is chosen by its number in the window."""
    numbers = constant([at - over.start(i) for i, at in enumerate(places)], "i64", f"{name}.numbers")
    source = x.padded(0)

    def element(*i: Index) -> Expr:
        start = _index(over, i[d])

        def at(number: int) -> Expr:
            return source[(*i[:d], start + number, *i[d + 1 :])]

        value = at(over.length - 1)
        for number in range(over.length - 1):
            value = e.select(e.equal(numbers[i[d]], number), at(number), value)
        return value

    return compute([len(places) if n == d else m for n, m in enumerate(x.shape)], element, name)


def _mixed(x: Tensor, d: int, resizing: Resizing, name: str) -> Tensor:
    """One dimension, each place a sum over a window with shares that a table holds, in the accumulator's dtype."""
    wide = accumulator(x.dtype)
    shares = [resizing.weights(i) for i in range(resizing.size)]
    over = line([min(s) for s in shares], [max(s) for s in shares], resizing.slopes)
    rows = [[s.get(over.start(i) + tap, 0.0) for tap in range(over.length)] for i, s in enumerate(shares)]
    table, tap, source = constant(rows, wide, f"{name}.shares"), reduce_axis(over.length, "tap"), x.padded(0)

    def element(*i: Index) -> Reduce:
        read = source[(*i[:d], _index(over, i[d]) + tap, *i[d + 1 :])]
        return e.sum(e.cast(read, wide) * table[i[d], tap], axis=tap)

    return compute([resizing.size if n == d else m for n, m in enumerate(x.shape)], element, name)


def _masks(how: dict[int, Resizing], name: str) -> dict[int, Tensor]:
    """Which places of each dimension are outside of its region."""
    outside = {d: [r.is_outside(i) for i in range(r.size)] for d, r in how.items()}
    return {d: constant(bits, "i1", f"{name}.outside{d}") for d, bits in outside.items() if any(bits)}


def _outside(x: Tensor, masks: dict[int, Tensor], value: Expr, name: str) -> Tensor:
    """A value instead of the elements outside of the region."""

    def element(*i: Index) -> Expr:
        beyond = e.any_of(*(mask[i[d]] for d, mask in masks.items()))
        return e.select(beyond, value, x[i])

    return compute(x.shape, element, name)
