"""Laws that are choices: their forms compute what is written, within the bounds that they state."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import compiler
from compiler import te
from compiler.alternatives import GROUP_LAWS, Conditions, Form, Law, LawScope, Rounding, best, offers, permitted
from compiler.alternatives.convolutions import only_convolution
from compiler.alternatives.transforms import F2, F4
from compiler.alternatives.winograd import WINOGRAD_2, WINOGRAD_4, rounding
from compiler.dialects.functions import find_function, functions
from compiler.driver.building import build_scheduled, source_of
from compiler.driver.parts.forms import with_forms
from compiler.driver.parts.groups import GroupedProgram, grouped_program
from compiler.driver.parts.partition import Partition, partition
from compiler.graph.canonical import canonical
from compiler.graph.grouping.outline import LAW
from compiler.graph.guarded import Guarded, guarded
from compiler.graph.read import read
from compiler.support.errors import InputError
from compiler.targets.cpu import Kernel
from compiler.targets.groups import RUN_AS_FALLBACK
from compiler.types.machines import MACHINES, host
from tests.sample import some

nn = te.nn
HERE = Conditions(host(), "contract")
ACTIVATIONS: dict[str, Any] = {
    "none": (lambda y: y, lambda y: y),
    "relu": (nn.relu, lambda y: np.maximum(y, 0)),
    "silu": (nn.silu, lambda y: y / (1 + np.exp(-y))),
}


def layer(
    shape: Sequence[int],
    filters: int,
    padding: int = 1,
    residual: bool = False,
    activation: str = "relu",
    **options: Any,
) -> te.Function:
    """A convolution of 3 by 3 taps with a bias, a residual and an activation."""
    x, w = te.placeholder(tuple(shape), name="X"), te.placeholder((filters, shape[1], 3, 3), name="W")
    b = te.placeholder((filters, 1, 1), name="b")
    y = nn.add(nn.conv2d(x, w, padding=padding, **options), b)
    inputs = [x, w, b]
    if residual:
        inputs.append(te.placeholder(tuple(y.shape), name="R"))
        y = nn.add(y, inputs[-1])
    return te.function("layer", inputs, ACTIVATIONS[activation][0](y))


def arrays(function: te.Function, seed: int = 0) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    return {t.name: random.standard_normal(t.shape).astype(np.float32) for t in function.inputs}


def exact(given: dict[str, Any], padding: int, activation: str) -> Any:
    """A layer in float64."""
    wide = {name: array.astype(np.float64) for name, array in given.items()}
    x = np.pad(wide["X"], ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    y = np.einsum("nchwrs,kcrs->nkhw", windows, wide["W"], optimize=True) + wide["b"] + wide.get("R", 0)
    return ACTIVATIONS[activation][1](y)


def in_form(function: te.Function, law: Law, constants: dict[str, Any], threads: int = 1) -> Kernel:
    """A program in the form of a law, whatever it gains."""
    whole = grouped_program(function, tuple(constants), single=True)
    assert whole is not None
    formed = with_forms(whole, HERE, [law.always])
    assert formed is not whole
    program = Partition(formed)
    sources = {part.name: source_of(part) for part in program.parts(threads, "contract")}
    return build_scheduled(program, function, sources, threads, "contract", constants)


def formed(function: te.Function, constants: Sequence[str] = ("W", "b"), **conditions: Any) -> GroupedProgram | None:
    return partition(function, constants, conditions=replace(HERE, **conditions)).grouped


def laws_of(whole: GroupedProgram | None) -> list[str]:
    """The laws that gave a program's groups their forms."""
    every = [] if whole is None else [f.attributes.get(LAW) for f in functions(whole.module)]
    return [law.data for law in every if law is not None]  # type: ignore[attr-defined]


