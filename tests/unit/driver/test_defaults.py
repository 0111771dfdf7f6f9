"""Builds without a trial: which schedule each group has, why it may, and that results are right."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import compiler
from compiler import te
from compiler.analysis.verify.prove import Verdict
from compiler.autotune.options import TuningOptions
from compiler.autotune.task import SearchTask
from compiler.database import Database, Record
from compiler.database.outcome import WARM, Outcome
from compiler.driver import BuildPlan, building, module_in_groups
from compiler.driver.building import source_of
from compiler.driver.choice import verdict as judged
from compiler.driver.choice.mode import schedule_mode
from compiler.driver.choice.preferred import PAYS, preferred_schedule, scheduled_seconds
from compiler.driver.parts.partition import Partition, Unscheduled
from compiler.driver.units.unit import Scheduled
from compiler.recipes.draft import Alternative, Draft
from compiler.schedule import Schedule
from compiler.support.errors import InputError, LoweringError, ScheduleError, TargetError
from compiler.targets.arguments import Array
from compiler.targets.cpu import Kernel
from compiler.targets.groups import RUN_ONCE
from compiler.te.tensor import Tensor
from tests.said import Strata

nn = te.nn


def _in(*shape: int, name: str = "X") -> Tensor:
    return te.placeholder(shape, "f32", name)


def _dense(m: int = 24, k: int = 40, n: int = 33) -> te.Function:
    x, w, b = _in(m, k), _in(k, n, name="W"), _in(n, name="b")
    return te.function("dense", [x, w, b], nn.relu(nn.add(nn.matmul(x, w), b)))


def _two_groups() -> te.Function:
    x, g, v, w = _in(20, 30), _in(40, name="G"), _in(30, 40, name="V"), _in(40, 24, name="W")
    return te.function("two", [x, g, v, w], nn.matmul(nn.rms_norm(nn.matmul(x, v), g), w))


def _arrays(f: te.Function) -> list[Array]:
    random = np.random.default_rng(0)
    return [random.standard_normal(tensor.shape).astype(np.float32) for tensor in f.inputs]


def _sources(kernel: Kernel) -> set[tuple[str, str]]:
    return {(group.source, group.verdict) for group in kernel.groups}


@pytest.mark.parametrize("make", [_dense, _two_groups])
def test_a_default_is_proved_and_right(make: Callable[[], te.Function]) -> None:
    f = make()
    arrays = _arrays(f)
    kernel, written = compiler.build(f, schedule="auto"), compiler.build(f, schedule="written")
    assert ("model", "proved") in _sources(kernel) <= {("model", "proved"), ("written", "")}
    assert [a.name for a in kernel.arguments] == [a.name for a in written.arguments]
    np.testing.assert_allclose(kernel(*arrays), written(*arrays), rtol=1e-5, atol=1e-5)
    assert "vectorized" in kernel.text("loop") and "vectorized" not in written.text("loop")


def test_scales_of_a_constant_batch_norm_are_computed_once() -> None:
    """In a group of their own, which runs when the kernel is made."""
    x, w = te.placeholder((1, 4, 64, 64), name="X"), te.placeholder((4, 4, 1, 1), name="W")
    mean, variance = (te.placeholder((4,), name=name) for name in "MV")
    function = te.function("net", [x, w, mean, variance], te.nn.batch_norm(te.nn.conv2d(x, w), mean, variance))
    random = np.random.default_rng(0)
    arrays = {t.name: random.random(t.shape, np.float32) for t in function.inputs}
    kernel = compiler.build(function, threads=1, constants={name: arrays[name] for name in "WMV"}, schedule="written")
    assert [group.verdict == RUN_ONCE for group in kernel.groups] == [True, False]
    convolved = np.einsum("nchw,fc->nfhw", arrays["X"], arrays["W"][..., 0, 0])
    scaled = (convolved - arrays["M"][:, None, None]) / np.sqrt(arrays["V"][:, None, None] + 1e-5)
    np.testing.assert_allclose(kernel(arrays["X"]), scaled, rtol=1e-4, atol=1e-4)
    assert not any(
        group.verdict == RUN_ONCE for group in compiler.build(function, threads=1, schedule="written").groups
    )


def test_constants_are_prepared_once() -> None:
    f = _dense()
    x, w, b = _arrays(f)
    kernel = compiler.build(f, constants={"W": w, "b": b}, schedule="auto")
    assert [a.name for a in kernel.arguments][:1] == ["X"] and kernel.fixed.preparation is not None
    np.testing.assert_allclose(kernel(x), np.maximum(x @ w + b, 0), rtol=1e-5, atol=1e-5)


def test_the_environment_says_it_where_nobody_does(monkeypatch: pytest.MonkeyPatch) -> None:
    f = _dense()
    monkeypatch.setenv("STRATA_SCHEDULE", "written")
    assert compiler.build(f).groups == () and compiler.build(f, schedule="auto").groups
    monkeypatch.delenv("STRATA_SCHEDULE")
    assert compiler.build(f).groups
    monkeypatch.setenv("STRATA_SCHEDULE", "fast")
    with pytest.raises(InputError, match=r"'fast' \(STRATA_SCHEDULE\): neither auto nor written"):
        compiler.build(f)


def test_a_build_under_a_script(tmp_path: Path) -> None:
    f = _dense()
    schedule = Schedule(f)
    schedule.parallel("matmul.m")
    file = tmp_path / "script.mlir"
    file.write_text(str(schedule))
    expected = compiler.build(schedule).text("loop")
    for given in (str(schedule), schedule, schedule.script, file, str(file)):
        kernel = compiler.build(f, schedule=given)
        assert kernel.text("loop") == expected != compiler.build(f, schedule="written").text("loop")
    x, w, b = _arrays(f)
    constant = compiler.build(f, constants={"W": w, "b": b}, schedule=str(schedule))
    np.testing.assert_allclose(constant(x), np.maximum(x @ w + b, 0), rtol=1e-5, atol=1e-5)
    with pytest.raises(ScheduleError, match="block 'other': there is none"):
        compiler.build(f, schedule=str(schedule).replace('"matmul"', '"other"'))
    with pytest.raises(InputError, match="is not a database"):
        way = tmp_path / "text.db"
        way.write_text("no database, and no script")
        compiler.build(f, schedule=way)


def test_what_a_task_prints_builds_its_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also where laws have made another program of what was written: here of a product with a transposed matrix."""
    x, w = _in(24, 40), _in(33, 40, name="W")
    f = te.function("f", [x, w], nn.relu(nn.matmul(nn.reshape(x, (24, 40)), nn.transpose(w, (1, 0)))))
    task = SearchTask(f, threads=1)
    task.tune(TuningOptions(trials=2, batch=2, database=tmp_path / "f.db", show=False))
    text = task.print_best(tmp_path / "f.db")
    assert text in capsys.readouterr().out
    kernel = compiler.build(f, threads=1, schedule=text)
    a, b = _arrays(f)
    np.testing.assert_allclose(kernel(a, b), np.maximum(a @ b.T, 0), rtol=1e-5, atol=1e-5)
    assert "vector" in kernel.text("loop")


