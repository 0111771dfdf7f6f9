"""te-group: which computes go together, that groups need no cycle, and that a grouped program is the same program."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp

from benchmarks import networks
from compiler import te
from compiler.bench import workloads
from compiler.dialects.dominance import verify_module
from compiler.dialects.functions import find_function
from compiler.fuzz import programs as random_programs
from compiler.graph.grouped_module import group_program as whole_of
from compiler.graph.grouped_module import grouped_module as whole
from compiler.graph.grouping import RULES, Choice, Rule, View, check_groups, decisions, fixed_groups, group, groups_of
from compiler.graph.grouping.cut import MOST_COMPUTES, MOST_OPERATIONS
from compiler.graph.grouping.facts import Kind, kind_of, scalar_operations
from compiler.graph.grouping.order import Acyclic
from compiler.graph.read import read
from compiler.graph.tree import Compute, Graph
from compiler.interpret.te import evaluate
from compiler.pipeline.loops import lower
from compiler.pipeline.source import parse
from compiler.support.errors import InputError
from tests.programs import graph_of
from tests.sample import some

P, nn = te.placeholder, te.nn
Array = np.ndarray[Any, Any]


def calls_of(module: ModuleOp) -> list[str]:
    return [op.callee.string_value() for op in find_function(module).body.block.ops if isinstance(op, CallOp)]


def same(function: te.Function, module: ModuleOp, seed: int, exact: bool = True) -> bool:
    """Whether a grouped module computes what its program does, bit for bit or up to rounding."""
    verify_module(module)
    arrays = random_programs.arrays_for(function, seed)
    expected, got = evaluate(function.module, arrays), evaluate(module, arrays)
    equal = (
        partial(np.array_equal, equal_nan=function.inputs[0].dtype == "f32")
        if exact
        else partial(np.allclose, atol=1e-4)
    )
    return all(equal(a, b) for a, b in zip(expected, got, strict=True))


@pytest.mark.parametrize("name", workloads.PRESETS)
def test_a_workload_is_one_group(name: str) -> None:
    function = workloads.find(name).function()
    assert len(groups_of(graph_of(function))) == 1
    assert group(function.module) is function.module
    assert whole(function) is function.module


def first_labels(module: ModuleOp) -> dict[str, list[str]]:
    functions = [op for op in module.ops if isinstance(op, FuncOp) and "te.group" in op.attributes]
    return {f.sym_name.data: [node.results[0].name for node in read(f).nodes] for f in functions}


def test_an_encoder_layer_has_six_groups() -> None:
    module = group(networks.bert(1, tokens=16).module)
    check_groups(module)
    assert calls_of(module) == [f"group_{n}" for n in (0, 0, 0, 1, 2, 3, 4, 5, 3)]
    assert [computes[-1] for computes in first_labels(module).values()] == [
        "transpose",
        "attention",
        "add_4",
        "layer_norm",
        "gelu",
        "add_7",
    ]
    twelve = group(networks.bert(12, tokens=16).module)
    assert Counter(calls_of(twelve)) == {name: 12 * n for name, n in Counter(calls_of(module)).items()}


def test_convolutions_take_residuals_and_activations_along() -> None:
    module = group(networks.resnet50(64).module)
    calls = calls_of(module)
    labels = first_labels(module)
    convolutions = [name for name in calls if any(label.startswith("conv2d") for label in labels[name])]
    assert len(convolutions) == 53
    assert len(calls) == 56, "and a pooling, a mean, a dense layer"
    assert len(labels) < 30, "blocks of a stage are equal"


def test_depthwise_convolutions_are_groups() -> None:
    calls = calls_of(group(networks.mobilenet_v2(64).module))
    assert len(calls) == 54, "52 convolutions, a mean, a dense layer"


def mlp(layers: int, width: int = 32, hidden: int | None = None) -> te.Function:
    x = X = P((8, width), name="X")
    weights = []
    for n in range(layers):
        inner = hidden or width
        weights.append(P((width if n % 2 == 0 else inner, inner if n % 2 == 0 else width), name=f"W{n}"))
        x = nn.relu(nn.matmul(x, weights[-1]))
    return te.function("mlp", [X, *weights], x)


def test_products_go_in_pairs_where_rows_between_are_short() -> None:
    assert calls_of(group(mlp(6).module)) == ["group_0"] * 3
    wide = groups_of(graph_of(mlp(4, hidden=1025)))
    assert [len(computes) for computes in wide] == [2, 4, 2], "only the second and third have a short row between them"


@pytest.mark.parametrize(("columns", "groups"), [(8, [6]), (96, [6]), (97, [1, 4, 1])])
def test_narrow_attention_without_batches_is_one_group(columns: int, groups: list[int]) -> None:
    X, W, V = P((16, 8), name="X"), P((8, 12), name="W"), P((12, columns), name="V")
    function = te.function("f", [X, W, V], nn.matmul(nn.softmax(nn.matmul(X, W)), V))
    assert [len(computes) for computes in groups_of(graph_of(function))] == groups


def test_attention_of_one_head_is_one_group() -> None:
    inputs = [P((1, 12, 8), name=name) for name in "QKV"]
    function = te.function("f", inputs, nn.attention(*inputs))
    module = whole(function)
    assert calls_of(module) == []


def test_weights_that_others_read_are_no_part_of_attention_without_batches() -> None:
    X, W, V = P((16, 8), name="X"), P((8, 12), name="W"), P((12, 12), name="V")
    weights = nn.softmax(nn.matmul(X, W))
    for outputs in ([nn.matmul(weights, V), weights], [nn.add(nn.matmul(weights, V), weights)]):
        computes = groups_of(graph_of(te.function("f", [X, W, V], outputs)))
        assert [len(group) for group in computes][:2] == [1, 4]


def test_products_of_several_heads_with_one_query_share_no_rows() -> None:
    q, k, v = P((3, 1, 6), name="Q"), P((3, 11, 6), name="K"), P((3, 11, 6), name="V")
    module = whole(te.function("f", [q, k, v], nn.attention(q, k, v)))
    assert len(calls_of(module)) == 3, "batches and columns, once the rows have gone"


def test_norms_of_a_residual_do_not_join_around_a_product() -> None:
    X, W, g = P((16, 8), name="X"), P((8, 8), name="W"), P((8,), name="g")
    y = nn.rms_norm(X, g)
    function = te.function("f", [X, W, g], nn.rms_norm(nn.add(y, nn.matmul(y, W)), g))
    groups = groups_of(graph_of(function))
    assert [group[-1] for group in groups] == ["rms_norm", "add", "rms_norm_1"]


def test_what_several_groups_read_is_computed_once() -> None:
    X, W, V = P((16, 8), name="X"), P((8, 8), name="W"), P((8, 8), name="V")
    y = nn.exp(X)
    function = te.function("f", [X, W, V], [nn.matmul(y, W), nn.matmul(y, V)])
    assert groups_of(graph_of(function)) == [["exp"], ["matmul"], ["matmul_1"]]


def test_reductions_of_as_many_results_meet() -> None:
    X = P((1, 4, 8, 8), name="X")
    pools = nn.add(nn.max_pool2d(X, 2, 2), nn.avg_pool2d(X, 2, 2))
    assert len(groups_of(graph_of(te.function("f", [X], pools)))) == 1
    both = nn.sub(nn.mean(nn.mul(X, X), 3), nn.square(nn.mean(X, 3)))
    assert len(groups_of(graph_of(te.function("f", [X], both)))) == 1


def test_a_product_takes_a_rotation_of_its_rows() -> None:
    X, W, c, s = P((8, 16), name="X"), P((16, 16), name="W"), P((8, 16), name="c"), P((8, 16), name="s")
    q = nn.matmul(X, W)
    half = nn.concat([nn.slice(q, (0, 8), (8, 16)), nn.slice(q, (0, 0), (8, 8))], 1)
    function = te.function("f", [X, W, c, s], nn.add(nn.mul(q, c), nn.mul(half, s)))
    assert len(groups_of(graph_of(function))) == 1
    assert whole(function) is function.module


def test_results_of_the_same_values_are_one_group() -> None:
    X, Y = P((8, 8), name="X"), P((8, 8), name="Y")
    outputs = [nn.exp(X), nn.add(X, Y), nn.sub(Y, X)]
    assert len(groups_of(graph_of(te.function("f", [X, Y], outputs)))) == 1


def test_additional_outputs_change_no_groups() -> None:
    X, g, h = P((16, 8), name="X"), P((8,), name="g"), P((8,), name="h")
    last = nn.layer_norm(nn.add(X, X), g, h)
    function = te.function("f", [X, g, h], last)
    for node in graph_of(function).nodes:
        with_output = graph_of(function)
        extended = Graph("f", with_output.inputs, with_output.nodes, (*with_output.results, node.results[0].name))
        assert len(groups_of(extended)) == 1


def constants_of(function: FuncOp) -> int:
    return sum(op.name == "te.constant" for op in function.walk())


def test_small_constants_stand_in_groups_where_all_calls_agree() -> None:
    X, g = P((8, 4), name="X"), P((4,), name="g")
    half, values = te.constant(0.5, "f32", "half"), np.arange(16, dtype=np.float32)
    x = X
    for n in range(3):
        bias, table = te.constant(values[:4] + n, name=f"b{n}"), te.constant(np.ones((4, 4), np.float32), name="T")
        weight = te.constant(np.arange(16.0 * 9).reshape(4, 4 * 9)[:, ::9] / 64 + n, "f32", f"W{n}")
        product = nn.add(nn.matmul(nn.matmul(x, weight), table), bias)
        x = nn.rms_norm(te.compute((8, 4), lambda i, j, p=product: p[i, j] * half[()], "scaled"), g)
    function = te.function("f", [X, g], x)
    for module in (group(function.module), whole(function)):
        main, *groups = (op for op in module.ops if isinstance(op, FuncOp))
        assert [constants_of(main), *map(constants_of, groups)] == [6, 2, 0], "weights and biases differ"
        assert same(function, module, 0, exact=False)


def ordered_pairs(count: int, random_: random.Random) -> list[set[int]]:
    reach = random_.choice((3, 10, count))
    return [{s for s in range(n + 1, min(count, n + reach)) if random_.random() < 2 / reach} for n in range(count)]


def has_cycle(successors: list[set[int]], groups: list[int]) -> bool:
    edges = {(groups[a], groups[b]) for a, after in enumerate(successors) for b in after if groups[a] != groups[b]}
    left = set(groups)
    while left:
        free = {g for g in left if not any(b == g and a in left for a, b in edges)}
        if not free:
            return True
        left -= free
    return False


@pytest.mark.parametrize("seed", some(range(60)))
def test_joins_are_refused_exactly_where_they_make_a_cycle(seed: int) -> None:
    random_ = random.Random(seed)
    count = random_.randint(2, 30)
    successors = ordered_pairs(count, random_)
    acyclic = Acyclic(successors)
    groups = list(range(count))
    for _ in range(40):
        chosen = random_.sample(range(count), min(count, random_.choice((2, 2, 3, 5))))
        joined = {groups[n] for n in chosen}
        after = [min(joined) if g in joined else g for g in groups]
        legal = not has_cycle(successors, after)
        assert acyclic.join(chosen) == legal
        groups = after if legal else groups
        assert all(
            acyclic.group(a) == acyclic.group(b) for a in range(count) for b in range(count) if groups[a] == groups[b]
        )
        edges = ((a, b) for a, nodes in enumerate(successors) for b in nodes if groups[a] != groups[b])
        assert all(acyclic.position(a) < acyclic.position(b) for a, b in edges)


def anywhere(seed: int) -> Rule:
    """A rule that joins computes at random."""

    def rule(view: View) -> Iterator[Choice]:
        random_ = random.Random(seed)
        for name in view.names:
            others = random_.sample(view.names, min(len(view.names), 3))
            yield Choice(name, tuple((second,) for second in others))

    return rule


@pytest.mark.sampled
@pytest.mark.parametrize("seed", some(range(24)))
def test_random_programs_in_groups_are_the_same_programs(seed: int) -> None:
    random_ = random.Random(seed)
    function = random_programs.program(random_, random_.choice((3, 10, 30, 60)), random_.choice(("i32", "i32", "f32")))
    assert same(function, group(function.module), seed)
    assert same(function, group(function.module, [anywhere(seed)]), seed)
    assert same(function, group(function.module, [lambda view: iter(())]), seed)


def faulty(module: ModuleOp, fault: Callable[[list[CallOp]], None]) -> ModuleOp:
    copy = module.clone()
    fault([op for op in find_function(copy).body.block.ops if isinstance(op, CallOp)])
    return copy


def swap_arguments(calls: list[CallOp]) -> None:
    first, second = calls[1].operands[:2]
    calls[1].operands[0], calls[1].operands[1] = second, first


def forget_result(calls: list[CallOp]) -> None:
    calls[-1].results[0].replace_all_uses_with(calls[0].results[0])


def wrong_group(calls: list[CallOp]) -> None:
    calls[1].properties["callee"] = calls[0].properties["callee"]


@pytest.mark.parametrize("fault", [swap_arguments, forget_result, wrong_group])
def test_faults_are_seen(fault: Callable[[list[CallOp]], None]) -> None:
    X, W, V = (P((6, 6), "i32", name) for name in ("X", "W", "V"))
    y = nn.relu(nn.matmul(X, W))
    function = te.function("f", [X, W, V], nn.matmul(te.compute((6, 6), lambda i, j: y[j, i] - V[i, j], "T"), V))
    alone: list[Rule] = [fixed_groups({"T": "", "matmul_1": ""}), *RULES]
    module = group(function.module, alone)
    assert len(calls_of(module)) == 3 and same(function, module, 0)
    assert not same(function, faulty(module, fault), 0)


def test_a_cycle_is_seen() -> None:
    X = P((6,), "i32", name="X")
    y = nn.relu(X)
    function = te.function("f", [X], nn.add(nn.abs(y), y))
    view = View(graph_of(function))
    first, middle, last = view.names
    assert not view.join([first, last]) and view.join([first, middle]) and view.join([first, last])


def chain(length: int, waist: int | None = None) -> te.Function:
    """Elementwise computes of [8, 16]; behind compute number `waist` they are of [8]."""
    X = P((8, 16), name="X")
    x = te.compute((8, 16), lambda i, j: X[i, j] + 1, "c0", axes=("i", "j"))
    for n in range(1, length):
        if n == waist:
            s = x
            x = te.compute((8,), lambda i, s=s: s[i, 0], f"c{n}", axes=("i",))
            continue
        s = x
        x = te.compute(x.shape, lambda *i, s=s: s[i] * 2 + 1, f"c{n}", axes=("i", "j")[: x.rank])
    return te.function("chain", [X], x)


def test_a_chain_is_cut_where_least_is_live() -> None:
    groups = groups_of(graph_of(chain(100, waist=50)))
    assert [len(computes) for computes in groups] == [51, 49]
    groups = groups_of(graph_of(chain(200)))
    assert [len(computes) for computes in groups] == [8, 64, 64, 64]


def test_groups_are_bounded_by_their_operations() -> None:
    X = P((8,), name="X")
    x = X
    for n in range(40):
        x = te.compute((8,), lambda i, s=x: sum((s[i] * k for k in range(2, 20)), s[i]), f"c{n}")
    graph = graph_of(te.function("f", [X], x))
    blocks = {node.results[0].name: node.block for node in graph.nodes}  # type: ignore[union-attr]
    for computes in groups_of(graph):
        assert len(computes) <= MOST_COMPUTES
        assert sum(scalar_operations(blocks[name]) for name in computes) <= MOST_OPERATIONS


def steps(work: Callable[[], object]) -> int:
    """The calls of Python functions that some work makes."""
    count = 0

    def profile(frame: object, event: str, arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def forks(length: int) -> te.Function:
    """Each compute reads the two before it, products among them."""
    X, W = P((4, 4), name="X"), P((4, 4), name="W")
    made = [X, nn.relu(X)]
    for n in range(length):
        made.append(nn.matmul(made[-1], W) if n % 5 == 4 else nn.add(made[-1], made[-2]))
    return te.function("forks", [X, W], made[-1])


PROGRAMS = [chain, mlp, forks, lambda n: networks.bert(n // 50, 8, 16, 2, 32)]


@pytest.mark.parametrize("make", PROGRAMS)
def test_grouping_is_linear(make: Callable[[int], te.Function]) -> None:
    graphs = [graph_of(make(length)) for length in (100, 200, 400)]
    counts = [steps(lambda g=graph: groups_of(g)) for graph in graphs]  # type: ignore[misc]
    assert all(later <= 2.4 * earlier for earlier, later in pairwise(counts)), counts


@pytest.mark.parametrize("make", some(PROGRAMS, 2))
def test_making_groups_is_linear(make: Callable[[int], te.Function]) -> None:
    modules = [make(length).module for length in (100, 100, 400)]
    _, short, long = (steps(lambda m=module: group(m)) for module in modules)  # type: ignore[misc]
    assert long <= 4.4 * short


def test_a_rule_of_a_user_has_the_first_say() -> None:
    function = networks.bert(1, 8, 16, 2, 32)

    def with_norm(view: View) -> Iterator[Choice]:
        for name in view.names:
            if name.startswith("add") and any("mean" in reader for reader in view.readers(name)):
                yield Choice(name, ((view.readers(name)[0],),))

    module = group(function.module, (with_norm, *RULES))
    norms = [computes for computes in first_labels(module).values() if "layer_norm" in computes[-1]]
    assert all(computes[0].startswith("add") for computes in norms)


def test_decisions_are_data() -> None:
    X, W = P((16, 8), name="X"), P((8, 8), name="W")
    function = te.function("f", [X, W], nn.relu(nn.matmul(X, W)))
    (decision,) = decisions(graph_of(function))
    assert decision.choice == Choice("relu", (("matmul",),)) and decision.taken == 0 and decision.cost == (512,)
    apart = group(function.module, (fixed_groups({"relu": ""}), *RULES))
    assert calls_of(apart) == ["group_0", "group_1"]
    with pytest.raises(InputError, match="the rule 'rule' groups 'nothing', which @f has not"):
        group(function.module, (fixed_groups({"nothing": ""}), *RULES))


def test_a_grouped_module_stays() -> None:
    module = group(networks.bert(1, 8, 16, 2, 32).module)
    text = str(module)
    assert group(module) is module and whole(module) is module
    assert str(group(parse(text))) == text


def test_a_whole_program_is_canonical_and_keeps_its_names() -> None:
    function = networks.bert(1, 8, 16, 2, 1040)
    made = whole_of(function)
    assert calls_of(made.module) == [f"group_{n}" for n in (0, 0, 0, 1, 2, 3, 4, 5, 3)]
    check_groups(made.module)
    assert same(function, made.module, 0, exact=False)
    assert set(made.names) == {"bert", *(f"group_{n}" for n in range(6))}
    labels = [set(made.names[name].blocks.values()) for name in ("group_1", "group_5")]
    assert labels[0] >= {"attention.scores", "attention.softmax.max", "attention"}
    assert labels[1] == {"matmul_5", "add_6", "add_7"}
    values = [set(made.names[name].values.values()) for name in ("bert", "group_5")]
    assert "X" in values[0] and any(name.startswith("W") for name in values[1])


@pytest.mark.parametrize("seed", some(range(12)))
def test_random_whole_programs_are_the_same_programs(seed: int) -> None:
    function = random_programs.program(random.Random(seed), 40, "i32")
    assert same(function, whole(function), seed)


@pytest.mark.parametrize("make", [networks.bert, networks.llama])
def test_layers_of_a_whole_network_have_the_same_groups(make: Callable[..., te.Function]) -> None:
    counts = [Counter(calls_of(whole(make(layers, 8, 16, 2, 1040)))) for layers in (1, 3)]
    assert sorted(counts[1].values()) == [3 * n for n in sorted(counts[0].values())]


def test_convolutions_of_a_whole_network_keep_the_axes_that_schedules_count_on() -> None:
    module = whole(networks.resnet50(64, 10))
    graphs = [read(op) for op in module.ops if isinstance(op, FuncOp) and "te.group" in op.attributes]
    blocks = [node.block for graph in graphs for node in graph.nodes if isinstance(node, Compute)]
    contractions = [block for block in blocks if kind_of(block) is Kind.CONTRACTION]
    *convolutions, dense = contractions
    assert {(block.spatial, len(block.axes)) for block in convolutions} == {(4, 7)}
    assert (dense.spatial, len(dense.axes)) == (1, 2), "its one row is no axis"
    spatial = {block.spatial for graph in graphs[2:-2] for block in (node.block for node in graph.nodes)}  # type: ignore[union-attr]
    assert spatial == {4}, "and so do biases, sums and activations"


def test_programs_of_other_levels_stay() -> None:
    loops = lower(chain(3))
    assert whole(loops) is loops


def test_what_reads_nothing_goes_to_its_reader() -> None:
    X = te.placeholder((1, 3, 4, 9), name="X")
    pooled = te.nn.avg_pool2d(X, 3, 2, 1, count_include_pad=False)
    function = te.function("pool", [X], [pooled])
    assert whole(function) is function.module


@pytest.mark.parametrize(("size", "calls"), [(64, 2), (8, 1)])
def test_what_is_broadcast_is_computed_once(size: int, calls: int) -> None:
    """Scales of channels, for a reader of 16 times their elements or more and of enough of them."""
    x, w = P((1, 4, size, size), name="X"), P((4, 4, 1, 1), name="W")
    mean, variance = P((4,), name="M"), P((4,), name="V")
    y = nn.relu(nn.batch_norm(nn.conv2d(x, w), mean, variance))
    called = calls_of(group(te.function("f", [x, w, mean, variance], y).module))
    assert len(called) == (calls if calls > 1 else 0), "a function of one group stays as it is"


def test_what_is_broadcast_without_arithmetic_is_read_in_place() -> None:
    x, bias = P((1, 4, 64, 64), name="X"), P((2, 2), name="B")
    y = nn.relu(nn.add(x, nn.reshape(bias, (1, 4, 1, 1))))
    assert calls_of(group(te.function("f", [x, bias], y).module)) == []
