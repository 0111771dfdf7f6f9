"""Elements moved by arithmetic on their places, padding, and what reads at indices with a sign."""

from __future__ import annotations

import random
from functools import partial
from itertools import product

import numpy as np

from compiler import te
from tests.operators.catalogue import (
    EVERY,
    INTEGERS,
    NUMBERS,
    Array,
    Operator,
    Parameters,
    alike,
    extent,
    of_one,
    shape,
)

P = te.placeholder


def _padded(rng: random.Random) -> Parameters:
    """Widths, some below 0, that leave something of each dimension."""
    extents = shape(rng, most=3, elements=60)
    widths = []
    for n in extents:
        pair = [rng.randint(-2, 3) for _ in range(2)]
        widths.append(tuple(pair) if n + min(pair[0], 0) + min(pair[1], 0) > 0 else (0, 1))
    mode = rng.choice(["constant", "constant", "edge", "reflect", "wrap"])
    return {"shape": extents, "widths": widths, "value": rng.choice([0, 2]), "mode": mode}


def _pad_reference(p: Parameters, x: Array) -> Array:
    cut = tuple(slice(max(0, -b), n - max(0, -a)) for n, (b, a) in zip(x.shape, p["widths"], strict=True))
    widths = [(max(0, b), max(0, a)) for b, a in p["widths"]]
    value = {"constant_values": p["value"]} if p["mode"] == "constant" else {}
    return np.pad(x[cut], widths, p["mode"], **value)


def _rolled(rng: random.Random) -> Parameters:
    extents = shape(rng)
    axes = tuple(rng.sample(range(len(extents)), rng.randint(1, len(extents))))
    return {"shape": extents, "shift": tuple(rng.randint(-9, 9) for _ in axes), "axis": axes}


def _repeated(rng: random.Random) -> Parameters:
    extents = shape(rng)
    return {"shape": extents, "repeats": rng.randint(1, 3), "axis": rng.randrange(-len(extents), len(extents))}


def _blocks(deep: bool, rng: random.Random) -> Parameters:
    block, channels = rng.randint(1, 3), extent(rng, 3)
    sizes = (extent(rng, 3), extent(rng, 4))
    actual = (channels * block**2, *sizes) if deep else (channels, *(n * block for n in sizes))
    return {"shape": (extent(rng, 2), *actual), "block": block, "order": rng.choice(["DCR", "CRD"])}