CASES = [
    ((1, 16, 5, 5), 16, 1, False, "relu", 1),
    ((2, 32, 9, 14), 48, 1, True, "relu", 2),
    ((3, 17, 7, 7), 33, 0, False, "silu", 1),
    ((1, 40, 12, 31), 24, 1, True, "none", 2),
    ((1, 130, 10, 3), 70, 2, True, "silu", 1),
    ((1, 160, 30, 17), 200, 1, False, "relu", 2),
]


@pytest.mark.parametrize(
    ("case", "law"),
    some([*((case, WINOGRAD_2) for case in CASES), *((case, WINOGRAD_4) for case in CASES[1::2])], 2),
    ids=lambda v: getattr(v, "name", str(v)),
)
def test_a_form_computes_the_layer(case: Any, law: Law) -> None:
    shape, filters, padding, residual, activation, threads = case
    function = layer(shape, filters, padding, residual, activation)
    given = arrays(function)
    kernel = in_form(function, law, {name: given[name] for name in ("W", "b")}, threads)
    form, written = (
        next(g for g in kernel.groups if g.name == name)
        for name in (f"group_0_{law.name.replace('-', '_')}", "group_0")
    )
    assert (form.source, form.verdict, form.law, written.verdict) == ("model", "proved", law.name, RUN_AS_FALLBACK)
    want = exact(given, padding, activation)
    error = np.abs(kernel(*(given[name] for name in given if name not in ("W", "b"))) - want).max() / np.abs(want).max()
    assert error < rounding(shape[1], F2 if law is WINOGRAD_2 else F4).probable


@given(st.data())
@settings(max_examples=4, deadline=None)
def test_forms_of_random_layers_agree(data: st.DataObject) -> None:
    """On small layers of any size, by the written loops of the forms: what the laws say, without a schedule."""
    shape = tuple(data.draw(st.integers(low, high)) for low, high in ((1, 2), (1, 4), (1, 9), (1, 9)))
    padding = data.draw(st.integers(1, 2))
    function = layer(shape, data.draw(st.integers(1, 4)), padding, data.draw(st.booleans()), "silu")
    given, graph = arrays(function), canonical(read(find_function(function.module))).graph
    machine = replace(host(), vector_bits=32)
    for law in GROUP_LAWS:
        known = frozenset(value.name for value in graph.inputs)
        assert [*law.forms(graph, Conditions(machine, "contract", known))] or only_convolution(graph) is None
    whole = grouped_program(function, ("W",), single=True)
    assert whole is not None
    for law in GROUP_LAWS:
        program = with_forms(whole, Conditions(machine, "contract"), [law.always])
        kernel = build_scheduled(Partition(program), function, {}, 1, "contract", {"W": given["W"]})
        outputs = kernel(*(array for name, array in given.items() if name != "W"))
        want = exact(given, padding, "silu")
        assert np.abs(outputs - want).max() < 1e-4 * max(1, np.abs(want).max())


@pytest.mark.parametrize("law", [WINOGRAD_2, WINOGRAD_4], ids=lambda law: law.name)
def test_results_are_finite_where_they_are_as_written(law: Law) -> None:
    function = layer((1, 16, 11, 8), 16, activation="relu")
    given = arrays(function)
    constants = {name: given[name] for name in ("W", "b")}
    kernel = in_form(function, law, constants)
    written = compiler.build(function, constants=constants, error=0, threads=1, schedule="auto")
    for value in (np.inf, -np.inf, np.nan, 1e38, 3.4e38, 1e20):
        x = given["X"].copy()
        x[0, 3, 4, 5] = value
        if abs(value) < np.inf:
            x = np.where(x == np.float32(value), x, x * np.float32(value / 100))
        formed_result, result = kernel(x), written(x)
        assert np.array_equal(np.isnan(formed_result), np.isnan(result))
        assert np.array_equal(np.isinf(formed_result), np.isinf(result))
        kept = np.isfinite(result)
        atol = 1e-4 * np.abs(result[kept]).max()
        np.testing.assert_allclose(formed_result[kept], result[kept], rtol=1e-4, atol=atol)


