# ruff: noqa: E402
"""`torch.compile(model, backend="strata")`: what a caller sees beside eager."""

from __future__ import annotations

import copy
import re
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.doors

from torch._functorch import _aot_autograd as aot_autograd

from benchmarks.models_torch import Branching
from compiler import te
from compiler.autotune.display.progress import Progress
from compiler.frontends.torch import explain
from compiler.frontends.torch.report import GraphReport, Report
from compiler.support.errors import InputError
from compiler.support.text import duration
from compiler.torch_backend import backend, comparison, costs, options, part, strata

nn = torch.nn
Function = Callable[..., Any]


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """torch has compiled nothing."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def agree(actual: Any, wanted: Any) -> None:
    """Results have the elements, dtypes and strides of eager ones."""
    leaves = torch.utils._pytree.tree_leaves
    for ours, theirs in zip(leaves(actual), leaves(wanted), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
        assert not isinstance(ours, torch.Tensor) or ours.stride() == theirs.stride()


def check(function: Function, *inputs: Any) -> None:
    """Compiled twice called, a function gives what it gives eager, and changes its inputs alike."""
    compiled = torch.compile(function, backend="strata")
    with torch.no_grad():
        for _ in range(2):
            own, others = copy.deepcopy(inputs), copy.deepcopy(inputs)
            agree(compiled(*own), function(*others))
            agree(own, others)


def writes(x: Any) -> Any:
    """Writes to an input, by itself and through a view; returns it, a view of it, and two views of one tensor."""
    x[1] = 7
    x[:, 1:].mul_(2)
    new = x + 1
    return x, x.t(), new, new.view(-1), new[0]


def orders(x: Any, y: Any) -> Any:
    """Results that lie in memory in orders of their own."""
    return (x * 2).t(), nn.functional.relu(y), y.permute(0, 2, 1, 3).exp(), x.sum(), (x[:0] + 1).shape


def test_writes_views_and_aliases() -> None:
    check(writes, torch.rand(3, 4))


def test_results_share_memory_as_in_torch() -> None:
    def function(x: Any) -> Any:
        y, (low, high) = x * 2, x.max(1)
        first, second = (x + 1).chunk(2, 1)
        return y, y.t(), (y @ y.t()).sum(), y[1:, ::2], first, second.t(), low, low[1:], high

    compiled, x = torch.compile(function, backend="strata"), torch.rand(4, 4)
    with torch.no_grad():
        ours, theirs = compiled(x), function(x)
        agree(ours, theirs)
        for outputs in (ours, theirs):
            for place in (0, 4, 7):
                outputs[place].mul_(3)
        agree(ours, theirs)
    assert explain(function, x).nodes_share == 1


def test_one_tensor_given_twice() -> None:
    compiled = torch.compile(lambda a, b: a.add_(b) * 2, backend="strata")
    x, y = torch.ones(3), torch.ones(3)
    with torch.no_grad():
        agree((compiled(x, x), x), (y.add_(y) * 2, y))


def test_results_lie_as_torch_has_them() -> None:
    check(orders, torch.rand(3, 4), torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last))
    check(lambda x: x * 2 + 1, torch.rand(4, 3).t()[::2])


def test_what_has_no_form_stays_with_torch() -> None:
    def function(x: Any) -> Any:
        y = torch.linalg.inv(x * 2 + torch.eye(3)) + 1
        return y, torch.nn.functional.max_pool2d(y[None], 2), torch.special.gammaln(y.exp()).relu(), torch.arange(3)

    x = torch.rand(3, 3)
    check(function, x)
    report = explain(function, x)
    assert 0.5 < report.nodes_share < 1 and 0 < report.time_share < 1 and not report.breaks
    assert set(report.unsupported) == {
        "aten.linalg_inv_ex.default has no te form",
        "aten.lgamma.default has no te form",
        "with_effects has no te form",  # a check of the inverse, which writes nothing but may raise
    }
    assert "left to torch (1): aten.lgamma.default has no te form" in str(report)


def test_a_network_slower_than_eager_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = nn.Linear(256, 256), torch.rand(256, 256)
    assert "slower than eager" not in str(Report([GraphReport(1, 1, 1, seconds=1e-3)], seconds_eager=1e-3))
    made = part.build_kernel
    monkeypatch.setattr(part, "build_kernel", lambda *given: _late(made(*given)))
    report = explain(model, x)
    assert report.is_slower and f"slower than eager: {duration(report.seconds)}, eager" in str(report)


def _late(kernel: Function) -> Function:
    def call(*arguments: Any) -> Any:
        time.sleep(0.5)
        return kernel(*arguments)

    return call


def of_two_groups(x: Any) -> Any:
    """A sum and a product, which are groups of their own."""
    return x.softmax(1) @ x


def adds_in_place(x: Any) -> Any:
    return x.add_(1) @ x


def compared(monkeypatch: pytest.MonkeyPatch, function: Function, **given: Any) -> list[str]:
    """The sentences about speed that three calls end in, where the compiled graph takes 2 ms and eager takes 1."""
    monkeypatch.setattr(comparison, "slower", lambda *calls: [call() for call in calls] and (2e-3, 1e-3))
    compiled, x = torch.compile(function, backend="strata", options=given), torch.rand(8, 8)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            compiled(x)
    return [str(w.message) for w in caught if "as long as eager" in str(w.message)]


def test_a_graph_slower_than_eager_says_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the group that costs most beyond its bound."""
    slow = costs.Cost("group_7", "product 8 to 8x8", 3, 5e-3, 1e-3)
    other = costs.Cost("group_8", "elementwise 8", 1, 9e-3, 8e-3)
    assert str(slow) == "group_7 (product 8 to 8x8; 3 calls, 5 ms, bound 1 ms)"
    with torch.no_grad():
        (said,) = compared(monkeypatch, of_two_groups)
        group, time = r"group_\d \((product|reduction|elementwise) [^;]*8", r"[\d.]+ [mu]s"
        times = r"strata: this graph takes 2\.00 times as long as eager \(2 ms, 1 ms\)"
        assert re.fullmatch(rf"{times}; the group furthest above its bound is {group}; {time}, bound {time}\)", said)
        monkeypatch.setattr(part, "costs", lambda *given: iter([other, slow]))
        (said,) = compared(monkeypatch, lambda x: torch.special.gammaln(x @ x + 1) @ x)
        assert said.endswith(f"its bound is {slow}; 1 of 4 operators stay with torch")


