"""Laws of whole te functions that are choices: what they give, when they apply, and how they err."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import VerifyException

from benchmarks.equal_programs.gradients import at_once, by_rows, gradient, in_steps, turned_before, turned_behind
from compiler import build, te
from compiler.__main__ import main
from compiler.affine import linear as lin
from compiler.alternatives import PROGRAM_LAWS, chain, flattened, normalised
from compiler.alternatives.explained import explanations
from compiler.alternatives.law import Conditions, Form, Law, LawScope
from compiler.alternatives.program import RewrittenGraph, rewrite_graph
from compiler.autotune.task import SearchTask
from compiler.database import Record
from compiler.database.outcome import Outcome
from compiler.dialects.dominance import verify_module
from compiler.dialects.functions import functions
from compiler.driver.parts.naming import names_of
from compiler.fuzz.programs import arrays_for, program
from compiler.graph.canonical import canonical
from compiler.graph.grouped_module import group_program
from compiler.graph.provenance import Provenance
from compiler.graph.read import read
from compiler.graph.tree import Compute, Graph
from compiler.graph.write import write
from compiler.interpret.te import evaluate
from compiler.pipeline.source import parse
from compiler.program.tree import Block
from compiler.support import plugins
from compiler.types.machines import MACHINES
from tests.bitwise import results, same_bits
from tests.planted import Plant, assert_seen, in_place_of
from tests.programs import canonical_graph
from tests.sample import some

P, Array = te.placeholder, np.ndarray[Any, Any]
MACHINE = MACHINES["avx2"]


def best(function: te.Function, policy: str = "contract", **conditions: Any) -> RewrittenGraph:
    return rewrite_graph(canonical_graph(function), Conditions(MACHINE, policy, **conditions), PROGRAM_LAWS)


def text(graph: Graph) -> str:
    return str(write(replace(graph, name="f")))


def values(graph: Graph, arrays: Sequence[Array]) -> list[Array]:
    module = ModuleOp([write(graph)])
    verify_module(module)
    return evaluate(module, arrays)


N, CI, CO, S = 2, 3, 4, 5


def test_five_spellings_of_a_gradient_have_one_text() -> None:
    made_by = (by_rows, turned_before, turned_behind, in_steps, at_once)
    spelled = [gradient(written, N, CI, CO, S) for written in made_by]
    made = [best(function) for function in spelled]
    assert len({text(form.graph) for form in made}) == 1
    assert len({text(canonical_graph(function)) for function in spelled}) == 5
    assert [len(form.applied) for form in made] == [2, 1, 1, 2, 0]
    random = np.random.default_rng(0)
    arrays = [random.integers(-3, 4, value.shape).astype(np.float32) for value in made[0].graph.inputs]
    forms = [*map(canonical_graph, spelled), *(form.graph for form in made)]
    first, *others = [values(form, arrays)[0] for form in forms]
    assert all(np.array_equal(first, other) for other in others)


def test_under_strict_sums_of_floats_stay_apart() -> None:
    assert not best(gradient(in_steps, N, CI, CO, S), "strict").applied


def test_windows_side_by_side_are_one_reduction() -> None:
    """Those that overlap read an element twice: they stay."""
    x = P((2, 4, 6), name="X")
    p, q = te.reduce_axis(2, "p"), te.reduce_axis(2, "q")
    rows = te.compute((2, 4, 3), lambda c, y, v: te.max(x[c, y, v * 2 + q], axis=q), name="rows")
    beside = te.compute((2, 2, 3), lambda c, y, v: te.max(rows[c, y * 2 + p, v], axis=p), name="beside")
    over = te.compute((2, 3, 3), lambda c, y, v: te.max(rows[c, y + p, v], axis=p), name="over")
    made = best(te.function("f", [x], beside), "strict")
    assert [a.law for a in made.applied] == ["flattened"]
    array = np.random.default_rng(0).standard_normal((2, 4, 6)).astype(np.float32)
    assert np.array_equal(values(made.graph, [array])[0], array.reshape(2, 2, 2, 3, 2).max((2, 4)))
    assert not best(te.function("f", [x], over), "strict").applied


def nested(rng: random.Random, dtype: str) -> te.Function:
    """Reductions of reductions of a tensor, mostly of one kind, along random axes; sometimes several are results."""
    x = made = P(tuple(rng.randint(1, 4) for _ in range(rng.randint(2, 4))), dtype, name="X")
    reduces = [rng.choice((te.sum, te.max, te.min))] * 3
    outputs = []
    for number in range(rng.randint(2, 3)):
        if not made.shape:
            break
        order = rng.sample(range(len(made.shape)), len(made.shape))
        count = rng.randint(1, len(order)) if number else 1
        along = {d: te.reduce_axis(made.shape[d], f"r{number}{d}") for d in order[:count]}
        kept = order[count:] if rng.random() < 0.3 else sorted(order[count:])

        def element(
            *i: Any, source: te.Tensor = made, along: Any = along, kept: Any = kept, number: int = number
        ) -> Any:
            index = along | dict(zip(kept, i, strict=True))
            value = source[tuple(index[d] for d in range(len(index)))]
            return reduces[number](value, axis=list(along.values()))

        if rng.random() < 0.15:
            reduces[number] = te.sum
        made = te.compute(tuple(made.shape[d] for d in kept), element, name=f"S{number}")
        if rng.random() < 0.1:
            outputs.append(made)
    return te.function("f", [x], [*(t for t in outputs if t is not made), made])


def chained(rng: random.Random, dtype: str, largest: int = 9) -> tuple[te.Function, int]:
    """A chain of products under random parentheses, some of them transposed, maybe in batches or with rows and
    columns at the ends, and the fewest multiplications for it."""
    count = rng.randint(3, 5)
    sizes = [rng.randint(1 if n in (0, count) else 2, largest) for n in range(count + 1)]
    batch = (rng.randint(2, 3),) if rng.random() < 0.3 else ()
    inputs, parts = list[te.Tensor](), list[tuple[te.Tensor, bool]]()
    for number, shape in enumerate(pairwise(sizes)):
        turned = rng.random() < 0.4
        inputs.append(P((*batch, *(shape[::-1] if turned else shape)), dtype, name=f"A{number}"))
        parts.append((inputs[-1], turned))
    while len(parts) > 1:
        place = rng.randrange(len(parts) - 1)
        (a, turned_a), (b, turned_b) = parts[place : place + 2]
        product = te.nn.batch_matmul if batch else te.nn.matmul
        turned = len(parts) > 2 and rng.random() < 0.4
        made = product(b, a, not turned_b, not turned_a) if turned else product(a, b, turned_a, turned_b)
        parts[place : place + 2] = [(made, turned)]
    return te.function("f", inputs, parts[0][0]), fewest(sizes) * prod(batch)


def fewest(sizes: Sequence[int]) -> int:
    """The fewest multiplications for a chain of matrices, by trying all orders."""
    if len(sizes) < 3:
        return 0
    cuts = range(1, len(sizes) - 1)
    return min(fewest(sizes[: n + 1]) + fewest(sizes[n:]) + sizes[0] * sizes[n] * sizes[-1] for n in cuts)


def multiplications(graph: Graph) -> int:
    return sum(prod(a.size for a in n.block.axes) for n in graph.nodes if isinstance(n, Compute) and n.block.combiners)


def integers(graph: Graph, seed: int) -> list[Array]:
    random = np.random.default_rng(seed)
    return [random.integers(-3, 4, value.shape).astype(np.int32) for value in graph.inputs]


def shows_fault(seed: int) -> bool:
    """Whether the best form of a random program is not what the program is, or not the one of fewest operations."""
    rng = random.Random(seed)
    function = nested(rng, "i32") if seed % 2 else chained(rng, "i32")[0]
    graph = canonical_graph(function)
    try:
        made = rewrite_graph(graph, Conditions(MACHINE, "strict"), PROGRAM_LAWS)
        arrays = integers(graph, seed)
        return not all(map(np.array_equal, values(graph, arrays), values(made.graph, arrays)))
    except (AssertionError, IndexError, KeyError, ValueError, VerifyException):
        return True


@pytest.mark.parametrize("seed", some(range(120)))
def test_the_best_form_gives_the_same(seed: int) -> None:
    assert not shows_fault(seed)


@pytest.mark.parametrize("seed", some(range(60)))
def test_a_random_program_stays_what_it_is(seed: int) -> None:
    rng = random.Random(seed)
    function = program(rng, rng.randint(2, 30), dtype="i32", views=seed % 2 == 0)
    arrays = arrays_for(function, seed)
    graph = canonical_graph(function)
    made = rewrite_graph(graph, Conditions(MACHINE, "fast"), PROGRAM_LAWS)
    modules = [ModuleOp([write(g)]) for g in (graph, made.graph)]
    assert all(map(same_bits, *(results(module, arrays) for module in modules)))


def test_random_programs_have_places_for_each_law() -> None:
    taken = [a.law for s in range(60) for a in best(nested(random.Random(s), "i32")).applied]
    taken += [a.law for s in range(30) for a in best(chained(random.Random(s), "i32")[0]).applied]
    assert taken.count("flattened") >= 15 and taken.count("chain") >= 10


@pytest.mark.parametrize("seed", some(range(60)))
def test_a_chain_takes_the_fewest_multiplications(seed: int) -> None:
    function, least = chained(random.Random(seed), "i32")
    conditions = Conditions(MACHINE, "strict")
    graph = canonical_graph(function)
    forms = [graph, *(canonical(form.graph).graph for form in chain.CHAIN.forms(graph, conditions))]
    assert min(map(multiplications, forms)) == least
    assert len(forms) > 1 or multiplications(graph) == least


def test_products_of_constants_count_nothing() -> None:
    """They are computed once: x (A B) is less work in a call than (x A) B."""
    x, A, B = P((64, 32), "i32", name="x"), P((32, 16), "i32", name="A"), P((16, 8), "i32", name="B")
    function = te.function("f", [x, A, B], te.nn.matmul(te.nn.matmul(x, A), B))
    changing, fixed = best(function), best(function, constants=frozenset(("a1", "a2")))
    assert [changing.graph.nodes[0].operands, fixed.graph.nodes[0].operands] == [("a1", "a2"), ("a1", "a2")]
    y, C = P((4, 32), "i32", name="y"), P((16, 64), "i32", name="C")
    longer = te.function("f", [y, A, C], te.nn.matmul(te.nn.matmul(y, A), C))
    assert not best(longer).applied
    assert not best(longer, constants=frozenset(("a1", "a2"))).applied, (
        "4 rows times 32 by 64 are more than in two steps"
    )
    A, B = P((32, 64), "i32", name="A"), P((64, 16), "i32", name="B")
    few = te.function("f", [y, A, B], te.nn.matmul(te.nn.matmul(y, A), B))
    assert not best(few).applied
    assert best(few, constants=frozenset(("a1", "a2"))).graph.nodes[0].operands == ("a1", "a2")


def test_floats_are_multiplied_in_another_order_under_fast_only() -> None:
    A, B, x = P((30, 20), name="A"), P((20, 40), name="B"), P((40, 1), name="x")
    function = te.function("f", [A, B, x], te.nn.matmul(te.nn.matmul(A, B), x))
    assert [len(best(function, policy).applied) for policy in ("strict", "contract", "fast")] == [0, 0, 1]
    assert not best(function, "fast", error=1e-9).applied
    halves = [P((30, 20), "f16", name="A"), P((20, 40), "f16", name="B"), P((40, 1), "f16", name="x")]
    rounded = te.nn.matmul(te.nn.matmul(halves[0], halves[1]), halves[2])
    assert not best(te.function("f", halves, rounded), "fast").applied


@pytest.mark.parametrize("seed", some(range(8)))
def test_a_chain_errs_no_more_than_its_bounds(seed: int) -> None:
    """Of operands with mean zero and with mean one half; sums are formed one after another, the worst way."""
    rng, random_numbers = random.Random(seed), np.random.default_rng(seed)
    graph = canonical_graph(chained(rng, "f32", 60)[0])
    for form in chain.CHAIN.forms(graph, Conditions(MACHINE, "fast")):
        assert form.rounding is not None
        for mean in (0.0, 0.5):
            arrays = [(random_numbers.random(v.shape) - 0.5 + mean).astype(np.float32) for v in graph.inputs]
            exact = values(widened(graph), [a.astype(np.float64) for a in arrays])[0]
            absolute = values(widened(graph), [np.abs(a.astype(np.float64)) for a in arrays])[0]
            for candidate in (graph, form.graph):
                error = np.abs(results(ModuleOp([write(candidate)]), arrays)[0] - exact).max()
                assert error <= form.rounding.worst * absolute.max()
                assert mean or error <= form.rounding.probable * np.abs(exact).max()


def widened(graph: Graph) -> Graph:
    """A graph of f32 with f64 in its place."""
    return read(functions(parse(str(write(graph)).replace("f32", "f64")))[0])


def test_an_infinite_operand_shows_in_every_order() -> None:
    A, B, x = P((8, 4), name="A"), P((4, 9), name="B"), P((9, 1), name="x")
    graph = canonical_graph(te.function("f", [A, B, x], te.nn.matmul(te.nn.matmul(A, B), x)))
    (form,) = chain.CHAIN.forms(graph, Conditions(MACHINE, "fast"))
    for seed in range(20):
        numbers = np.random.default_rng(seed)
        arrays = [numbers.integers(-1, 2, value.shape).astype(np.float32) for value in graph.inputs]
        victim = arrays[seed % 3].reshape(-1)
        victim[numbers.integers(victim.size)] = (np.inf, -np.inf, np.nan)[seed % 3]
        with np.errstate(all="ignore"):
            first, second = (np.isfinite(values(g, arrays)[0]) for g in (graph, form.graph))
        assert np.array_equal(first, second) and not first.all()


def attention(dtype: str = "f32", largest: bool = True, reciprocal: bool = False, results: int = 1) -> te.Function:
    """An attention that is divided by the sum of the powers behind its second product."""
    nn: Any = te.nn
    q, k, v = (P((2, 5, 4), dtype, name=name) for name in "QKV")
    scores = nn.mul(nn.batch_matmul(q, k, transpose_b=True), 0.5)
    powers = nn.exp(nn.sub(scores, nn.max(scores, 2 if largest else 1, keepdims=True)))
    total, product = nn.sum(powers, 2, keepdims=True), nn.batch_matmul(powers, v)
    made = nn.mul(product, nn.reciprocal(total)) if reciprocal else nn.div(product, total)
    return te.function("f", [q, k, v], [made, product][:results])


@pytest.mark.parametrize("reciprocal", [False, True])
def test_powers_are_divided_before_the_product(reciprocal: bool) -> None:
    graph = canonical_graph(attention(reciprocal=reciprocal))
    (form,) = normalised.NORMALISED.forms(graph, Conditions(MACHINE, "contract"))
    assert form.rounding is not None and form.rounding == form.written_rounding
    numbers = np.random.default_rng(0)
    for scale in (1.0, 30.0):
        arrays = [(scale * numbers.standard_normal(v.shape)).astype(np.float32) for v in graph.inputs]
        (exact,) = values(widened(graph), [array.astype(np.float64) for array in arrays])
        for candidate in (graph, form.graph):
            errors = np.abs(values(candidate, arrays)[0] - exact)
            assert errors.max() <= 20 * scale**2 * form.rounding.probable * np.abs(exact).max()


def test_only_a_softmax_is_divided_before_the_product() -> None:
    """Powers of differences from the maximum of another axis may overflow where they are divided."""
    assert [a.law for a in best(attention()).applied] == ["normalised"]
    others = attention(largest=False), attention("f16"), attention(results=2)
    assert not any("normalised" in [a.law for a in best(f).applied] for f in others)
    assert not best(attention(), "strict").applied


def test_what_is_read_twice_or_returned_stays() -> None:
    A, B, x = P((30, 20), "i32", name="A"), P((20, 40), "i32", name="B"), P((40, 1), "i32", name="x")
    product = te.nn.matmul(A, B)
    outputs = [te.nn.matmul(product, x), te.nn.relu(product)]
    assert not best(te.function("f", [A, B, x], outputs)).applied


def test_the_program_is_grouped_in_its_best_form() -> None:
    """One group too: what it computes is not what is written."""
    function = gradient(in_steps, N, CI, CO, S)
    conditions = Conditions(MACHINE, "contract")
    made = group_program(function, rewrite=lambda graph: rewrite_graph(graph, conditions, PROGRAM_LAWS).form)
    (caller, group) = functions(made.module)
    assert [value.name_hint for value in caller.args] == ["X", "G"]
    assert made.names[group.sym_name.data].blocks == {"product0": "dW"}
    assert "reduce r2 = 5" in str(group)
    assert group_program(function, rewrite=lambda graph: None).module is function.module
    arrays = integers(read(caller), 0)
    arrays = [array.astype(np.float32) for array in arrays]
    assert np.array_equal(evaluate(made.module, arrays)[0], evaluate(function.module, arrays)[0])


def test_a_program_is_built_in_its_best_form() -> None:
    """Under the policy of the build: a chain in steps needs 64 KiB between, a vector a few bytes."""
    A, B, x = P((128, 8), name="A"), P((8, 128), name="B"), P((128, 1), name="x")
    function = te.function("f", [A, B, x], te.nn.matmul(te.nn.matmul(A, B), x))
    numbers = np.random.default_rng(0)
    a, b, v = (numbers.integers(-3, 4, t.shape).astype(np.float32) for t in function.inputs)
    kernels = {policy: build(function, policy=policy, threads=1, schedule="auto") for policy in ("contract", "fast")}
    assert all(np.array_equal(kernel(a, b, v), a @ b @ v) for kernel in kernels.values())
    assert kernels["contract"].arena_bytes >= 1 << 16 > 1 << 10 >= kernels["fast"].arena_bytes
    fixed = build(function, policy="fast", threads=1, schedule="auto", constants={"A": a, "B": b})
    assert np.array_equal(fixed(v), a @ b @ v)


def test_a_record_of_the_best_form_has_the_names_of_the_program() -> None:
    function = gradient(in_steps, N, CI, CO, S)
    task = SearchTask(function, threads=1)
    (group,) = task.groups
    record = Record(
        group.key, group.name, group.program, str(group.schedule.script), Outcome("wrong", reason="untimed")
    )
    assert names_of(function, record).blocks == {"product0": "dW"}


def test_laws_that_undo_each_other_come_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compiler.alternatives.program.MOST", 5)
    again = Law("again", LawScope.PROGRAM, lambda graph, conditions: iter([Form(graph, 2.0, where="all of it")]))
    made = rewrite_graph(canonical_graph(gradient(in_steps, N, CI, CO, S)), Conditions(MACHINE, "contract"), [again])
    assert len(made.applied) == 5


def test_why_a_law_does_not_apply() -> None:
    def said(law: Callable[[Graph, Conditions], Any], **conditions: Any) -> list[str]:
        graph = canonical_graph(gradient(in_steps, N, CI, CO, S))
        laws = [Law("mine", LawScope.PROGRAM, law)]
        return list(explanations(graph, Conditions(MACHINE, "contract", **conditions), laws, Provenance()))

    def needs(condition: Callable[[Conditions], bool]) -> Callable[[Graph, Conditions], Any]:
        return lambda graph, given: iter([Form(graph, 0.5, where="X is Y")] if condition(given) else [])

    assert said(needs(lambda given: True)) == ["mine: it does not pay: X is Y, for a gain of 0.5"]
    assert said(needs(lambda given: given.policy == "fast")) == [
        "mine: the policy contract does not permit it: under fast X is Y"
    ]
    assert said(needs(lambda given: "a1" in given.constants)) == ["mine: inputs would have to be constant: X is Y"]
    assert said(needs(lambda given: False)) == ["mine: nothing in the program has its form"]


@in_place_of(flattened, "one_block")
def axes_mixed_up(right: Any, outer: Block, inner: Block) -> Any:
    """flattened: the axes of the inner sum are those of the outer one in their order"""
    index = tuple(map(lin.variable, range(inner.spatial)))
    return right(replace(outer, reads=(replace(outer.reads[0], index=index),)), inner)


@in_place_of(flattened, "_summed")
def combiners_mixed(right: Any, outer: Any, graph: Graph) -> Any:
    """flattened: a maximum of sums is a sum"""
    if isinstance(outer, Compute) and outer.block.combiners:
        source = graph.producers.get(outer.block.reads[0].buffer)
        if isinstance(source, Compute) and source.block.combiners:
            outer = replace(outer, block=replace(outer.block, combiners=source.block.combiners))
    return right(outer, graph)


@in_place_of(chain, "_linked")
def factors_turned(right: Any, given: Any) -> Any:
    """chain: factors in the wrong order"""
    made = right(given)
    return made and replace(made, factors=made.factors[::-1])


@pytest.mark.parametrize("fault", [axes_mixed_up, combiners_mixed, factors_turned], ids=lambda fault: fault.__name__)
def test_a_planted_fault_is_seen(fault: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_seen(fault, monkeypatch, shows_fault, range(200))


def test_the_command_explains_each_function(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, given = tmp_path / "f.mlir", [gradient(in_steps, N, CI, CO, S), gradient(at_once, N, CI, CO, S)]
    path.write_text(str(ModuleOp([functions(function.module)[0].clone() for function in given])))
    assert main(["explain-rewrites", str(path)]) == 0
    nothing = "nothing in the program has its form"
    lines = [line.split(", for a gain")[0].strip() for line in capsys.readouterr().out.splitlines()]
    assert lines[:4] == [
        "@in_steps",
        "flattened: each and total are one reduction",
        "flattened: total and dW are one reduction",
        f"windows: {nothing}",
    ]
    assert lines[lines.index("@at_once") + 1] == f"flattened: {nothing}"
    path.write_text("func.func @f(%A: memref<4xf32>) {\n  func.return\n}\n")
    assert main(["explain-rewrites", str(path)]) == 1
    assert "is at another level than te: laws rewrite te functions" in capsys.readouterr().err


def test_a_law_that_crashes_is_its_plugins_fault(tmp_path: Path) -> None:
    path = tmp_path / "bad.py"
    path.write_text(
        "from compiler.alternatives.law import Law, LawScope\n\n"
        "def forms(graph, conditions):\n    yield graph.nothing\n\n"
        "def register(registry):\n    registry.law(Law('bad', LawScope.PROGRAM, forms))\n"
    )
    graph, conditions = canonical_graph(gradient(in_steps, N, CI, CO, S)), Conditions(MACHINE, "contract")
    with plugins.loaded([str(path)]):
        names = [law.name for law in PROGRAM_LAWS]
        assert names[:2] == ["bad", "flattened"] and "bad" not in names[1:]
        with pytest.raises(plugins.PluginError, match="plugin bad: program law bad failed: AttributeError"):
            rewrite_graph(graph, conditions, PROGRAM_LAWS)
    path.write_text(path.read_text().replace("'bad'", "'chain'"))
    with pytest.raises(plugins.PluginError, match="cannot add the program law 'chain': the compiler has one"):
        plugins.load_file(str(path))
    path.write_text("def register(registry):\n    registry.law(5)\n")
    with pytest.raises(plugins.PluginError, match="registers 5, which is no law"):
        plugins.load_file(str(path))