@pytest.mark.parametrize("place", ["W", "X"])
def test_subnormals_are_as_exact(place: str) -> None:
    function = layer((1, 16, 8, 8), 16, activation="none")
    given = arrays(function)
    given[place] *= np.float32(1e-39)
    given["b"][:] = 0
    constants = {name: given[name] for name in ("W", "b")}
    want = exact(given, 1, "none")
    result = in_form(function, WINOGRAD_2, constants)(given["X"])
    assert np.abs(result - want).max() < 1e-4 * np.abs(want).max()


def test_what_is_chosen() -> None:
    function, here = layer((1, 64, 28, 28), 64), {"machine": MACHINES["avx512-amx"]}
    assert laws_of(formed(function, **here)) == ["winograd-2x2"]
    assert laws_of(formed(function, error=3e-5, **here)) == ["winograd-4x4"]
    small = formed(layer((1, 512, 7, 7), 512), error=3e-5, **here)
    assert laws_of(small) == ["winograd-2x2"]  # 36 of 9 times the weights


@pytest.mark.parametrize(
    ("function", "constants", "conditions"),
    [
        (layer((1, 64, 28, 28), 64), ("W", "b"), {"policy": "strict"}),
        (layer((1, 64, 28, 28), 64), ("W", "b"), {"error": 0}),
        (layer((1, 64, 28, 28), 64), ("b",), {}),
        (layer((1, 64, 28, 28), 64, stride=2), ("W", "b"), {}),
        (layer((1, 64, 28, 28), 64, dilation=2), ("W", "b"), {}),
        (layer((1, 3, 28, 28), 64), ("W", "b"), {}),
        (layer((1, 64, 1, 1), 64), ("W", "b"), {}),
    ],
    ids=["strict", "no error", "weights given", "stride", "dilation", "few channels", "small"],
)
def test_what_stays_as_written(function: te.Function, constants: Sequence[str], conditions: Any) -> None:
    assert laws_of(formed(function, constants, **conditions)) == []


def test_a_constant_of_a_group_is_part_of_its_forms() -> None:
    """Small constants stand in the groups that read them, at their beginning."""
    x, w = te.placeholder((1, 16, 6, 6), name="X"), te.placeholder((16, 16, 3, 3), name="W")
    bias = np.linspace(-8, 8, 16, dtype=np.float32).reshape(16, 1, 1)
    y = nn.relu(nn.add(nn.conv2d(x, w, padding=1), te.constant(bias, name="b")))
    function = te.function("layer", [x, w], y)
    group = grouped_program(function, ("W",), single=True)
    assert group is not None and "te.constant" in str(group.groups[0].module)
    given = arrays(function)
    kernel = in_form(function, WINOGRAD_2, {"W": given["W"]})
    assert [g.law for g in kernel.groups] == ["", "winograd-2x2", ""]
    np.testing.assert_allclose(kernel(given["X"]), exact(given | {"b": bias}, 1, "relu"), rtol=1e-4, atol=1e-4)


def test_each_machine_schedules_the_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, machine in {(m.vector_bits, m.registers): m for m in MACHINES.values()}.items():
        whole = grouped_program(layer((1, 64, 28, 28), 64), ("W", "b"), single=True)
        assert whole is not None
        program = with_forms(whole, Conditions(machine, "contract"), [WINOGRAD_2.always])
        monkeypatch.setattr("compiler.driver.parts.partition.host", lambda machine=machine: machine)
        parts = Partition(program).parts(2, "contract")
        assert {part.name: str(source_of(part).verdict) for part in parts}["group_0_winograd_2x2"] == "proved", name


def test_bounds_are_in_order() -> None:
    """F(2x2) is more exact than the written form in the mean, F(4x4) some ten times less; in the worst case both are
    less exact."""
    for channels in (1, 16, 64, 512):
        written, two, four = (rounding(channels, transform) for transform in (None, F2, F4))
        assert two.probable < written.probable < four.probable < 11 * written.probable
        assert written.worst < two.worst < four.worst


