"""`resize`: resize with the coordinates and modes of ONNX and torch."""

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
from compiler.te.nn.common import accumulator, astype, check_axes, check_flag, check_float, check_number, check_tensor
from compiler.te.nn.interpolation import COORDINATES, MODES, ROUNDINGS, AffineWindows, Resizing, fit_windows
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
    """Resize X along some axes (all by default) by nearest, linear or cubic interpolation.

    sizes and scales have an entry for each of the axes, in order; either may be None and follows from the other. The
    other options are those of ONNX's Resize: `coordinates`, `rounding` and `cubic` are coordinate_transformation_mode,
    nearest_mode and cubic_coeff_a; roi has all starts and then all ends of the axes. Linear and cubic modes take float
    dtypes, one axis after another, in f32 for narrower ones. Raises TeError for other arguments.
    """
    dims = check_axes("resize", check_tensor("resize", x), list(axes) if isinstance(axes, range) else axes)
    options = (("mode", mode, MODES), ("coordinates", coordinates, COORDINATES), ("rounding", rounding, ROUNDINGS))
    for what, value, choices in options:
        if not isinstance(value, str) or value not in choices:
            raise TeError(f"resize: unknown {what} {value!r} (there are {', '.join(choices)})")
    check_flag("resize", "exclude_outside", exclude_outside)
    check_flag("resize", "antialias", antialias)
    order = (
        list(range(x.rank)) if axes is None else [a % x.rank for a in (axes if not isinstance(axes, int) else [axes])]
    )
    factors, targets = _targets(x, order, sizes, scales)
    regions = _regions(order, roi)
    curve = check_number("resize", "cubic", cubic)
    resizings = {
        d: Resizing(x.shape[d], target, factor, mode, coordinates, rounding, curve, exclude_outside, antialias, region)
        for d, target, factor, region in zip(order, targets, factors, regions, strict=True)
    }
    assert set(resizings) == set(dims)
    changed = [d for d in dims if not resizings[d].is_identity]
    masks = _masks(resizings, name)
    label, fill = f"{name}.inside" if masks else name, check_number("resize", "extrapolation", extrapolation)
    if mode == "nearest":
        picks = {d: ([resizings[d].nearest(i) for i in range(resizings[d].size)], resizings[d].slopes) for d in changed}
        resized = select_positions(x, picks, label)
    else:
        resized, is_narrow = check_float("resize", x), accumulator(x.dtype) != x.dtype
        for d in changed:
            step_name = f"{name}.dim{d}" if is_narrow or d != changed[-1] else label
            resized = _interpolated(resized, d, resizings[d], step_name)
        resized = astype(resized, x.dtype, label)
    if masks:
        return _extrapolated(resized, masks, e.const(fill, x.dtype), name)
    return resized if changed else compute(x.shape, lambda *i: resized[i], name)


def _targets(
    x: Tensor, order: Sequence[int], sizes: Sequence[int] | None, scales: Sequence[float] | None
) -> tuple[list[float], list[int]]:
    """Return the scale and the size of each axis in `order`; sizes or scales that are None follow from the others.
    Raises TeError if both are None, and for invalid values."""
    for what, values in (("sizes", sizes), ("scales", scales)):
        if values is not None and (not isinstance(values, tuple | list) or len(values) != len(order)):
            raise TeError(f"resize: the {what} {values!r} are not one for each of {len(order)} axes of '{x.name}'")
    if sizes is None and scales is None:
        raise TeError("resize: neither sizes nor scales are given")
    factors = [check_number("resize", "a scale", s) for s in scales or ()]
    if any(not 1e-6 < s < 1e6 for s in factors):
        raise TeError(f"resize: the scales {scales!r} are not all above 0")
    targets = (
        list(sizes) if sizes is not None else [math.floor(x.shape[d] * s) for d, s in zip(order, factors, strict=True)]
    )
    for n in targets:
        if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= MAX_EXTENT:
            raise TeError(f"resize: the sizes {targets!r} are not all from 1 to {MAX_EXTENT}")
    return factors or [n / x.shape[d] for d, n in zip(order, targets, strict=True)], targets


MAX_EXTENT = 1 << 16
"""The largest extent of a result: a table of weights for each element is a constant of the program."""


