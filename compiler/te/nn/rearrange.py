"""Operators that move elements by arithmetic on their places: rolls, blocks, triangles, windows as rows."""

from __future__ import annotations

import math
from collections.abc import Sequence

from compiler.support.errors import TeError
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr, Reduce
from compiler.te.gather import gather
from compiler.te.index import Condition, Index, compared
from compiler.te.nn.common import Sizes, accumulator, check_axis, check_rank, check_tensor, is_count, rounded, several
from compiler.te.nn.window import SPATIAL, Window, window
from compiler.te.tensor import Tensor
from compiler.types.elements import INDICES, has_sign


def roll(x: Tensor, shift: Sizes, axis: Sizes, name: str = "roll") -> Tensor:
    """Y[..., i, ...] = X[..., (i - shift) mod extent, ...], along one axis or several. Raises TeError."""
    check_tensor("roll", x)
    axes = [check_axis("roll", x, a) for a in (axis if isinstance(axis, tuple | list) else [axis])]
    shifts: list[object] = list(shift) if isinstance(shift, tuple | list) else [shift]
    are_integers = all(isinstance(n, int) and not isinstance(n, bool) for n in shifts)
    if not are_integers or len(shifts) != len(axes) or len(set(axes)) != len(axes):
        raise TeError(f"roll: {shift!r} are not integers, one for each of the axes {axis!r} of '{x.name}'")
    by = {d: n for d, n in zip(axes, shifts, strict=True) if isinstance(n, int)}

    def element(*i: Index) -> Expr:
        moved = [(index + -by[d] % x.shape[d]) % x.shape[d] if d in by else index for d, index in enumerate(i)]
        return x[tuple(moved)]

    return compute(x.shape, element, name)