@pytest.mark.parametrize("stated", ["best", 3, "/nowhere/a.db"])
def test_other_ways_are_refused(stated: object) -> None:
    with pytest.raises(InputError, match="schedule is"):
        schedule_mode(stated)


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_text("no database, but long enough to be one" * 100)
    with pytest.raises(InputError, match=r"a\.db"):
        compiler.build(_dense(), schedule=tmp_path / "a.db")
    with pytest.raises(TargetError, match="apply_best"):
        compiler.build(_dense(), "cuda", schedule=tmp_path / "a.db")


def test_schedules_and_lower_levels_stay_as_they_are() -> None:
    loops = compiler.lower(_dense())
    schedule = Schedule(loops)
    for x in (loops, str(loops), schedule):
        kernel = compiler.build(x, schedule="auto")
        assert kernel.groups == () and "vectorized" not in kernel.text("loop")


def _database(path: Path, task: SearchTask, script: str) -> Path:
    with Database(path) as database:
        outcome = Outcome("measured", (1e-3,) * 3, (1.0,) * 3)
        database.add(Record(task.key, task.name, task.program, script, outcome))
    return path


def test_a_record_is_preferred_and_others_are_defaults(tmp_path: Path) -> None:
    f = _two_groups()
    task = SearchTask(f, threads=1)
    first = task.groups[0]
    schedule = Schedule(first.module)
    label = next(iter(schedule.program.blocks))
    schedule.split(schedule.get_loops(schedule.get_block(label))[0], [None, 4])
    path = _database(tmp_path / "a.db", first, str(schedule.script))
    for _ in range(2):  # compiled, then from the cache
        with pytest.warns(
            UserWarning, match=r"two: 2 of 3 groups without a record, built as without a database \(.*a.db"
        ):
            kernel = compiler.build(f, threads=1, schedule=path)
    first, *others = [group.source for group in kernel.groups]
    assert first == "record" and "model" in others and "record" not in others
    arrays = _arrays(f)
    np.testing.assert_allclose(kernel(*arrays), compiler.build(f)(*arrays), rtol=1e-4, atol=1e-5)