def _regions(order: Sequence[int], roi: Sequence[float] | None) -> list[tuple[float, float]]:
    if roi is None:
        return [(0.0, 1.0)] * len(order)
    if not isinstance(roi, tuple | list) or len(roi) != 2 * len(order):
        raise TeError(f"resize: the region {roi!r} has not a start and an end for each of {len(order)} axes")
    numbers = [check_number("resize", "a bound of the region", n) for n in roi]
    return list(zip(numbers[: len(order)], numbers[len(order) :], strict=True))


def _start(fit_windows: AffineWindows, i: Index) -> Index:
    """Return the start of window i as an index expression."""
    if fit_windows.divisor == 1:
        return i * fit_windows.slope + fit_windows.offset
    return (i * fit_windows.slope + fit_windows.offset) // fit_windows.divisor


def select_positions(x: Tensor, picks: Mapping[int, tuple[Sequence[int], Sequence[Fraction]]], name: str) -> Tensor:
    """Select constant positions along some dimensions; `picks` maps each to its positions and candidate slopes.

    Dimensions with affine positions are read by index arithmetic, others by a table.
    """
    affine: dict[int, AffineWindows] = {}
    for d, (positions, slopes) in picks.items():
        window = fit_windows(positions, positions, slopes)
        if window.length == 1:
            affine[d] = window
        else:
            x = _select_by_table(x, d, positions, window, f"{name}.dim{d}")
    shape = [len(picks[d][0]) if d in affine else n for d, n in enumerate(x.shape)]

    def element(*i: Index) -> Expr:
        return x[tuple(_start(affine[d], index) if d in affine else index for d, index in enumerate(i))]

    return compute(shape, element, name)


def _select_by_table(x: Tensor, d: int, positions: Sequence[int], windows: AffineWindows, name: str) -> Tensor:
    """Select positions along dimension d: affine windows include them, and a table has their offsets in the windows."""
    offsets = constant([n - windows.start(i) for i, n in enumerate(positions)], "i64", f"{name}.numbers")
    padded = x.padded(0)

    def element(*i: Index) -> Expr:
        start = _start(windows, i[d])

        def read(offset: int) -> Expr:
            return padded[(*i[:d], start + offset, *i[d + 1 :])]

        value = read(windows.length - 1)
        for offset in range(windows.length - 1):
            value = e.select(e.equal(offsets[i[d]], offset), read(offset), value)
        return value

    return compute([len(positions) if n == d else m for n, m in enumerate(x.shape)], element, name)


def _interpolated(x: Tensor, d: int, resizing: Resizing, name: str) -> Tensor:
    """Resize dimension d of x by sums over affine windows, with a constant of weights, in the accumulator's dtype."""
    acc_dtype = accumulator(x.dtype)
    weights = [resizing.weights(i) for i in range(resizing.size)]
    windows = fit_windows([min(s) for s in weights], [max(s) for s in weights], resizing.slopes)
    rows = [[s.get(windows.start(i) + tap, 0.0) for tap in range(windows.length)] for i, s in enumerate(weights)]
    table, tap, padded = constant(rows, acc_dtype, f"{name}.shares"), reduce_axis(windows.length, "tap"), x.padded(0)

    def element(*i: Index) -> Reduce:
        read = padded[(*i[:d], _start(windows, i[d]) + tap, *i[d + 1 :])]
        return e.sum(e.cast(read, acc_dtype) * table[i[d], tap], axis=tap)

    return compute([resizing.size if n == d else m for n, m in enumerate(x.shape)], element, name)


def _masks(resizings: dict[int, Resizing], name: str) -> dict[int, Tensor]:
    """Map each dimension with output elements outside the region to an i1 vector, true for these elements."""
    outside = {d: [r.is_outside(i) for i in range(r.size)] for d, r in resizings.items()}
    return {d: constant(bits, "i1", f"{name}.outside{d}") for d, bits in outside.items() if any(bits)}


def _extrapolated(x: Tensor, masks: dict[int, Tensor], value: Expr, name: str) -> Tensor:
    """Replace the elements of x that a dimension's mask marks by a value."""

    def element(*i: Index) -> Expr:
        is_outside = e.any_of(*(mask[i[d]] for d, mask in masks.items()))
        return e.select(is_outside, value, x[i])

    return compute(x.shape, element, name)
