"""Permutations and selections of elements by index arithmetic: roll, depth_to_space, tril, unfold, one_hot."""

from __future__ import annotations

import math
from collections.abc import Sequence

from compiler.support.errors import TeError
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr, Reduce
from compiler.te.gather import gather
from compiler.te.index import Condition, Index, compared
from compiler.te.nn.common import Sizes, accumulator, astype, check_axis, check_rank, check_tensor, is_count, per_dim
from compiler.te.nn.window import SPATIAL, Window, window
from compiler.te.tensor import Tensor
from compiler.types.dtypes import INDICES, has_sign


def roll(x: Tensor, shift: Sizes, axis: Sizes, name: str = "roll") -> Tensor:
    """Y[..., i, ...] = X[..., (i - shift) mod extent, ...], along one axis or several, each with a shift of its own.
    Raises TeError for other arguments."""
    check_tensor("roll", x)
    axes = [check_axis("roll", x, a) for a in (axis if isinstance(axis, tuple | list) else [axis])]
    shifts: list[object] = list(shift) if isinstance(shift, tuple | list) else [shift]
    are_integers = all(isinstance(n, int) and not isinstance(n, bool) for n in shifts)
    if not are_integers or len(shifts) != len(axes) or len(set(axes)) != len(axes):
        raise TeError(f"roll: {shift!r} are not integers, one for each of the axes {axis!r} of '{x.name}'")
    shift_of = {d: n for d, n in zip(axes, shifts, strict=True) if isinstance(n, int)}

    def element(*i: Index) -> Expr:
        moved_dims = {d: (i[d] + -n % x.shape[d]) % x.shape[d] for d, n in shift_of.items()}
        return x[tuple(moved_dims.get(d, index) for d, index in enumerate(i))]

    return compute(x.shape, element, name)


