"""Tuning a whole program tunes its groups: which they are, what they share, how a run ends, what is printed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from xdsl.utils.exceptions import VerifyException

import compiler
from compiler import te
from compiler.autotune.display.progress import Progress
from compiler.autotune.options import TuningOptions
from compiler.autotune.task import SearchTask
from compiler.bench.contenders import Settings
from compiler.bench.table import breakdowns
from compiler.database import Database, Record
from compiler.database.outcome import NETWORK, Outcome
from compiler.driver.parts.groups import OWN, GroupedProgram, grouped_program, grouped_program_of
from compiler.pipeline.loops import lower
from compiler.pipeline.source import parse
from compiler.support.errors import InputError, TargetError
from tests.programs import matmul as product
from tests.unit.autotune.test_tuner import Pretend, clock, path, records, workers
from tests.whole import CONSTANTS, M, N, whole

__all__ = ["clock", "path", "workers"]
NAMES = ["net.group_0", "net.group_1", "net.group_2"]


@cache
def task(name: str | None = None) -> SearchTask:
    """The program's task, whose groups' spaces all tests share."""
    return SearchTask(whole(), threads=1, constants=CONSTANTS, name=name)


# --- what the groups are --------------------------------------------------------------------------------------------


def test_different_groups_are_tasks() -> None:
    groups = task().groups
    assert [(g.name, g.constants, g.occurrences) for g in groups] == [
        ("net.group_0", ("W", "b"), 2),
        ("net.group_1", (), 1),
        ("net.group_2", (), 1),
    ], "what depends on constants alone runs once, before"
    assert all(g.timing == NETWORK and g.key.timing == NETWORK and g.groups == () for g in groups)
    assert groups[0].schedule.program.constants == ("W", "b") and groups[0].schedule.name == "group_0"
    assert [g.name for g in task("mine").groups] == [name.replace("net", "mine") for name in NAMES]


def test_an_input_is_constant_where_it_is_so_in_every_call() -> None:
    module = parse(whole())
    assert [g.constants for g in GroupedProgram(module, (1,)).groups] == [(), (1,), (), ()]
    assert [(g.name, g.constants) for g in GroupedProgram(module, (1, 2)).groups][:2] == [
        ("group_3", ()),
        ("group_0", (1,)),
    ]


def test_a_te_constant_is_constant() -> None:
    text = whole().replace("%g: tensor<8xf32>", "%unused: tensor<8xf32>", 1)
    made = "%g = te.constant dense<1.0> : tensor<8xf32>"
    module = parse(text.replace("  %h = ", f"  {made}\n  %h = "))
    assert next((g.name, g.constants) for g in GroupedProgram(module, (1, 2)).groups) == ("group_0", (1, 2))


def test_a_group_has_the_key_of_its_function_alone() -> None:
    """One that a person has grouped stays as it is written: its key is that of its loops."""
    alone = lower(GroupedProgram(parse(whole())).groups[1].module)
    own = SearchTask(alone, threads=1, constants=("W",), timing=NETWORK)
    wide = SearchTask(whole(), threads=1, constants=("W",))
    assert wide.group("group_0").key == own.key != SearchTask(alone, threads=1, constants=("W",)).key


def test_a_program_without_groups_is_one() -> None:
    task = SearchTask(GroupedProgram(parse(whole())).groups[2].module, threads=1)
    assert task.groups == () and task.occurrences == 1 and task.timing == "warm"
    with pytest.raises(InputError, match="group_1 is one program: it has no groups, such as 'group_0'"):
        task.group("group_0")
    assert grouped_program(lower(GroupedProgram(parse(whole())).groups[2].module), ()) is None


def test_groups_have_names() -> None:
    what = task()
    for name in ("group_1", "net.group_1", "@group_1"):
        assert what.group(name) is what.groups[1]
    with pytest.raises(InputError, match=r"no group 'grop_1'; did you mean 'group_\d'\? \(net has group_0, group_1, g"):
        what.group("grop_1")


@pytest.mark.parametrize("asked", ["schedule", "key", "program", "space", "derived"])
def test_what_is_of_one_program_is_asked_of_a_group(asked: str) -> None:
    with pytest.raises(InputError, match=r"net has groups, and this is asked of one of them: net.group_0, net.group_1"):
        getattr(task(), asked)
    assert getattr(task().groups[1], asked)


def test_what_is_computed_is_said_group_by_group() -> None:
    said = task().compute_dag.splitlines()
    assert [line for line in said if not line.startswith(" ")] == [
        "net.group_0, 2 calls:",
        "net.group_1, 1 call:",
        "net.group_2, 1 call:",
    ]
    assert "  residual[i0, i1] = f(Y, Z) for i0 = 6, i1 = 8" in said


def test_wrong_programs_and_constants_are_refused() -> None:
    with pytest.raises(InputError, match=r"@net has no input 'V' \(it has X, W, b, g\)"):
        SearchTask(whole(), constants=["V"])
    first, remaining = whole().split("  %h =", 1)
    compute = '%c = te.compute "c" [i = 8] (%v = %g[i] : tensor<8xf32>) -> tensor<8xf32> { te.yield %v : f32 }'
    with pytest.raises(VerifyException, match="@net calls groups and computes 'c' itself; put that into a group"):
        SearchTask(f"{first}  {compute}\n  %h ={remaining}")


# --- runs -----------------------------------------------------------------------------------------------------------


def tuned(what: SearchTask, shown: Callable[[Progress], None] | None = None, **stated: Any) -> dict[str, Record]:
    actual = what.tune(TuningOptions(**{"trials": 3, **stated, "callbacks": [shown] if shown else []}))
    assert isinstance(actual, dict)
    return actual


def test_groups_share_the_trials_and_the_workers(workers: Callable[..., Pretend], path: Path) -> None:
    pretend, names = workers(), list[str]()
    best = tuned(task(), lambda p: names.append(p.name), trials=7, database=path)
    assert list(best) == list(dict.fromkeys(names)) == NAMES
    assert pretend.closed == 1 and len(pretend.subjects) >= 2, "they turn from group to group"
    with Database(path) as database:
        summaries = database.keys()
        assert [(s.names, s.trials) for s in summaries] == [((NAMES[0],), 5), ((NAMES[1],), 1), ((NAMES[2],), 1)]
        assert all(database.best(group.key) == best[group.name] for group in task().groups)
    assert task().best(path) == best
    before = len(records(path))
    assert tuned(task(), trials=7, database=path) == best and len(records(path)) == before, "they are gone on with"


def test_what_calls_the_groups_is_kept(workers: Callable[..., Pretend], path: Path) -> None:
    what = task()
    tuned(what, database=path)
    with Database(path) as database:
        (kept,) = database.whole_programs
    again = grouped_program_of(kept)
    assert kept.name == what.name and [g.occurrences for g in again.groups] == [g.occurrences for g in what.groups]
    tuned(what, database=path)
    with Database(path) as database:
        assert database.whole_programs == [kept]
    alone = replace(kept, text=str(what.groups[0].module))
    for damaged in (alone, replace(kept, constants=(99,))):
        with pytest.raises(InputError):
            grouped_program_of(damaged)


def test_records_of_a_group_serve_every_program_that_has_it(workers: Callable[..., Pretend], path: Path) -> None:
    workers()
    tuned(task(), database=path)
    second = SearchTask(whole("other"), threads=1, constants=CONSTANTS)
    assert {r.script for r in second.best(path).values()} == {r.script for r in task().best(path).values()}


def test_without_a_file_records_end_with_the_run(workers: Callable[..., Pretend]) -> None:
    workers()
    assert list(tuned(task())) == NAMES


def test_what_there_is_no_time_for_is_not_tuned(
    workers: Callable[..., Pretend], path: Path, clock: list[float]
) -> None:
    workers(seconds=40.0, clock=clock)
    assert list(tuned(task(), trials=None, seconds=30.0, database=path)) == NAMES[:1]


def test_an_interruption_ends_the_run_and_keeps_all(workers: Callable[..., Pretend], path: Path) -> None:
    workers()
    seen: list[tuple[str, str]] = []

    def stop(progress: Progress) -> None:
        seen.append((progress.name, progress.phase))
        if progress.name == NAMES[1] and progress.trials == 1 and progress.phase == "building and measuring":
            raise KeyboardInterrupt

    best = tuned(task(), stop, database=path)
    assert list(best) == NAMES[:2] and seen[-1] == (NAMES[1], "interrupted")
    with Database(path) as database:
        summaries = database.keys()
        assert [summary.trials for summary in summaries] == [1, 1]


def test_each_group_has_its_log(workers: Callable[..., Pretend], path: Path, tmp_path: Path) -> None:
    workers()
    tuned(task(), database=path, log=tmp_path / "log")
    assert sorted(p.name for p in tmp_path.glob("log*")) == ["log.group_0", "log.group_1", "log.group_2", "log.turns"]


def test_the_best_is_printed_group_by_group(
    workers: Callable[..., Pretend], path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workers(fails=lambda script, time: "wrong" if '"relu"' in script else None)
    what = task()
    with pytest.raises(InputError, match="has nothing measured for net on 1 thread"):
        Database(path).close()
        what.best(path)
    best = tuned(what, database=path)
    assert list(best) == NAMES[:2]
    what.print_best(path)
    said = capsys.readouterr().out
    first, remaining = said.split("// net.group_1, 1 call: ")
    assert first.startswith("// net.group_0, 2 calls: ") and best[NAMES[0]].script in first
    assert remaining.endswith("// net.group_2, 1 call: nothing measured, so built as without a database\n")
    what.print_best(path, "python")
    assert capsys.readouterr().out.startswith("# net.group_0, 2 calls: ")
    what.print_best(path, "llvm")
    assert "; net.group_1, 1 call: " in capsys.readouterr().out


def test_the_best_of_all_groups_make_a_kernel(workers: Callable[..., Pretend], path: Path) -> None:
    """Scripts are those of the records, and constants are by their names."""
    workers(fails=lambda script, time: "wrong" if '"relu"' in script else None)
    what, random = task(), np.random.default_rng(0)
    best = tuned(what, database=path)
    x, w, b, g = (random.uniform(-1, 1, s).astype(np.float32) for s in ((M, N), (N, N), (N,), (N,)))
    with pytest.warns(UserWarning, match="net: 1 of 3 groups without a record"):
        kernel = what.apply_best(path, {"g": g, "W": w, "b": b})
    right = np.maximum(x + (x @ w + np.exp(g)) @ w + b, 0)
    np.testing.assert_allclose(kernel(x), right, rtol=1e-4, atol=1e-5)
    assert {(group.name, group.source, group.occurrences) for group in kernel.groups} >= {
        ("group_1", "record", 1),
        ("group_2", "written", 1),
    }
    assert list(best) == NAMES[:2]
    with pytest.raises(InputError, match="net has these constants: W, b, g; arrays are given for: W"):
        what.apply_best(path, {"W": w})
    with pytest.raises(TargetError, match="net"):
        what.apply_best(path, {"g": g, "W": w[:2], "b": b})


def layer() -> te.Function:
    """Three products, each with its own elementwise consumer."""
    x, w, v = te.placeholder((M, N), name="X"), te.placeholder((N, N), name="W"), te.placeholder((N, N), name="V")
    first = te.nn.tanh(te.nn.matmul(x, w))
    return te.function("layer", [x, w, v], [te.nn.relu(te.nn.matmul(te.nn.relu(te.nn.matmul(first, v)), w))])


def test_groups_without_a_record_are_built_as_without_a_database(workers: Callable[..., Pretend], path: Path) -> None:
    """Not as written: a network that is tuned in part is no slower than one that is not tuned at all."""
    x, w = te.placeholder((64, 256), name="X"), te.placeholder((256, 256), name="W")
    f = te.function("f", [x, w], [te.nn.relu(te.nn.matmul(te.nn.softmax(te.nn.relu(te.nn.matmul(x, w))), w))])
    what = SearchTask(f, threads=1)
    workers(fails=lambda script, time: "wrong" if "product" in script else None)
    known = what.tune(TuningOptions(trials=len(what.groups) * 4, database=path))
    assert known and len(known) < len(what.groups), "some groups have records"
    default = {g.hash: (g.source, g.verdict) for g in compiler.build(f, threads=1, schedule="auto").groups}
    with pytest.warns(UserWarning, match=r"f: \d of \d groups without a record, built as without a database"):
        kernel = what.apply_best(path)
    others = [group for group in kernel.groups if f"f.{group.name}" not in known]
    assert others and all((group.source, group.verdict) == default[group.hash] for group in others)
    assert any(group.source == "model" for group in others)
    outdated = {name: replace(record, script="nonsense") for name, record in known.items()}
    assert all(
        each._source(record).origin == "model" for each in what.groups for record in (outdated.get(each.name), None)
    )


def test_a_te_function_is_cut_and_its_names_hold(workers: Callable[..., Pretend], path: Path) -> None:
    workers()
    what = SearchTask(layer(), threads=1, constants=["V"])
    assert len(what.groups) > 1 and [len(g.constants) for g in what.groups].count(1) == 1
    what.tune(TuningOptions(trials=2, database=path))
    random = np.random.default_rng(0)
    x, w, v = (random.uniform(-1, 1, s).astype(np.float32) for s in ((M, N), (N, N), (N, N)))
    right = np.maximum(np.maximum(np.tanh(x @ w) @ v, 0) @ w, 0)
    np.testing.assert_allclose(what.apply_best(path, {"V": v})(x, w), right, rtol=1e-4, atol=1e-5)


def test_what_is_printed_maps_canonical_names_back(
    workers: Callable[..., Pretend], path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workers()
    what = SearchTask(layer(), threads=1)
    what.tune(TuningOptions(trials=1, database=path))
    what.print_best(path)
    out = capsys.readouterr().out
    assert out.startswith("// layer.group_0, 1 call: ") and '"matmul"' in out and "product0" not in out
    record = what.best(path)["layer.group_0"]
    assert '"product0"' in record.script and "matmul" not in record.script
    assert task().groups[0].provenance == OWN, "what has groups keeps its names"


def test_bench_shows_the_groups_of_what_was_tuned(workers: Callable[..., Pretend], path: Path) -> None:
    workers()
    workload, settings = SimpleNamespace(function=layer, constants=("V",)), Settings(database=str(path))
    Database(path).close()
    assert list(breakdowns(workload, ["tuned", "tuned.prepared"], settings)) == [], "nothing is known"
    SearchTask(layer(), threads=1, constants=["V"]).tune(TuningOptions(trials=3, database=path))
    some, every = breakdowns(workload, ["strata", "tuned", "tuned.prepared", "numpy"], settings)
    assert (some.title, every.title) == ("tuned, by groups", "tuned.prepared, by groups")
    assert some.row_count == every.row_count == 2 + 3, "a group without constants is the same in both"
    assert list(breakdowns(SimpleNamespace(function=lambda: product(), constants=()), ["tuned"], settings)) == []


def test_a_record_that_was_timed_warm_is_none_of_a_group(workers: Callable[..., Pretend], path: Path) -> None:
    workers()
    group = task().groups[1]
    warm = SearchTask(lower(GroupedProgram(parse(whole()), (1, 2, 3)).groups[1].module), threads=1)
    with Database(path) as database:
        outcome = Outcome("measured", (1e-9,), (1.0,))
        database.add(Record(warm.key, "warm", warm.program, "fast", outcome))
        assert warm.key.program == group.key.program and database.best(group.key) is None
