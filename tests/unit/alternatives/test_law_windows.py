"""The law windows: folds at the offsets of a box are reductions over windows, other folds stay."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from itertools import product
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from compiler import te
from compiler.alternatives import windows
from compiler.alternatives.boxes import box_of
from compiler.alternatives.law import Conditions, Form
from compiler.graph.tree import Compute, Graph
from compiler.graph.write import write
from compiler.interpret.te import evaluate
from compiler.types.machines import MACHINES
from tests.planted import Plant, in_place_of
from tests.programs import canonical_graph
from tests.sample import some

CONTRACT = Conditions(MACHINES["avx2"], "contract")
STRICT = replace(CONTRACT, policy="strict")
nn: Any = te.nn


def graph_of(inputs: Sequence[te.Tensor], result: te.Tensor) -> Graph:
    return canonical_graph(te.function("f", inputs, result))


def forms(graph: Graph, conditions: Conditions = CONTRACT) -> list[Form]:
    return list(windows.WINDOWS.forms(graph, conditions))


def extents(graph: Graph) -> list[int]:
    """Of the reduce axes of the last reduction."""
    (*_, last) = [node for node in graph.nodes if isinstance(node, Compute) and node.block.combiners]
    return sorted(axis.size for axis in last.block.axes[last.block.spatial :])


@pytest.mark.parametrize("seed", some(range(20)))
def test_a_box_is_found_in_any_order(seed: int) -> None:
    rng = random.Random(seed)
    sides = [(rng.randint(2, 3), 10**n * rng.choice((1, 2)), rng.choice((-1, 0, 3))) for n in range(rng.randint(1, 3))]
    steps = [range(count) for count, *_ in sides]
    points = {
        tuple(sum(t * side[d] for t, side in zip(at, sides, strict=True)) for d in (1, 2)) for at in product(*steps)
    }
    box = box_of(rng.sample(sorted(points), len(points)))
    assert box is not None and sorted(side.extent for side in box.sides) == sorted(count for count, *_ in sides)
    assert box_of(sorted(points)[1:]) is None or len(points) < 5
    assert box_of([*points, min(points)]) is None


def folded(rng: random.Random, parts: Sequence[te.Tensor], combine: Any) -> te.Tensor:
    """A fold of tensors in a random order and under random parentheses."""
    left = rng.sample(parts, len(parts))
    while len(left) > 1:
        at = rng.randrange(len(left) - 1)
        left[at : at + 2] = [combine(left[at], left[at + 1])]
    return left[0]


COMBINE = {"f32": (nn.add, nn.maximum, nn.minimum), "i32": (nn.add, nn.maximum), "u8": (nn.maximum, nn.minimum)}


def pooled(rng: random.Random) -> tuple[list[te.Tensor], list[te.Tensor], Any]:
    """Slices of an image with strides, maybe padded, and what folds them."""
    dtype = rng.choice(list(COMBINE))
    combine = rng.choice(COMBINE[dtype])
    rows, columns = rng.choice(((2, 2), (3, 3), (2, 3), (1, 2), (3, 1)))
    stride = rng.randint(2, 3)
    x = te.placeholder((2, 3 * stride + 3, 3 * stride + 3), dtype, name="X")
    source = nn.pad(x, [(0, 0), (1, 0), (0, 1)], value=0) if rng.random() < 0.4 else x
    parts = [
        te.compute((2, 3, 3), lambda c, i, j, p=p, q=q: source[c, i * stride + p, j * stride + q], name=f"s{p}{q}")
        for p, q in product(range(rows), range(columns))
    ]
    return [x], parts, combine


def convolved(rng: random.Random) -> tuple[list[te.Tensor], list[te.Tensor], Any]:
    """Products of shifted images with taps of weights, maybe padded, flipped or with a stride."""
    dtype = rng.choice(("f32", "i32"))
    rows, columns = rng.choice(((3, 3), (1, 3), (2, 2)))
    stride, pad, is_flipped = rng.randint(1, 2), rng.randint(0, 1), rng.random() < 0.3
    channels, filters, size = rng.randint(2, 3), 8, 3
    x = te.placeholder((channels, size * stride + 2, size * stride + 2), dtype, name="X")
    w = te.placeholder((filters, channels, rows, columns), dtype, name="W")
    padded = nn.pad(x, [(0, 0), (pad, pad), (pad, pad)]) if pad else x
    parts = []
    for p, q in product(range(rows), range(columns)):
        c = te.reduce_axis(channels, "c")
        tap = (rows - 1 - p, columns - 1 - q) if is_flipped else (p, q)

        def element(o: Any, i: Any, j: Any, p: int = p, q: int = q, c: Any = c, tap: Any = tap) -> Any:
            factors = padded[c, i * stride + p, j * stride + q], w[(o, c, *tap)]
            return te.sum(factors[p % 2] * factors[1 - p % 2], axis=c)

        parts.append(te.compute((filters, size, size), element, name=f"p{p}{q}"))
    return [x, w], parts, nn.add


def split(rng: random.Random) -> tuple[list[te.Tensor], list[te.Tensor], Any]:
    """Products of parts of the columns of one matrix with parts of the rows of another one."""
    count, k = rng.randint(2, 4), rng.randint(2, 5)
    a, b = te.placeholder((8, count * k), name="A"), te.placeholder((count * k, 9), name="B")
    cut = [(at * k, at * k + k) for at in range(count)]
    parts = [nn.matmul(nn.slice(a, (0, s), (8, e)), nn.slice(b, (s, 0), (e, 9))) for s, e in cut]
    return [a, b], parts, nn.add


KINDS = (pooled, convolved, split)


def shows_fault(seed: int) -> bool:
    """Whether a random fold has no form that is one reduction, or one of another value."""
    rng = random.Random(seed)
    inputs, parts, combine = KINDS[seed % len(KINDS)](rng)
    result = folded(rng, parts, combine)
    graph = graph_of(inputs, nn.mul(result, 3) if rng.random() < 0.3 else result)
    numbers, dtypes = np.random.default_rng(seed), {"f32": np.float32, "i32": np.int32, "u8": np.uint8}
    arrays = [numbers.integers(0, 9, tensor.shape).astype(dtypes[tensor.dtype]) for tensor in inputs]
    made = forms(graph)
    return not made or not np.array_equal(*(evaluate(ModuleOp([write(g)]), arrays)[0] for g in (graph, made[0].graph)))


@pytest.mark.parametrize("seed", some(range(24)))
def test_random_folds_keep_their_values(seed: int) -> None:
    assert not shows_fault(seed)


def slices(x: te.Tensor, offsets: Sequence[int], stride: int = 2) -> list[te.Tensor]:
    return [te.compute((4,), lambda i, p=p: x[i * stride + p], name=f"s{p}") for p in offsets]


def test_offsets_that_are_no_box_stay() -> None:
    """Some missing, some twice, of other tensors. Neighbours in one compute are no gain."""
    x, y = te.placeholder((12,), name="X"), te.placeholder((12,), name="Y")
    assert len(forms(graph_of([x, y], reduce(nn.maximum, slices(x, (0, 1, 2)))))) == 1
    others = [
        [*slices(x, (0, 1, 3))],
        [*slices(x, (0, 1)), *slices(y, (2,))],
        [nn.exp(part) if n else part for n, part in enumerate(slices(x, (0, 1)))],
        slices(x, (0, 1, 2), 1),
    ]
    for parts in others:
        assert not forms(graph_of([x, y], reduce(nn.maximum, parts)))
    z = te.placeholder((515,), name="Z")
    (form,) = forms(graph_of([z], te.compute((512,), lambda i: z[i] + z[i + 1] + z[i + 2] + z[i + 3], name="four")))
    assert form.gain <= 1
    a, b = slices(x, (0, 1))
    assert not forms(graph_of([x, y], nn.add(nn.add(a, b), a)))


def test_what_is_read_elsewhere_stays() -> None:
    """A product that another compute reads, too; a sum of few results."""
    a, b = te.placeholder((8, 8), name="A"), te.placeholder((8, 9), name="B")
    parts = [nn.matmul(nn.slice(a, (0, s), (8, s + 4)), nn.slice(b, (s, 0), (s + 4, 9))) for s in (0, 4)]
    total = nn.add(*parts)
    assert len(forms(graph_of([a, b], total))) == 1
    assert not forms(graph_of([a, b], nn.mul(total, nn.exp(parts[0]))))
    x = te.placeholder((64,), name="X")
    assert not forms(graph_of([x], nn.add(nn.sum(nn.slice(x, (0,), (32,)), 0), nn.sum(nn.slice(x, (32,), (64,)), 0))))


def test_sums_of_floats_stay_under_strict() -> None:
    x, n = te.placeholder((12,), name="X"), te.placeholder((12,), "i32", name="N")
    assert not forms(graph_of([x], reduce(nn.add, slices(x, (0, 1)))), STRICT)
    assert forms(graph_of([n], reduce(nn.add, slices(n, (0, 1)))), STRICT)
    assert forms(graph_of([x], reduce(nn.maximum, slices(x, (0, 1)))), STRICT)
    half = te.placeholder((12,), "f16", name="H")
    assert not forms(graph_of([half], reduce(nn.add, slices(half, (0, 1)))))


def test_maxima_keep_nan() -> None:
    x = te.placeholder((12,), name="X")
    graph = graph_of([x], reduce(nn.maximum, slices(x, (0, 1))))
    array = np.array([-1.0, 0.0, 3.0, np.nan, -np.inf, -np.inf, np.nan, 1, 0, 0, 0, 0], np.float32)
    written, made = (evaluate(ModuleOp([write(g)]), [array])[0] for g in (graph, forms(graph)[0].graph))
    assert np.array_equal(written, made, equal_nan=True)


def test_a_sum_over_channels_of_taps_is_a_convolution() -> None:
    """Nine products in one body, and what follows the sum."""
    x, w, c = te.placeholder((4, 10), name="X"), te.placeholder((16, 4, 3), name="W"), te.reduce_axis(4, "c")
    y = te.compute(
        (16, 8), lambda o, i: te.sum(x[c, i] * w[o, c, 0] + x[c, i + 1] * w[o, c, 1] + x[c, i + 2] * w[o, c, 2], axis=c)
    )
    (form,) = forms(graph_of([x, w], nn.relu(y)))
    assert extents(form.graph) == [3, 4] and form.where.endswith("reduces windows of 3 elements")


def bounds_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """windows: conditions are not looked at"""
    monkeypatch.setattr(windows, "_bounds", lambda access, source: ())


@in_place_of(windows, "box_of")
def sides_swapped(right: Any, points: Any) -> Any:
    """boxes: the step of one side is that of another one"""
    box = right(points)
    if box is None or len(box.sides) < 2:
        return box
    steps = [side.direction for side in box.sides][::-1]
    return replace(box, sides=tuple(replace(s, direction=d) for s, d in zip(box.sides, steps, strict=True)))


def expressions_mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    """windows: terms may be any expressions of the same reads"""
    monkeypatch.setattr(windows, "_matches", lambda first, other, a, b, pairs: pairs.update({0: 0, 1: 1}) or True)


@pytest.mark.parametrize("fault", [bounds_lost, sides_swapped, expressions_mixed], ids=lambda fault: fault.__name__)
def test_a_planted_fault_is_seen(fault: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as planted:
        fault(planted)
        try:
            seen = any(map(shows_fault, range(24)))
            test_offsets_that_are_no_box_stay()
        except (AssertionError, IndexError, KeyError):
            seen = True
    assert seen, fault.__doc__