def test_a_record_that_does_not_apply_any_more_is_passed_over(tmp_path: Path) -> None:
    task = SearchTask(_dense(), threads=1)
    schedule = Schedule(task.module)
    schedule.split(schedule.get_loops(schedule.get_block(next(iter(schedule.program.blocks))))[0], [None, 4])
    script = str(schedule.script)
    path = _database(tmp_path / "a.db", task, script.replace("sched.get_block", "sched.get_blocks", 1))
    with pytest.warns(UserWarning, match="dense: 1 of 1 group with a record that is refused, built as without a dat"):
        ((source, verdict),) = _sources(compiler.build(_dense(), threads=1, schedule=path))
    assert source == "model" and verdict.startswith("proved; its record is not used: ")
    with pytest.warns(UserWarning, match=r"dense is built as without a database: its record is not used: .*get_blocks"):
        kernel = task.apply_best(path)
    assert _sources(kernel) == {("model", "proved")}
    path = _database(tmp_path / "b.db", task, script)
    assert _sources(compiler.build(_dense(), threads=1, schedule=path)) == {("record", "proved")}


def _says(answer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judged, "verify_schedule", lambda scheduled, original: Verdict(answer, "so it is"))


def test_an_undecided_default_is_tried_beside_the_written_program(monkeypatch: pytest.MonkeyPatch) -> None:
    _says("undecided", monkeypatch)
    kernel = compiler.build(_dense(), schedule="auto")
    assert _sources(kernel) == {("model", "undecided: so it is; it agrees with the written program")}


def test_a_refuted_default_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    _says("refuted", monkeypatch)
    kernel = compiler.build(_dense(), schedule="auto")
    assert _sources(kernel) == {("written", "refuted: so it is")}
    assert "vectorized" not in kernel.text("loop")


def test_a_schedule_of_another_program_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    _says("undecided", monkeypatch)
    x = _in(20)
    first, second = (Schedule(compiler.lower(te.function("f", [x], nn.add(x, n)))) for n in (1.0, 2.0))
    usable, verdict = judged.judged_verdict(second, first, "contract", 1)
    assert not usable and "it differs from the written program in 20 of 20 elements" in verdict
    assert judged.judged_verdict(first, first, "contract", 1)[0]


def test_known_constants_are_passed_where_a_schedule_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    _says("undecided", monkeypatch)
    table = te.constant(np.arange(40, dtype=np.float32).reshape(8, 5), name="T")
    x = _in(20, 8)
    f = te.function("f", [x], nn.matmul(x, table))
    ((source, verdict),) = _sources(compiler.build(f, schedule="auto"))
    assert source == "model" and "agrees" in verdict