def _to_space(p: Parameters, x: Array) -> Array:
    n, depth, h, w = x.shape
    b, c = p["block"], depth // p["block"] ** 2
    if p["order"] == "DCR":
        return x.reshape(n, b, b, c, h, w).transpose(0, 3, 4, 1, 5, 2).reshape(n, c, h * b, w * b)
    return x.reshape(n, c, b, b, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(n, c, h * b, w * b)


def _to_depth(p: Parameters, x: Array) -> Array:
    n, c, height, width = x.shape
    b = p["block"]
    parts = x.reshape(n, c, height // b, b, width // b, b)
    order = (0, 3, 5, 1, 2, 4) if p["order"] == "DCR" else (0, 1, 3, 5, 2, 4)
    return parts.transpose(order).reshape(n, c * b * b, height // b, width // b)


def _triangle(rng: random.Random) -> Parameters:
    extents = shape(rng, least=2)
    return {"shape": extents, "diagonal": rng.randint(-extents[-2], extents[-1] - 1)}


def _hot(rng: random.Random) -> Parameters:
    extents = shape(rng, 0, 2, 30)
    axis = rng.randint(-len(extents) - 1, len(extents))
    return {"shape": extents, "depth": rng.randint(1, 9), "axis": axis, "on": rng.choice([1, 3]), "off": 0}


def _hot_reference(p: Parameters, x: Array) -> Array:
    places = np.where(x < 0, x + p["depth"], x)
    return np.moveaxis(np.where(places[..., None] == np.arange(p["depth"]), p["on"], p["off"]), -1, p["axis"])


def _turned(rng: random.Random) -> Parameters:
    extents = shape(rng, least=2)
    time, batch = rng.sample(range(len(extents)), 2)
    return {"shape": extents, "time_axis": time, "batch_axis": batch}


def _turned_build(dtype: str, p: Parameters) -> te.Function:
    x, lengths = P(p["shape"], dtype, name="X"), P((p["shape"][p["batch_axis"]],), "i32", name="lengths")
    made = te.nn.reverse_sequence(x, lengths, p["time_axis"], p["batch_axis"])
    return te.function("reverse_sequence", [x, lengths], made)


def _turned_inputs(function: te.Function, seed: int) -> list[Array]:
    from tests.operators.catalogue import random_inputs

    x, lengths = random_inputs(function, seed)
    most = 1 + min(function.inputs[0].shape)
    return [x, np.abs(lengths) % most]


def _turned_reference(p: Parameters, x: Array, lengths: Array) -> Array:
    moved = np.moveaxis(x, (p["batch_axis"], p["time_axis"]), (0, 1)).copy()
    for b, length in enumerate(lengths):
        moved[b, :length] = moved[b, :length][::-1]
    return np.moveaxis(moved, (0, 1), (p["batch_axis"], p["time_axis"]))


def _windows(rng: random.Random) -> Parameters:
    rank = rng.randint(1, 2)
    kernel = tuple(rng.randint(1, 3) for _ in range(rank))
    dilation = tuple(rng.choice([1, 1, 2]) for _ in range(rank))
    padding = tuple(rng.choice([0, 0, 1, 2]) for _ in range(2 * rank))
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    image = tuple(span + rng.randint(0, 4) for span in spans)
    stride = tuple(rng.randint(1, 3) for _ in range(rank))
    actual = (extent(rng, 2), extent(rng, 3), *image)
    return {"shape": actual, "kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation}


def _places(p: Parameters) -> Array:
    """Where in the flat padded image each tap of each window is: [taps, positions]."""
    rank = len(p["kernel"])
    sizes = [n + p["padding"][d] + p["padding"][d + rank] for d, n in enumerate(p["shape"][2:])]
    starts = [
        range(0, n - dil * (k - 1), s)
        for n, k, s, dil in zip(sizes, p["kernel"], p["stride"], p["dilation"], strict=True)
    ]
    taps = product(*(range(0, k * d, d) for k, d in zip(p["kernel"], p["dilation"], strict=True)))
    return np.array(
        [[np.ravel_multi_index(np.add(at, tap), sizes) for at in product(*starts)] for tap in map(tuple, taps)]
    )


def _unfolded(p: Parameters, x: Array) -> Array:
    rank = len(p["kernel"])
    widths = [(0, 0), (0, 0), *((p["padding"][d], p["padding"][d + rank]) for d in range(rank))]
    flat = np.pad(x, widths).reshape(*x.shape[:2], -1)
    places = _places(p)
    return flat[:, :, places].reshape(x.shape[0], -1, places.shape[1])


def _fold(dtype: str, p: Parameters) -> te.Function:
    taps, positions = _places(p).shape
    x = P((p["shape"][0], p["shape"][1] * taps, positions), dtype, name="X")
    made = te.nn.fold(x, p["shape"][2:], p["kernel"], p["stride"], p["padding"], p["dilation"])
    return te.function("fold", [x], made)


def _folded(p: Parameters, x: Array) -> Array:
    rank = len(p["kernel"])
    sizes = [n + p["padding"][d] + p["padding"][d + rank] for d, n in enumerate(p["shape"][2:])]
    places = _places(p)
    flat = np.zeros((*p["shape"][:2], int(np.prod(sizes))), x.dtype)
    columns = x.reshape(*p["shape"][:2], *places.shape)
    for tap, at in np.ndindex(places.shape):
        flat[:, :, places[tap, at]] += columns[:, :, tap, at]
    cut = tuple(slice(p["padding"][d], p["padding"][d] + n) for d, n in enumerate(p["shape"][2:]))
    return flat.reshape(*p["shape"][:2], *sizes)[(slice(None), slice(None), *cut)]


def _nd(rng: random.Random) -> Parameters:
    extents = shape(rng, least=2, most=4)
    batch = rng.randint(0, 1)
    count = rng.randint(1, len(extents) - batch)
    own = tuple(extent(rng, 3) for _ in range(rng.randint(0, 1)))
    return {"x": extents, "indices": (*extents[:batch], *own, count), "batch": batch, "wrap": rng.random() < 0.5}


def _nd_build(dtype: str, p: Parameters) -> te.Function:
    x, indices = P(p["x"], dtype, name="X"), P(p["indices"], "i64", name="I")
    return te.function("gather_nd", [x, indices], te.nn.gather_nd(x, indices, p["batch"], wrap=p["wrap"]))


def _nd_reference(p: Parameters, x: Array, indices: Array) -> Array:
    output = np.zeros((*indices.shape[:-1], *x.shape[p["batch"] + indices.shape[-1] :]), x.dtype)
    for at in np.ndindex(indices.shape[:-1]):
        batch, row = at[: p["batch"]], indices[at]
        sizes = x.shape[p["batch"] : p["batch"] + len(row)]
        low = -1 if p["wrap"] else 0
        if all(low * n <= i < n for i, n in zip(row, sizes, strict=True)):
            output[at] = x[(*batch, *row)]
    return output


FAMILY = (
    Operator("pad", NUMBERS, _padded, of_one("pad", "widths", "value", "mode"), _pad_reference, None),
    Operator("roll", EVERY, _rolled, *alike("roll", "shift", "axis")),
    Operator("repeat", EVERY, _repeated, *alike("repeat", "repeats", "axis", torch="repeat_interleave")),
    Operator(
        "depth_to_space", EVERY, partial(_blocks, True), of_one("depth_to_space", "block", "order"), _to_space, None
    ),
    Operator(
        "space_to_depth", EVERY, partial(_blocks, False), of_one("space_to_depth", "block", "order"), _to_depth, None
    ),
    Operator("tril", EVERY, _triangle, *alike("tril", "diagonal")),
    Operator("triu", EVERY, _triangle, *alike("triu", "diagonal")),
    Operator("one_hot", INTEGERS, _hot, of_one("one_hot", "depth", "on", "off", "axis"), _hot_reference, None),
    Operator("reverse_sequence", EVERY, _turned, _turned_build, _turned_reference, None, _turned_inputs),
    Operator("unfold", NUMBERS, _windows, of_one("unfold", "kernel", "stride", "padding", "dilation"), _unfolded, None),
    Operator("fold", NUMBERS, _windows, _fold, _folded, None),
    Operator("gather_nd", EVERY, _nd, _nd_build, _nd_reference, None),
)
