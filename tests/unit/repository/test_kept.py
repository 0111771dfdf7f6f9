"""The promises of docs/stability.md: files that 0.1.0 wrote are read, and mean the same. Add files, change none."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest

import compiler
from compiler.database import Database, Record
from compiler.database.lines import from_line
from compiler.database.replay import replay
from compiler.dialects.sched import SchedOp
from compiler.pipeline.source import parse
from compiler.schedule.dialect import SCHED

KEPT = Path(__file__).parents[2] / "kept"
HANDLES, *STEPS = (KEPT / "sched.txt").read_text("utf-8").rstrip().split("\n\n")


def script(step: str) -> str:
    """A script of some steps, behind those that get the blocks C and D and their loops."""
    lines = "\n".join((HANDLES, step))
    return (
        "transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {\n"
        f"{lines}\ntransform.yield\n}}"
    )


@pytest.mark.parametrize("step", STEPS)
def test_steps_of_scripts_are_read_and_written_as_they_were(step: str) -> None:
    text = str(parse(script(step)))
    assert [line for line in step.splitlines() if line not in text] == []


def test_every_step_is_kept() -> None:
    """A new op of scripts has a line here, too, from the version on that has it."""
    ops = {op.name for step in STEPS for op in parse(script(step)).walk() if isinstance(op, SchedOp)}
    assert ops == {op.name for op in SCHED.operations}


def test_te_text_computes_what_it_did() -> None:
    a, b = (np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32) for shape in ((8, 6), (6, 4)))
    product = a @ b
    kernel = compiler.build((KEPT / "te.mlir").read_text("utf-8"))
    np.testing.assert_allclose(kernel(a, b), np.where(product > 0.5, np.exp(product), product * 0.25), rtol=1e-5)


def test_records_are_read_and_their_scripts_apply(tmp_path: Path) -> None:
    line = from_line((KEPT / "record.jsonl").read_text("utf-8"))
    with sqlite3.connect(tmp_path / "kept.db") as file:
        file.executescript((KEPT / "records.sql").read_text("utf-8"))
    with Database(tmp_path / "kept.db") as database:
        (record,) = database.records()
        assert isinstance(line, Record) and line.uuid == record.uuid and line.script == record.script
        best = database.best(record.key)
        assert best is not None and best.outcome.seconds == (1e-6,)
        database.add(Record(record.key, "again", record.program, record.script, record.outcome))
    assert str(replay(record).verify()).startswith("proved")