def test_only_what_is_permitted_is_chosen() -> None:
    graph = canonical(read(find_function(layer((1, 64, 28, 28), 64).module))).graph

    def law(gain: float, probable: float) -> Law:
        form = Form(graph, gain, Rounding(1, probable), Rounding(1, 1e-6))
        return Law(f"law {gain}", LawScope.GROUP, lambda graph, conditions: iter([form]))

    exact_law, fast, slow = law(1.5, 1e-6), law(3, 1e-5), law(1.1, 1e-7)
    laws = [exact_law, fast, slow]
    assert len(list(offers(graph, HERE, laws))) == 3
    assert [permitted(o.form, HERE) for o in offers(graph, HERE, laws)] == [True, False, True]
    chosen = best(graph, HERE, laws)
    assert chosen is not None and chosen.law is exact_law
    chosen = best(graph, replace(HERE, error=1e-4), laws)
    assert chosen is not None and chosen.law is fast
    assert best(graph, HERE, [slow]) is None


def test_a_guarded_function_is_seen() -> None:
    g, v, x = te.placeholder((1,), name="g"), te.placeholder((4, 1, 5), name="v"), te.placeholder((4, 1, 5), name="x")

    def of(element: Any, *inputs: te.Tensor) -> Guarded | None:
        y = te.compute((4, 1, 5), element, name="y")
        return guarded(read(find_function(te.function("f", list(inputs), y).module)))

    assert of(lambda *i: te.select(te.not_equal(g[0], 0.0), v[i], x[i] + 1.0), g, v, x) == Guarded(0, 1)
    assert of(lambda *i: te.select(te.not_equal(g[0], 1.0), v[i], x[i]), g, v, x) is None
    assert of(lambda *i: te.select(te.equal(g[0], 0.0), v[i], x[i]), g, v, x) is None
    assert of(lambda i, j, k: te.select(te.not_equal(g[0], 0.0), v[3 - i, j, k], x[i, j, k]), g, v, x) is None
    assert of(lambda *i: te.select(te.not_equal(g[0], 0.0), v[i] + 1.0, x[i]), g, v, x) is None


def test_texts_of_a_program_with_forms() -> None:
    """Main calls the written form under a condition at the loop and the low level."""
    function = layer((1, 64, 28, 28), 64)
    given = arrays(function)
    constants = {name: given[name] for name in ("W", "b")}
    kernel = compiler.build(function, constants=constants, threads=1, schedule="auto")
    assert kernel.text("te").count("call @") == 3
    for level in ("loop", "low"):
        assert "scf.if" in kernel.text(level)
    loops = kernel.text("loop")
    again = compiler.build(loops, threads=1)
    assert again is not None
    for text in (loops.replace("arith.cmpf oeq", "arith.cmpf one"), re.sub(r"(scf\.if .*\n(.*)\n)", r"\1\2\n", loops)):
        assert text != loops
        with pytest.raises(InputError, match="is not one call under a guard"):
            compiler.build(text, threads=1)


@pytest.mark.parametrize("error", [-1, 1, "3e-5", float("nan")])
def test_a_wrong_error_is_refused(error: Any) -> None:
    with pytest.raises(InputError, match="expected a number from 0 to 1"):
        compiler.build(layer((1, 4, 4, 4), 4), error=error)


def test_a_program_with_forms_is_known_by_what_it_runs() -> None:
    """Groups that a guard skips have no schedule of their own, inside a program as elsewhere."""
    program = partition(layer((1, 64, 28, 28), 64), ("W", "b"), conditions=HERE)
    parts = {part.name: part for part in program.parts(1, "contract")}
    assert set(parts) == {"group_0_guard", "group_0_winograd_2x2"} and program.program_key(parts)