@pytest.mark.parametrize(
    ("function", "compare"), [(of_two_groups, False), (adds_in_place, True), (lambda x: x @ torch.rand(8, 8), True)]
)
def test_other_graphs_say_nothing_of_eager(function: Function, compare: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part, "costs", lambda *given: iter(()))
    with torch.no_grad():
        assert not compared(monkeypatch, function, compare=compare)


@pytest.mark.parametrize(
    ("ours", "theirs", "found"),
    [
        ([3e-3, 2.5e-3] + [4e-3] * 4, [2e-3, 1e-3] + [3e-3] * 3, (2.5e-3, 1e-3)),
        ([3e-3, 3e-3, 1e-3], [1e-3, 1e-3], None),
        ([2e-5] * 2, [1e-5], None),
        ([2.0], [], None),
        ([0.6, 0.6], [0.4], (0.6, 0.4)),
    ],
)
def test_turns_end_when_they_tell_enough(
    ours: list[float], theirs: list[float], found: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = {"ours": iter(ours), "theirs": iter(theirs)}
    now = iter([0.0, *[sum(ours) + sum(theirs)] * comparison.ROUNDS])
    monkeypatch.setattr(comparison, "perf_counter", lambda: next(now))
    monkeypatch.setattr(comparison, "_seconds", lambda call: next(calls[call()]))
    assert comparison.slower(lambda: "ours", lambda: "theirs") == found
    assert not [*calls["ours"], *calls["theirs"]]


def test_an_error_of_eager_is_none_of_the_compiled_graph() -> None:
    """As an index beyond a table is, which reads zero here."""
    table, places = torch.ones(2, 3), torch.tensor([0, 5])
    with torch.no_grad():
        actual = torch.compile(nn.functional.embedding, backend="strata")(places, table)
    agree(actual, torch.tensor([[1.0] * 3, [0.0] * 3]))


def test_graph_breaks_are_told() -> None:
    model, x = Branching(8).eval(), torch.rand(2, 8)
    report = explain(model, x)
    assert len(report.graphs) == 2 and len(report.breaks) == 1 and report.nodes_share == 1
    check(model, x)


def test_changed_parameters_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[set[str]] = []
    monkeypatch.setattr(part, "build_kernel", _spied(part.build_kernel, built))
    model, x = nn.Linear(3, 2), torch.rand(4, 3)
    compiled = torch.compile(model, backend="strata")
    with torch.no_grad():
        for change in (lambda: None, lambda: model.weight.add_(1), lambda: _replace(model), lambda: model.bias.zero_()):
            change()
            for _ in range(2):
                agree(compiled(x), model(x))
        for _ in range(part.MAX_CHANGES):
            model.weight.mul_(2)
            agree(compiled(x), model(x))
    assert [len(names) for names in built] == [2, 2, 2, 2, 2, 1]


def _spied(made: Function, built: list[set[str]]) -> Function:
    def spy(program: Any, constants: dict[str, Any], options: Any) -> Any:
        built.append(set(constants))
        return made(program, constants, options)

    return spy


def _replace(model: Any) -> None:
    model.bias.data = torch.rand(2)


def test_a_call_has_no_detour_through_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    made, stacks = part.build_kernel, list[list[str]]()

    def built(*given: Any) -> Any:
        kernel = made(*given)

        def call(*arguments: Any) -> Any:
            stacks.append([frame.filename for frame in traceback.extract_stack()])
            return kernel(*arguments)

        return call

    monkeypatch.setattr(part, "build_kernel", built)
    compiled = torch.compile(nn.Linear(4, 3), backend="strata", options={"compare": False})
    with torch.no_grad():
        for _ in range(2):
            compiled(torch.rand(2, 4))
    frames = stacks[-1]
    ours = frames[len(frames) - frames[::-1].index(aot_autograd.utils.__file__) :]
    assert backend.__file__ in ours and part.__file__ in ours and not any("/torch/" in name for name in ours)


def test_each_shape_is_compiled_until_torch_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes: list[tuple[int, ...]] = []
    made = part.build_kernel

    def spy(program: Any, constants: Any, options: Any) -> Any:
        shapes.append(program.inputs[0].shape)
        return made(program, constants, options)

    monkeypatch.setattr(part, "build_kernel", spy)
    compiled = torch.compile(lambda x: (x * 2).sum(1), backend="strata")
    with torch.no_grad(), torch._dynamo.config.patch(recompile_limit=3):
        for rows in (2, 3, 4, 5, 3):
            x = torch.rand(rows, 3)
            agree(compiled(x), (x * 2).sum(1))
    assert shapes == [(2, 3), (3, 3), (4, 3)]


def test_a_dimension_that_is_marked_dynamic_stays_with_torch() -> None:
    x = torch.rand(2, 3)
    torch._dynamo.mark_dynamic(x, 0)
    with pytest.warns(UserWarning, match="marked as dynamic"), torch.no_grad():
        agree(torch.compile(lambda x: x * 2, backend="strata")(x), x * 2)


def test_another_device_stays_with_torch_and_is_named() -> None:
    x = torch.empty(2, 3, device="meta")
    with pytest.warns(UserWarning, match="an input is on the device meta: its graph stays with torch"), torch.no_grad():
        assert torch.compile(lambda x: torch.relu(x) * 2, backend="strata")(x).device.type == "meta"


def test_a_graph_of_which_nothing_is_compiled_says_why() -> None:
    x = torch.tensor([1.0, 2.0, 3.0])
    with pytest.warns(UserWarning, match=r"compiles none of the 1 operators of a graph, which stays with torch: \S"):
        agree(torch.compile(torch.linalg.eigvals, backend="strata")(torch.diag(x)), torch.linalg.eigvals(torch.diag(x)))


def test_training_gives_the_same_parameters() -> None:
    def model() -> Any:
        torch.manual_seed(0)
        return nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.SiLU(), nn.Flatten(), nn.Linear(16, 2))

    ours, theirs, x = model(), model(), torch.rand(2, 1, 4, 4)
    for trained, call in ((ours, torch.compile(ours, backend="strata")), (theirs, theirs)):
        optimiser = torch.optim.SGD(trained.parameters(), 0.1)
        for _ in range(2):
            optimiser.zero_grad()
            call(x).square().sum().backward()
            optimiser.step()
    agree(dict(ours.state_dict()), dict(theirs.state_dict()))