def repeat(x: Tensor, repeats: int, axis: int, name: str = "repeat") -> Tensor:
    """Y[..., i, ...] = X[..., i // repeats, ...] along one axis: each element so many times. Raises TeError."""
    along = check_axis("repeat", check_tensor("repeat", x), axis)
    if not is_count(repeats) or not repeats:
        raise TeError(f"repeat: {repeats!r} is not an integer of at least 1")
    shape = [n * repeats if d == along else n for d, n in enumerate(x.shape)]

    def element(*i: Index) -> Expr:
        return x[tuple(index // repeats if d == along else index for d, index in enumerate(i))]

    return compute(shape, element, name)


ORDERS = ("DCR", "CRD")
"""Whether the place in a block counts before the channel, or after it."""


def _check_blocks(operator: str, x: Tensor, block: int, order: str) -> None:
    check_rank(operator, x, 4, "N, C, H, W")
    if not is_count(block) or not block:
        raise TeError(f"{operator}: the block is {block!r}, expected an integer of at least 1")
    if not isinstance(order, str) or order not in ORDERS:
        raise TeError(f"{operator}: unknown order {order!r} (there are {', '.join(ORDERS)})")


def depth_to_space(x: Tensor, block: int, order: str = "DCR", name: str = "depth_to_space") -> Tensor:
    """Y[n, c, h*b + i, w*b + j] = X[n, (i*b + j)*C + c, h, w], for blocks of b x b; or X[n, (c*b + i)*b + j, h, w].

    The latter in the order CRD, the former in DCR. Raises TeError.
    Elsewhere: ONNX DepthToSpace; torch pixel_shuffle, which is CRD.
    """
    _check_blocks("depth_to_space", x, block, order)
    batch, depth, height, width = x.shape
    if depth % (block * block):
        raise TeError(f"depth_to_space: blocks of {block} x {block} do not divide the {depth} channels of '{x.name}'")
    channels = depth // (block * block)

    def element(n: Index, c: Index, h: Index, w: Index) -> Expr:
        place = (h % block) * block + w % block
        channel = place * channels + c if order == "DCR" else c * (block * block) + place
        return x[n, channel, h // block, w // block]

    return compute((batch, channels, height * block, width * block), element, name)


def space_to_depth(x: Tensor, block: int, order: str = "DCR", name: str = "space_to_depth") -> Tensor:
    """Y[n, (i*b + j)*C + c, h, w], or Y[n, (c*b + i)*b + j, h, w] = X[n, c, h*b + i, w*b + j], for blocks of b x b.

    The latter in the order CRD, the former in DCR. Raises TeError.
    Elsewhere: ONNX SpaceToDepth; torch pixel_unshuffle, which is CRD.
    """
    _check_blocks("space_to_depth", x, block, order)
    batch, channels, height, width = x.shape
    if height % block or width % block:
        raise TeError(f"space_to_depth: blocks of {block} do not divide the image {height} x {width} of '{x.name}'")

    def element(n: Index, k: Index, h: Index, w: Index) -> Expr:
        place, c = (k // channels, k % channels) if order == "DCR" else (k % (block * block), k // (block * block))
        return x[n, c, h * block + place // block, w * block + place % block]

    return compute((batch, channels * block * block, height // block, width // block), element, name)


def tril(x: Tensor, diagonal: int = 0, name: str = "tril") -> Tensor:
    """Y[..., i, j] = X[..., i, j] where j - i <= diagonal, else 0. Raises TeError."""
    return _triangle("tril", x, diagonal, name)


def triu(x: Tensor, diagonal: int = 0, name: str = "triu") -> Tensor:
    """Y[..., i, j] = X[..., i, j] where j - i >= diagonal, else 0. Raises TeError."""
    return _triangle("triu", x, diagonal, name)


def _triangle(operator: str, x: Tensor, diagonal: int, name: str) -> Tensor:
    if check_tensor(operator, x).rank < 2:
        raise TeError(f"{operator}: '{x.name}' has shape {x.shape}, expected at least 2 dimensions")
    if isinstance(diagonal, bool) or not isinstance(diagonal, int):
        raise TeError(f"{operator}: the diagonal is {diagonal!r}, expected an integer")
    relation = "<=" if operator == "tril" else ">="
    return compute(x.shape, lambda *i: e.select(compared(i[-1] - i[-2], relation, diagonal), x[i], 0), name)


def one_hot(
    indices: Tensor,
    depth: int,
    on: float = 1,
    off: float = 0,
    axis: int = -1,
    dtype: str = "i64",
    name: str = "one_hot",
) -> Tensor:
    """Y[i..., k, j...] = on where I[i..., j...] is k, or k - depth, else off; k has the place `axis`.

    Raises TeError.
    """
    rank = check_tensor("one_hot", indices).rank + 1
    if indices.dtype not in INDICES:
        raise TeError(f"one_hot: the indices '{indices.name}' are {indices.dtype}, not integers")
    if not is_count(depth) or not depth:
        raise TeError(f"one_hot: the depth is {depth!r}, expected an integer of at least 1")
    if isinstance(axis, bool) or not isinstance(axis, int) or not -rank <= axis < rank:
        raise TeError(f"one_hot: {axis!r} is no place among {rank} dimensions")
    along, values = axis % rank, (e.const(on, dtype), e.const(off, dtype))

    def element(*i: Index) -> Expr:
        given, k = e.cast(indices[(*i[:along], *i[along + 1 :])], "i64"), e.cast(i[along], "i64")
        meets = e.equal(given, k)
        meets = meets | e.equal(given + depth, k) if has_sign(indices.dtype) else meets
        return e.select(meets, *values)

    return compute((*indices.shape[:along], depth, *indices.shape[along:]), element, name)


def reverse_sequence(
    x: Tensor, lengths: Tensor, time_axis: int = 0, batch_axis: int = 1, name: str = "reverse_sequence"
) -> Tensor:
    """Y = X with the first lengths[b] elements along the time axis in reverse order, for each b of the batch axis.

    Raises TeError. Elsewhere: ONNX ReverseSequence.
    """
    operator = "reverse_sequence"
    time, batch = (check_axis(operator, check_tensor(operator, x), a) for a in (time_axis, batch_axis))
    if time == batch or check_tensor(operator, lengths).shape != (x.shape[batch],) or lengths.dtype not in INDICES:
        raise TeError(
            f"{operator}: the lengths '{lengths.name}' are {lengths.dtype} of shape {lengths.shape}, expected "
            f"integers, one for each of the {x.shape[batch]} along the batch axis, which is not the time axis"
        )

    def place(b: Index, t: Index) -> Expr:
        length, at = e.cast(lengths[b], "i64"), e.cast(t, "i64")
        return e.select(at < length, length - 1 - at, at)

    places = compute((x.shape[batch], x.shape[time]), place, f"{name}.places")

    def at(i: Sequence[Index]) -> list[object]:
        return [places[i[batch], i[time]] if d == time else index for d, index in enumerate(i)]

    return gather(x.shape, lambda *i: x.at(*at(i)), name)  # type: ignore[arg-type]


def _rows(operator: str, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, rank: int) -> Window:
    if rank not in SPATIAL:
        raise TeError(f"{operator}: an image has 1 to 3 dimensions, not {rank}")
    return window(operator, several(operator, "kernel", kernel, 1, rank), stride, padding, dilation)


def _digits(index: Index, sizes: Sequence[int]) -> list[Index]:
    """An index in row-major order as one for each dimension."""
    digits = []
    for size in reversed(sizes):
        digits.append(index % size)
        index = index // size
    return digits[::-1]


def unfold(
    x: Tensor, kernel: Sizes, stride: Sizes = 1, padding: Sizes = 0, dilation: Sizes = 1, name: str = "unfold"
) -> Tensor:
    """Y[n, (c, tap), at] = X[n, c, at*stride + tap*dilation - before], zero outside: windows as columns.

    x is [N, C, and an image of one to three dimensions]; (c, tap) and at are in row-major order. Raises TeError.
    Elsewhere: torch unfold, im2col.
    """
    over = _rows("unfold", kernel, stride, padding, dilation, check_tensor("unfold", x).rank - 2)
    counts, source, taps = over.positions(x.shape[2:]), over.source(x, 0), math.prod(over.sizes)

    def element(n: Index, row: Index, column: Index) -> Expr:
        steps = zip(
            _digits(column, counts),
            over.strides,
            _digits(row % taps, over.sizes),
            over.dilations,
            over.before,
            strict=True,
        )
        places = [at * stride + tap * step - before for at, stride, tap, step, before in steps]
        return source[(n, row // taps, *places)]

    return compute((x.shape[0], x.shape[1] * taps, math.prod(counts)), element, name)


def fold(
    x: Tensor,
    size: Sizes,
    kernel: Sizes,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    name: str = "fold",
) -> Tensor:
    """Y[n, c, at] = the sum of X[n, (c, tap), (at + before - tap*dilation) / stride] where that is whole.

    x is as unfold gives it of an image of that size, of which it is the transpose. Sums are formed in f32 of narrower
    floats. Raises TeError. Elsewhere: torch fold; ONNX Col2Im.
    """
    check_rank("fold", x, 3, "N, C and taps, positions")
    rank = len(size) if isinstance(size, tuple | list) else len(kernel) if isinstance(kernel, tuple | list) else 2
    over = _rows("fold", kernel, stride, padding, dilation, rank)
    sizes = several("fold", "size", size, 1, rank)
    counts, taps = over.positions(sizes), math.prod(over.sizes)
    if x.shape[1] % taps or x.shape[2] != math.prod(counts):
        raise TeError(
            f"fold: '{x.name}' has shape {x.shape}, expected channels times {taps} taps, and {math.prod(counts)} "
            "positions"
        )
    wide = accumulator(x.dtype)

    def element(n: Index, c: Index, *at: Index) -> Reduce:
        row: Index = c
        column: Index | int = 0
        holds: list[Condition] = []
        for i, d in zip(at, range(rank), strict=True):
            row = row * over.sizes[d] + over.taps[d]
            offset = i + over.before[d] - over.taps[d] * over.dilations[d]
            place = offset // over.strides[d]
            holds += [place >= 0, place < counts[d]]
            holds += [compared(offset % over.strides[d], "==", 0)] if over.strides[d] > 1 else []
            column = column * counts[d] + place
        return e.sum(e.cast(e.select(e.all_of(*holds), x[n, row, column], 0), wide), axis=over.taps)

    shape = (x.shape[0], x.shape[1] // taps, *sizes)
    label = name if wide == x.dtype else f"{name}.wide"
    return rounded(compute(shape, element, label, axes=("n", "c", *SPATIAL[rank])), x.dtype, name)