def repeat(x: Tensor, repeats: int, axis: int, name: str = "repeat") -> Tensor:
    """Y[..., i, ...] = X[..., i // repeats, ...] along one axis. Raises TeError for other arguments."""
    dim = check_axis("repeat", check_tensor("repeat", x), axis)
    if not is_count(repeats) or not repeats:
        raise TeError(f"repeat: {repeats!r} is not an integer of at least 1")
    shape = [n * repeats if d == dim else n for d, n in enumerate(x.shape)]

    def element(*i: Index) -> Expr:
        return x[tuple(index // repeats if d == dim else index for d, index in enumerate(i))]

    return compute(shape, element, name)


ORDERS = ("DCR", "CRD")
"""The order of digits in the depth: DCR has the position in the block first, CRD the channel."""


def _check_blocks(operator: str, x: Tensor, block: int, order: str) -> None:
    check_rank(operator, x, 4, "N, C, H, W")
    if not is_count(block) or not block:
        raise TeError(f"{operator}: the block is {block!r}, expected an integer of at least 1")
    if not isinstance(order, str) or order not in ORDERS:
        raise TeError(f"{operator}: unknown order {order!r} (there are {', '.join(ORDERS)})")


def depth_to_space(x: Tensor, block: int, order: str = "DCR", name: str = "depth_to_space") -> Tensor:
    """Y[n, c, h*b + i, w*b + j] = X[n, (i*b + j)*C + c, h, w] (DCR), or X[n, (c*b + i)*b + j, h, w] (CRD).

    x is [N, b*b*C, H, W], the result [N, C, H*b, W*b], for b = `block`. Raises TeError for other arguments. Elsewhere:
    ONNX DepthToSpace; torch pixel_shuffle, which is CRD.
    """
    _check_blocks("depth_to_space", x, block, order)
    batch, depth, height, width = x.shape
    if depth % (block * block):
        raise TeError(f"depth_to_space: blocks of {block} x {block} do not divide the {depth} channels of '{x.name}'")
    channels = depth // (block * block)

    def element(n: Index, c: Index, h: Index, w: Index) -> Expr:
        position = (h % block) * block + w % block
        channel = position * channels + c if order == "DCR" else c * (block * block) + position
        return x[n, channel, h // block, w // block]

    return compute((batch, channels, height * block, width * block), element, name)


def space_to_depth(x: Tensor, block: int, order: str = "DCR", name: str = "space_to_depth") -> Tensor:
    """Y[n, (i*b + j)*C + c, h, w] (DCR), or Y[n, (c*b + i)*b + j, h, w] (CRD) = X[n, c, h*b + i, w*b + j].

    x is [N, C, H*b, W*b], the result [N, b*b*C, H, W], for b = `block`. Raises TeError for other arguments. Elsewhere:
    ONNX SpaceToDepth; torch pixel_unshuffle, which is CRD.
    """
    _check_blocks("space_to_depth", x, block, order)
    batch, channels, height, width = x.shape
    if height % block or width % block:
        raise TeError(f"space_to_depth: blocks of {block} do not divide the image {height} x {width} of '{x.name}'")

    def element(n: Index, k: Index, h: Index, w: Index) -> Expr:
        position, c = (k // channels, k % channels) if order == "DCR" else (k % (block * block), k // (block * block))
        return x[n, c, h * block + position // block, w * block + position % block]

    return compute((batch, channels * block * block, height // block, width // block), element, name)


def tril(x: Tensor, diagonal: int = 0, name: str = "tril") -> Tensor:
    """Y[..., i, j] = X[..., i, j] where j - i <= diagonal, else 0. Raises TeError for other arguments."""
    return _triangle("tril", x, diagonal, name)


def triu(x: Tensor, diagonal: int = 0, name: str = "triu") -> Tensor:
    """Y[..., i, j] = X[..., i, j] where j - i >= diagonal, else 0. Raises TeError for other arguments."""
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
    """Y[i..., k, j...] = on if I[i..., j...] is k or k - depth, else off; k < depth is dimension `axis` of the result.

    indices are integers; on, off and the result are of `dtype`. Raises TeError for other arguments.
    """
    rank = check_tensor("one_hot", indices).rank + 1
    if indices.dtype not in INDICES:
        raise TeError(f"one_hot: the indices '{indices.name}' are {indices.dtype}, not integers")
    if not is_count(depth) or not depth:
        raise TeError(f"one_hot: the depth is {depth!r}, expected an integer of at least 1")
    if isinstance(axis, bool) or not isinstance(axis, int) or not -rank <= axis < rank:
        raise TeError(f"one_hot: {axis!r} is no place among {rank} dimensions")
    dim, values = axis % rank, (e.const(on, dtype), e.const(off, dtype))

    def element(*i: Index) -> Expr:
        index, k = e.cast(indices[(*i[:dim], *i[dim + 1 :])], "i64"), e.cast(i[dim], "i64")
        is_on = e.equal(index, k)
        is_on = is_on | e.equal(index + depth, k) if has_sign(indices.dtype) else is_on
        return e.select(is_on, *values)

    return compute((*indices.shape[:dim], depth, *indices.shape[dim:]), element, name)


def reverse_sequence(
    x: Tensor, lengths: Tensor, time_axis: int = 0, batch_axis: int = 1, name: str = "reverse_sequence"
) -> Tensor:
    """Y = X with the first lengths[b] elements along the time axis reversed, for each b along the batch axis.

    lengths are integers, one for each b, at most the extent of the time axis; reads beyond it yield 0. Raises TeError
    for other arguments. Elsewhere: ONNX ReverseSequence.
    """
    operator = "reverse_sequence"
    time, batch = (check_axis(operator, check_tensor(operator, x), a) for a in (time_axis, batch_axis))
    if time == batch or check_tensor(operator, lengths).shape != (x.shape[batch],) or lengths.dtype not in INDICES:
        raise TeError(
            f"{operator}: the lengths '{lengths.name}' are {lengths.dtype} of shape {lengths.shape}, expected "
            f"integers, one for each of the {x.shape[batch]} along the batch axis, which is not the time axis"
        )

    def reversed_index(b: Index, t: Index) -> Expr:
        length, index = e.cast(lengths[b], "i64"), e.cast(t, "i64")
        return e.select(index < length, length - 1 - index, index)

    indices = compute((x.shape[batch], x.shape[time]), reversed_index, f"{name}.places")

    def source_index(i: Sequence[Index]) -> list[object]:
        return [indices[i[batch], i[time]] if d == time else index for d, index in enumerate(i)]

    return gather(x.shape, lambda *i: x.at(*source_index(i)), name)  # type: ignore[arg-type]


def _image_window(operator: str, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, rank: int) -> Window:
    if rank not in SPATIAL:
        raise TeError(f"{operator}: an image has 1 to 3 dimensions, not {rank}")
    return window(operator, per_dim(operator, "kernel", kernel, 1, rank), stride, padding, dilation)


def _digits(index: Index, sizes: Sequence[int]) -> list[Index]:
    """Split a row-major index into one index a dimension: 7 in (2, 4) -> [1, 3]."""
    digits = []
    for size in reversed(sizes):
        digits.append(index % size)
        index = index // size
    return digits[::-1]


def unfold(
    x: Tensor, kernel: Sizes, stride: Sizes = 1, padding: Sizes = 0, dilation: Sizes = 1, name: str = "unfold"
) -> Tensor:
    """Y[n, (c, tap), i] = X[n, c, i*stride + tap*dilation - before], zero in the padding: windows as columns.

    x is [N, C, and an image of one to three dimensions]; (c, tap) and i are row-major indices. Raises TeError for other
    arguments. Elsewhere: torch unfold, im2col.
    """
    windows = _image_window("unfold", kernel, stride, padding, dilation, check_tensor("unfold", x).rank - 2)
    counts, padded, taps = windows.output_extents(x.shape[2:]), windows.padded_input(x, 0), math.prod(windows.sizes)

    def element(n: Index, row: Index, column: Index) -> Expr:
        steps = zip(
            _digits(column, counts),
            windows.strides,
            _digits(row % taps, windows.sizes),
            windows.dilations,
            windows.before,
            strict=True,
        )
        input_index = [i * stride + tap * step - before for i, stride, tap, step, before in steps]
        return padded[(n, row // taps, *input_index)]

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
    """Y[n, c, i] = sum over taps of X[n, (c, tap), (i + before - tap*dilation) / stride], for integer quotients.

    The transpose of unfold of an image of that size: x has the shape of unfold's result; the image has two dimensions
    if size and kernel are integers. Sums are in f32 for narrower floats. Raises TeError for other arguments. Elsewhere:
    torch fold; ONNX Col2Im.
    """
    check_rank("fold", x, 3, "N, C and taps, positions")
    rank = len(size) if isinstance(size, tuple | list) else len(kernel) if isinstance(kernel, tuple | list) else 2
    windows = _image_window("fold", kernel, stride, padding, dilation, rank)
    sizes = per_dim("fold", "size", size, 1, rank)
    counts, taps = windows.output_extents(sizes), math.prod(windows.sizes)
    if x.shape[1] % taps or x.shape[2] != math.prod(counts):
        raise TeError(
            f"fold: '{x.name}' has shape {x.shape}, expected channels times {taps} taps, and {math.prod(counts)} "
            "positions"
        )
    acc_dtype = accumulator(x.dtype)

    def element(n: Index, c: Index, *output: Index) -> Reduce:
        row: Index = c
        column: Index | int = 0
        conditions: list[Condition] = []
        for i, d in zip(output, range(rank), strict=True):
            row = row * windows.sizes[d] + windows.taps[d]
            offset = i + windows.before[d] - windows.taps[d] * windows.dilations[d]
            position = offset // windows.strides[d]
            conditions += [position >= 0, position < counts[d]]
            conditions += [compared(offset % windows.strides[d], "==", 0)] if windows.strides[d] > 1 else []
            column = column * counts[d] + position
        return e.sum(e.cast(e.select(e.all_of(*conditions), x[n, row, column], 0), acc_dtype), axis=windows.taps)

    shape = (x.shape[0], x.shape[1] // taps, *sizes)
    label = name if acc_dtype == x.dtype else f"{name}.wide"
    return astype(compute(shape, element, label, axes=("n", "c", *SPATIAL[rank])), x.dtype, name)