def test_gradients_are_told() -> None:
    with pytest.warns(UserWarning, match=r"call the model under torch\.no_grad"):
        y = torch.compile(nn.Linear(2, 2), backend="strata")(torch.rand(1, 2))
    assert y.requires_grad


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"trails": 3}, "no option 'trails'; did you mean 'trials'"),
        ({"threads": 0}, "the option threads is 0, expected an integer of at least 1"),
        ({"trials": -1}, "the option trials is -1"),
        ({"policy": "quick"}, "unknown policy 'quick'"),
        ({"database": 3}, "the option database is 3, expected the path"),
        ({"database": "nowhere.db"}, "there is no database 'nowhere.db'"),
        ({"report": 3}, "the option report is 3"),
        ({"compare": 3}, "the option compare is 3, expected True or False"),
        (3, "options are a dictionary, not a int"),
    ],
)
def test_wrong_options_end_in_a_sentence(given: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        options.options_of(given)
    with pytest.raises(InputError, match="no mode 'max-autotune'"):
        options.options_of(None, "max-autotune")


def test_an_interruption_of_the_trials_ends_the_call(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """And is not taken for the wish to go on with the next graph."""

    def interrupted(task: Any, asking: Any) -> None:
        for callback in asking.callbacks:
            callback(Progress(task.name, asking.trials, None, phase="interrupted"))

    monkeypatch.setattr(part.SearchTask, "tune", interrupted)
    program = te.function("f", [x := te.placeholder((2,), name="x")], te.nn.relu(x))
    with pytest.raises(KeyboardInterrupt):
        part.build_kernel(program, {}, options.Options(trials=3, database=tmp_path / "trials.db"))


def test_a_mode_is_obeyed_or_refused() -> None:
    model, x = nn.Linear(3, 2).eval(), torch.rand(4, 3)
    with torch.no_grad():
        agree(torch.compile(model, backend="strata", mode="default")(x), model(x))
        with pytest.raises(Exception, match=r"no mode 'max-autotune', only 'default', and .*database, trials, threads"):
            torch.compile(model, backend="strata", mode="max-autotune")(x)


def test_trials_are_spent_before_the_kernel_is_made(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def tune(task: Any, asking: Any) -> None:
        asked.append((list(task.constants), task.policy, asking.trials, asking.path))
        asking.path.touch()

    monkeypatch.setattr(part.SearchTask, "tune", tune)
    monkeypatch.setattr(part, "build", lambda *given, **named: asked.append((given[1:], named["schedule"])))
    path, program = tmp_path / "trials.db", te.function("f", [x := te.placeholder((2,), name="x")], te.nn.relu(x))
    part.build_kernel(program, {"x": torch.ones(2)}, options.Options(path, 5, 1, "strict"))
    assert asked == [(["x"], "strict", 5, path), (("cpu", 1, "strict"), path)]
    part.build_kernel(program, {}, options.Options(trials=3))
    assert not asked[-1][1].exists()  # without a database the trials are of this build alone


def test_a_part_without_a_kernel_stays_with_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: Any) -> Any:
        raise InputError("no kernel today")

    monkeypatch.setattr(part, "build_kernel", refuse)
    with pytest.warns(UserWarning, match="no kernel today"), torch.no_grad():
        agree(torch.compile(lambda x: x * 2, backend="strata")(torch.ones(2)), torch.full((2,), 2.0))


def test_the_backend_is_an_entry_point() -> None:
    import tomllib
    from pathlib import Path

    project = tomllib.loads((Path(backend.__file__).parents[2] / "pyproject.toml").read_text())["project"]
    module, name = project["entry-points"]["torch_dynamo_backends"]["strata"].split(":")
    assert (module, getattr(backend, name)) == ("compiler.torch_backend", strata)
