"""Tuning with inputs that never change: their layout is prepared, searched, and not timed."""

from __future__ import annotations

import pickle
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from compiler import recipes
from compiler.autotune.measure.limits import Limits, Sampling
from compiler.autotune.measure.runner import MeasureJob, RunnerSetup
from compiler.autotune.options import TuningOptions
from compiler.autotune.task import SearchTask
from compiler.database import Database
from compiler.database.replay import plan_record
from compiler.driver import build_unit, with_constants
from compiler.driver.parts.groups import OWN
from compiler.driver.reference.cases import reference
from compiler.driver.reference.subject import Subject
from compiler.passes.split_constants import split, without_preparation
from compiler.pipeline.loops import lower
from compiler.program.read import read
from compiler.recipes import GebpTiles
from compiler.schedule import Schedule
from compiler.space.cpu_features import extract
from compiler.space.space import work
from compiler.support.errors import InputError
from tests.measuring import started
from tests.programs import matmul

M, N, K = 48, 64, 80
FEW = Limits(sampling=Sampling(min_samples=1, max_samples=1, min_seconds=0.0))


layer = partial(matmul, M, N, K, name="layer", inputs="XW", output="Y")


def packed(first: str) -> Schedule:
    """The layer with both operands packed, some of them first."""
    s = Schedule(with_constants(layer(), lower(layer()), ["W"]))
    recipes.tiled_gebp(s, s.get_block("Y"), GebpTiles(6, 2, 40, 2, 2), first=first)
    return s


def test_constants_are_known_to_the_program_and_to_its_key() -> None:
    plain, fixed = SearchTask(layer(), threads=1), SearchTask(layer(), threads=1, constants=["W"])
    assert fixed.schedule.program.constants == ("a0",) and plain.schedule.program.constants == ()
    assert fixed.provenance != OWN and fixed.provenance.values["a0"] == "W"
    assert read(fixed.schedule.function) == fixed.schedule.program
    assert plain.key != fixed.key == SearchTask(layer(), threads=1, constants=["W"]).key


def test_what_is_prepared_is_no_part_of_what_is_called() -> None:
    prepacked, unpacked = packed("b").program, packed("").program
    assert [block for block in without_preparation(prepacked).blocks if block.startswith("W.pack")] == []
    assert set(without_preparation(unpacked).blocks) == set(unpacked.blocks)
    machine = SearchTask(layer(), threads=1).machine
    copies = [extract(without_preparation(p), work(p), machine).features[1] for p in (prepacked, unpacked)]
    assert 0 < copies[0] < copies[1]
    parts = split(packed("b").function, ["W"])
    assert all("constants" not in f.attributes for f in parts.functions())


def test_layouts_of_constants_come_first_in_the_space() -> None:
    task = SearchTask(layer(), threads=1, constants=["W"])
    names = [sketch.name for sketch in task.space.sketches]
    assert names[:2] == ["Y: gebp b, b first", "Y: gebp ab, b first"] and "Y: gebp unpacked" in names
    both = SearchTask(layer(), threads=1, constants=["X", "W"])
    assert both.space.sketches[0].name == "Y: gebp ab, ab first"
    assert not any(sketch.name.endswith("b first") for sketch in SearchTask(layer(), threads=1).space.sketches[:1])


def test_a_runner_prepares_for_each_set_of_inputs(tmp_path: Path) -> None:
    module = with_constants(layer(), lower(layer()), ["W"])
    subject = Subject(str(module))
    path = tmp_path / "reference"
    path.write_bytes(pickle.dumps(reference(subject)))
    runner = started(RunnerSetup(subject, FEW, str(path)))
    artefact = build_unit(packed("b"))
    assert artefact.prepare is not None and artefact.takes == (0,)
    assert artefact.prepares == (1,) and len(artefact.prepared) == 1
    for _ in range(3):
        assert runner(MeasureJob(artefact)).ok
    assert runner(MeasureJob(build_unit(packed("")))).ok


def test_a_task_with_constants_is_tuned_and_built(tmp_path: Path) -> None:
    database = tmp_path / "tuned.db"
    task = SearchTask(layer(), threads=1, constants=["W"])
    record = task.tune(TuningOptions(trials=2, batch=2, database=database, builders=1))
    assert record is not None and record.outcome.ok
    random = np.random.default_rng(0)
    x, w = random.standard_normal((M, K), np.float32), random.standard_normal((K, N), np.float32)
    np.testing.assert_allclose(task.apply_best(database, {"W": w})(x), x @ w, rtol=1e-4, atol=1e-4)
    for given in (None, {"X": x}, {"W": w, "X": x}):
        with pytest.raises(InputError, match="layer has these constants: W; arrays are given for: "):
            task.apply_best(database, given)
    with Database(database) as opened:
        original, scheduled = plan_record(next(iter(opened.records(task.key))))
    assert original.constants == scheduled.constants == ("a0",)


def test_texts_need_no_arrays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = tmp_path / "tuned.db"
    task = SearchTask(layer(), threads=1, constants=["W"])
    task.tune(TuningOptions(trials=1, database=database, builders=1))
    for mode in ("llvm", "asm"):
        task.print_best(database, mode)
        assert "layer" in capsys.readouterr().out


@pytest.mark.parametrize(("names", "said"), [(["V"], "has no input 'V'"), (["Y"], "'Y' cannot be constant")])
def test_what_is_no_input_is_refused(names: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        SearchTask(layer(), threads=1, constants=names)