def test_what_is_not_compiled_is_as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Partition.plan

    def refusing(self: Partition, sources: dict[str, Scheduled], module: ModuleOp) -> BuildPlan:
        if any(source.script for source in sources.values()):
            raise LoweringError("too much")
        return plan(self, sources, module)

    monkeypatch.setattr(Partition, "plan", refusing)
    assert _sources(compiler.build(_two_groups(), schedule="auto")) == {("written", "not compiled: too much")}


def test_a_short_program_runs_on_one_thread() -> None:
    short, long = SearchTask(_dense(), threads=2), SearchTask(_dense(256, 512, 512), threads=2)
    assert scheduled_seconds(short.schedule.program) < PAYS < scheduled_seconds(long.schedule.program)
    for task, parallel in ((short, False), (long, True)):
        schedule = preferred_schedule(task)
        assert schedule is not None and ("parallel" in str(schedule.module)) == parallel


def test_what_computes_nothing_is_as_written() -> None:
    x = _in(4)
    f = te.function("f", [x], nn.reshape(x, (2, 2)))
    np.testing.assert_array_equal(
        building.build(f, schedule="auto")(np.arange(4.0, dtype=np.float32)), [[0, 1], [2, 3]]
    )


def test_a_gpu_gets_what_its_rules_prefer() -> None:
    text = compiler.build(_dense(), "cuda", schedule="auto").text
    assert "threadIdx.x" in text and "threadIdx.x" not in compiler.build(_dense(), "cuda", schedule="written").text


def test_the_command_line_says_it(tmp_path: Path, strata: Strata) -> None:
    path = tmp_path / "f.mlir"
    path.write_text(str(_dense().module))
    for way, said in (("auto", "schedule: model, proved\n"), ("written", "")):
        out = strata("run", str(path), "--calls", "1", "--schedule", way)
        assert said in out and ("schedule" in out) == bool(said)
    assert "'nowhere.db': neither auto nor written" in strata("run", str(path), "--schedule", "nowhere.db", status=1)


def test_a_sum_to_a_scalar_runs_on_many_threads_of_a_gpu() -> None:
    x = _in(256, 512)
    f = te.function("f", [x], nn.sum(x))
    text = compiler.build(f, "cuda", schedule="auto").text
    assert "__shared__" in text or "__shfl" in text
    assert "threadIdx" not in compiler.build(f, "cuda", schedule="written").text


def test_what_calls_others_is_built_for_a_gpu() -> None:
    kernel = compiler.build(module_in_groups(_two_groups()), "cuda", schedule="auto")
    assert len(kernel.groups) == 3 <= len(kernel.launches)


def test_a_build_loads_no_library_of_the_search() -> None:
    script = "import sys; import compiler; compiler.build; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert "compiler.driver.building" in loaded and not {"sklearn", "scipy", "rich"} & set(loaded)


def _parallel_sums_or_rows(draft: Draft, label: str) -> Iterator[Alternative]:
    """The first alternative is illegal: the iterations of the sum depend on each other."""

    def parallel(draft: Draft, position: int) -> list[str]:
        draft.schedule.parallel(draft.schedule.get_loops(draft.schedule.get_block(label))[position])
        return [label]

    yield Alternative("sums", lambda draft: parallel(draft, 2))
    yield Alternative("rows", lambda draft: parallel(draft, 0))


def test_steps_are_judged_where_the_whole_is_not_proved() -> None:
    x, y = _in(400, 800), _in(800, 600, name="Y")
    loops = compiler.lower(te.function("f", [x, y], nn.matmul(x, y)))
    source = source_of(Unscheduled("f", loops, 2, "contract", WARM, [_parallel_sums_or_rows]))
    assert source.verdict == "proved" and source.tree is not None
    assert [loop.kind for loop in source.tree.loops.values()] == ["parallel", "serial", "serial"]
