"""Images channels last: the plan against brute force, the graph against the written one, and its schedules."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from compiler import build, te
from compiler.alternatives import GROUP_LAWS
from compiler.alternatives.law import Conditions
from compiler.alternatives.layouts import CHANNELS_LAST, choose_layouts, layout_costs
from compiler.alternatives.layouts.assignment import CostTable, cost, minimum_assignment
from compiler.alternatives.layouts.images import layout_sets
from compiler.alternatives.layouts.relaid import relaid
from compiler.alternatives.program import rewrite_graph
from compiler.dialects.dominance import verify_module
from compiler.driver.building import build_scheduled, source_of
from compiler.driver.parts.forms import with_forms
from compiler.driver.parts.groups import grouped_program
from compiler.driver.parts.partition import Partition, partition
from compiler.graph.canonical import canonical
from compiler.graph.tree import Graph
from compiler.graph.write import write
from compiler.interpret.te import evaluate
from compiler.targets.cuda.machines import MACHINES as GPUS
from compiler.types.machines import MACHINES, host
from compiler.types.policies import POLICIES
from tests.programs import canonical_graph
from tests.sample import some

MACHINE, NN = MACHINES["avx2"], te.nn
Array = np.ndarray[Any, Any]


class Network:
    """Layers one after another, with weights as inputs."""

    def __init__(self, *shape: int) -> None:
        self.inputs = [te.placeholder(shape, name="X")]
        self.x = self.inputs[0]

    def weights(self, *shape: int) -> te.Tensor:
        self.inputs.append(te.placeholder(shape, name=f"W{len(self.inputs)}"))
        return self.inputs[-1]

    def conv(self, filters: int, taps: int, stride: int = 1, groups: int = 1, dilation: int = 1) -> te.Tensor:
        w = self.weights(filters, self.x.shape[1] // groups, taps, taps)
        pad = dilation * (taps - 1) // 2
        bias = self.weights(filters)
        return NN.conv2d(self.x, w, bias, stride=stride, padding=pad, groups=groups, dilation=dilation)

    def depthwise(self, taps: int, stride: int = 1) -> te.Tensor:
        return NN.depthwise_conv2d(
            self.x, self.weights(self.x.shape[1], 1, taps, taps), stride=stride, padding=taps // 2
        )

    def scaled(self) -> te.Tensor:
        means = NN.mean(self.x, axis=(2, 3), keepdims=True)
        return NN.mul(self.x, NN.relu(NN.conv2d(means, self.weights(self.x.shape[1], self.x.shape[1], 1, 1))))

    def function(self) -> te.Function:
        return te.function("network", self.inputs, self.x)


LAYERS: dict[str, Callable[[Network], te.Tensor]] = {
    "pointwise": lambda n: n.conv(16, 1),
    "dense": lambda n: n.conv(8, 3),
    "strided": lambda n: n.conv(8, 3, stride=2),
    "dilated": lambda n: n.conv(8, 3, dilation=2),
    "grouped": lambda n: n.conv(8, 3, groups=2 - n.x.shape[1] % 2),
    "depthwise": lambda n: n.depthwise(3),
    "transposed": lambda n: NN.conv2d_transpose(n.x, n.weights(n.x.shape[1], 8, 2, 2), stride=2),
    "overlapping": lambda n: NN.conv2d_transpose(n.x, n.weights(n.x.shape[1], 8, 4, 4), stride=2, padding=1),
    "residual": lambda n: NN.add(NN.relu(n.conv(n.x.shape[1], 1)), n.x),
    "joined": lambda n: NN.concat([n.conv(8, 1), n.x], axis=1),
    "pooled": lambda n: NN.max_pool2d(n.x, 2, stride=1),
    "averaged": lambda n: NN.avg_pool2d(n.x, 3, stride=2, padding=1, divisor=1),
    "scaled": lambda n: n.scaled(),
    "resized": lambda n: NN.resize(n.x, scales=(2.0, 2.0), axes=(2, 3)) if n.x.shape[2] < 7 else n.x,
    "cut": lambda n: NN.slice(n.x, (0, 0, 1, 0), (n.x.shape[0], n.x.shape[1] - 1, *n.x.shape[2:])),
    "turned": lambda n: NN.relu(NN.transpose(n.x, (0, 1, 3, 2))),
}


def network(seed: int, layers: int = 5) -> te.Function:
    """Random layers on small images, ends in a convolution of one tap."""
    rng = random.Random(seed)
    n = Network(rng.choice((1, 2)), rng.choice((3, 8)), rng.choice((4, 6)), 6)
    for name in rng.choices([*LAYERS], k=layers):
        if min(n.x.shape[2:]) > 3 or name in ("pointwise", "residual", "joined"):
            n.x = LAYERS[name](n)
    n.x = n.conv(8, 1)
    return n.function()


def integers(shapes: list[tuple[int, ...]], seed: int, largest: int = 2) -> list[Array]:
    """Small integers as floats: short sums of products are exact in any order."""
    rng = np.random.default_rng(seed)
    return [rng.integers(-largest, largest + 1, shape).astype(np.float32) for shape in shapes]


def values(graph: Graph, arrays: list[Array]) -> list[Array]:
    module = ModuleOp([write(graph)])
    verify_module(module)
    return evaluate(module, arrays)


def random_costs(rng: random.Random, variables: int) -> list[CostTable]:
    chosen = [sorted(rng.sample(range(variables), rng.randint(1, 3))) for _ in range(2 * variables)]
    return [cost(each, lambda values: float(rng.randint(0, 9))) for each in chosen]


@pytest.mark.parametrize("seed", some(range(12)))
def test_an_assignment_is_the_least_of_all(seed: int) -> None:
    costs = random_costs(random.Random(seed), 6)
    found = minimum_assignment(costs)
    variables = sorted({v for each in costs for v in each.variables})
    every = (dict(zip(variables, key, strict=True)) for key in product((False, True), repeat=len(variables)))
    assert found is not None
    assert sum(c.at_values(found) for c in costs) == min(sum(c.at_values(values) for c in costs) for values in every)


def test_tables_of_too_many_variables_are_given_up() -> None:
    pairs = [cost(pair, lambda values: 1.0) for pair in product(range(16), repeat=2) if pair[0] < pair[1]]
    assert minimum_assignment(pairs) is None
    assert minimum_assignment([]) == {}


@pytest.mark.parametrize("seed", range(6))
def test_a_plan_is_the_least_of_all(seed: int) -> None:
    graph = canonical_graph(network(seed, 6))
    sets = layout_sets(graph)[:8]
    costs = layout_costs(graph, sets, MACHINE)
    found = minimum_assignment(costs) or {}
    every = (dict(enumerate(key)) for key in product((False, True), repeat=len(sets)))
    assert sum(c.at_values(found) for c in costs) == pytest.approx(
        min(sum(c.at_values(v) for c in costs) for v in every)
    )


@pytest.mark.parametrize("seed", some(range(24)))
def test_results_are_those_of_the_written_graph(seed: int) -> None:
    function = network(seed)
    graph = canonical_graph(function)
    arrays = integers([value.shape for value in graph.inputs], seed)
    expected = values(graph, arrays)
    rng = random.Random(seed)
    some = frozenset().union(*(members for members in layout_sets(graph) if rng.random() < 0.7))
    for last in (choose_layouts(graph, MACHINE), some):
        for got, wanted in zip(values(canonical(relaid(graph, last)).graph, arrays), expected, strict=True):
            np.testing.assert_allclose(got, wanted, atol=1e-5 * np.abs(wanted).max())


def test_what_a_caller_sees_keeps_its_layout() -> None:
    n = Network(1, 8, 6, 6)
    n.x = NN.add(NN.relu(n.conv(8, 1)), n.x)
    assert layout_sets(canonical_graph(n.function())) == []
    n.x = n.conv(16, 1)
    graph = canonical_graph(n.function())
    (members,) = layout_sets(graph)
    laid = relaid(graph, members)
    assert laid.results == graph.results
    assert laid.values[laid.results[0]] == graph.values[graph.results[0]]
    assert laid.nodes[-2].results[0].shape == (1, 6, 6, 16)


@pytest.mark.parametrize("policy", POLICIES)
def test_layouts_change_under_every_policy_but_not_for_a_gpu(policy: str) -> None:
    graph = canonical_graph(mobile())
    assert rewrite_graph(graph, Conditions(MACHINE, policy), [CHANNELS_LAST]).applied
    gpu = next(iter(GPUS.values()))
    assert not rewrite_graph(graph, Conditions(gpu, policy), [CHANNELS_LAST]).applied


def mobile() -> te.Function:
    """An inverted residual: expansion, depthwise, projection, sum."""
    n = Network(1, 16, 14, 14)
    n.x = NN.relu(n.conv(16, 3))
    before = n.x
    for layer in (lambda: n.conv(48, 1), lambda: n.depthwise(3), lambda: n.conv(16, 1)):
        n.x = NN.relu(layer())
    n.x = NN.add(n.x, before)
    n.x = n.conv(24, 1)
    return n.function()


def test_a_network_is_built_channels_last() -> None:
    function = mobile()
    weights = [t.name for t in function.inputs[1:]]
    groups = partition(function, weights, conditions=Conditions(MACHINE, "contract")).grouped
    assert groups is not None
    assert "tensor<1x14x14x48xf32>" in str(groups.module)
    arrays = integers([tuple(t.shape) for t in function.inputs], 0, 1)
    kernel = build(function, schedule="auto", threads=1, constants=dict(zip(weights, arrays[1:], strict=True)))
    np.testing.assert_array_equal(kernel(arrays[0]), evaluate(function.module, arrays)[0])


SIZES = {
    "dense": lambda n: n.conv(24, 3),
    "strided, dilated": lambda n: n.conv(9, 3, stride=2, dilation=2),
    "wide": lambda n: n.conv(64, 2),
    "depthwise": lambda n: n.depthwise(3),
    "depthwise 5x5": lambda n: n.depthwise(5, stride=2),
    "transposed": LAYERS["transposed"],
    "overlapping": LAYERS["overlapping"],
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", SIZES)
def test_a_layer_channels_last_gives_what_it_does_plain(name: str) -> None:
    n = Network(1 + len(name) % 2, 20, 7, 9)
    n.x = NN.relu(n.conv(40, 1))
    n.x = NN.relu(SIZES[name](n))
    n.x = n.conv(16, 1)
    graph = canonical_graph(n.function())
    sets = layout_sets(graph)
    assert len(sets) == 3
    laid = canonical(relaid(graph, frozenset().union(*sets))).graph
    arrays = integers([value.shape for value in graph.inputs], 1, 1)
    weights = {value.name: array for value, array in zip(laid.inputs[1:], arrays[1:], strict=True)}
    kernel = build(ModuleOp([write(laid)]), schedule="auto", threads=1, constants=weights)
    np.testing.assert_array_equal(kernel(arrays[0]), values(graph, arrays)[0])


@pytest.mark.parametrize("is_last", [False, True])
def test_winograd_takes_what_is_computed_before_in_either_layout(is_last: bool) -> None:
    """A concatenation before a convolution; beyond the guard results are those as written, infinities included."""
    n = Network(1, 16, 6, 6)
    for layer in (lambda: NN.concat([n.conv(16, 1), n.x], axis=1), lambda: n.conv(16, 3), lambda: n.conv(16, 1)):
        n.x = NN.relu(layer())
    graph = canonical_graph(n.function())
    joined, filtered, *_ = layout_sets(graph)
    laid = canonical(relaid(graph, joined | filtered if is_last else frozenset())).graph
    arrays, module = integers([value.shape for value in graph.inputs], 2, 1), ModuleOp([write(laid)])
    weights = {value.name: array for value, array in zip(laid.inputs[1:], arrays[1:], strict=True)}
    whole = grouped_program(module, list(weights), single=True)
    assert whole is not None
    parts = Partition(with_forms(whole, Conditions(host(), "contract"), [law.always for law in GROUP_LAWS[:1]]))
    sources = {part.name: source_of(part) for part in parts.parts(1, "contract")}
    kernel = build_scheduled(parts, module, sources, 1, "contract", weights)
    assert any(group.law.startswith("winograd") for group in kernel.groups)
    for largest in (1.0, 1e38):
        x = arrays[0] * np.float32(largest)
        np.testing.assert_allclose(kernel(x), values(graph, [x, *arrays[1:]])[0], rtol=1e-4)
