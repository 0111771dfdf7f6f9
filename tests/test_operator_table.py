"""docs/operators.md is complete, right, and what the generator gives; an operator that fails does not stop it."""

from __future__ import annotations

import dataclasses
import os
import random
import re
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compiler import te
from tests import operator_table
from tests.agreement import BOUNDS, bound, error
from tests.operator_runs import WAYS, Cell, Row, rows
from tests.operators import OPERATORS
from tests.operators.catalogue import Operator

Lines = dict[tuple[str, str], list[str]]
HELD = [way for way in WAYS if way != "torch"]


def written() -> Lines:
    """The cells of the document by operator and dtype."""
    collected: Lines = {}
    name = ""
    for text in operator_table.PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", text)[1:-1]]
        if len(cells) == 3 + len(WAYS) and cells[2] not in ("dtype", "---"):
            name = cells[0].strip("`") or name
            collected[name, cells[2]] = cells[3:]
    return collected


def test_the_document_has_every_operator_on_every_dtype() -> None:
    assert list(written()) == [(name, dtype) for name, o in OPERATORS.items() for dtype in o.dtypes]


def test_no_error_is_above_its_bound_and_nothing_failed() -> None:
    text = operator_table.PAGE.read_text()
    assert "**" not in text
    assert "## Failed" not in text
    for (name, dtype), cells in written().items():
        numbers = [float(re.sub(r"\[.*", "", c)) for w, c in zip(WAYS, cells, strict=True) if w in HELD and c[0] != "-"]
        assert len(numbers) >= 3, f"{name} {dtype}"
        converted = name == "cast"  # whose results have another dtype
        allowed = max(BOUNDS.values()) if converted else BOUNDS.get(dtype, BOUNDS["f32"])
        assert max(numbers) <= allowed, f"{name} {dtype}"


def test_every_reason_is_a_note() -> None:
    text = operator_table.PAGE.read_text()
    used = set(re.findall(r"\[\^(\d+)\](?!:)", text))
    assert used == set(re.findall(r"^\[\^(\d+)\]:", text, re.MULTILINE))


def test_every_operator_says_what_it_computes() -> None:
    for name in OPERATORS:
        assert operator_table.computes(name), name


@pytest.mark.parametrize("name", ["relu"])
def test_the_document_is_what_the_generator_gives(name: str) -> None:
    """Up to what differs between machines and versions: a few roundings."""
    document = written()
    for row in rows(OPERATORS[name], operator_table.SAMPLES):
        generated = operator_table.line(row, {}).split("|")[4:-1]
        for way, new, old in zip(WAYS, generated, document[name, row.dtype], strict=True):
            if way in HELD and re.match(r"\d", new.strip()) and re.match(r"\d", old):
                small = BOUNDS.get(row.dtype, 0) / 20
                assert float(new.strip()) == pytest.approx(float(old), rel=1, abs=small), f"{row.dtype}, {way}"


def twice(dtype: str, parameters: dict[str, Any]) -> te.Function:
    x = te.placeholder((parameters["n"],), dtype, name="X")
    return te.function("twice", [x], te.compute((parameters["n"],), lambda i: x[i] * 2, name="twice"))


def normal(function: te.Function, seed: int) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    dtypes = {"f32": np.float32, "i32": np.int32}
    return [(9 * rng.standard_normal(t.shape)).astype(dtypes[t.dtype]) for t in function.inputs]


def doubled(parameters: dict[str, Any], x: Any) -> Any:
    return x * 2


def refusing(*arguments: Any) -> Any:
    raise RuntimeError('"twice" not implemented\nand more')


TWICE = Operator("relu", ("f32", "i32"), lambda rng: {"n": rng.randint(1, 5)}, twice, doubled, doubled, normal)


def test_rows_of_a_right_operator() -> None:
    assert [row.dtype for row in rows(TWICE, 3)] == ["f32", "i32"]
    for row in rows(TWICE, 3):
        assert not operator_table.failures(row)
        assert set(row.cells) == set(WAYS)
        assert all(cell.error == 0 for cell in row.cells.values() if not cell.absent)
        assert Row.from_json(row.as_json()) == row


def test_a_wrong_result_fails() -> None:
    wrong = dataclasses.replace(TWICE, reference=lambda parameters, x: x * 2 + 1)
    for row in rows(wrong, 2):
        lines = operator_table.failures(row)
        assert "an error of" in lines[0]
        assert "{'n': " in lines[0]
        assert "**" in operator_table.line(row, {})
    assert operator_table.report({"relu": rows(wrong, 1)}) == 1


def test_one_dtype_that_cannot_be_built_costs_only_its_row() -> None:
    partly = dataclasses.replace(TWICE, build=lambda d, p: twice(d, p) if d == "i32" else refusing())
    f32, i32 = rows(partly, 1)
    assert f32.failed == 'RuntimeError: "twice" not implemented'
    assert "**failed**" in operator_table.line(f32, {})
    assert not operator_table.failures(i32)
    page = operator_table.page({"relu": [f32, i32]})
    assert '- relu f32: RuntimeError: "twice" not implemented' in page


@pytest.mark.doors
def test_what_cannot_run_has_a_note_and_no_number() -> None:
    notes: dict[str, int] = {}
    (row, _) = rows(dataclasses.replace(TWICE, torch=refusing), 1)
    assert not operator_table.failures(row)
    note = 'torch: RuntimeError: "twice" not implemented'
    assert operator_table.line(row, notes).endswith(f"| -[^{notes[note]}] |")
    (row, _) = rows(dataclasses.replace(TWICE, torch=None), 1)
    assert operator_table.line(row, notes).endswith(f"| -[^{len(notes)}] |")


def crash(name: str, samples: int, sender: Connection) -> None:
    os.abort()


def hang(name: str, samples: int, sender: Connection) -> None:
    time.sleep(60)


def test_an_operator_that_crashes_or_hangs_is_a_row() -> None:
    name = next(iter(OPERATORS))
    crashed = operator_table.run(name, 1, crash)
    assert [row.failed for row in crashed] == ["its process ended with status -6"] * len(OPERATORS[name].dtypes)
    hung = operator_table.run(name, 1, hang, seconds=0.5)
    assert {row.failed for row in hung} == {"no end after 0.5 s"}
    assert operator_table.report({name: crashed}) == 1


def test_samples_are_the_same_for_every_dtype() -> None:
    for operator in OPERATORS.values():
        first = operator.sample(random.Random(f"{operator.name} 0"))
        assert first == operator.sample(random.Random(f"{operator.name} 0"))


@pytest.mark.parametrize(
    ("got", "reference", "expected"),
    [
        (np.float32([1, 2]), np.array([1.0, 2.5]), 0.2),
        (np.float32([0.5]), np.array([0.25]), 0.25),
        (np.float32([np.nan]), np.array([1.0]), np.inf),
        (np.float32([1]), np.array([np.nan]), np.inf),
        (np.float32([np.nan, 1]), np.array([np.nan, 1.0]), 0),
        (np.float16([np.inf]), np.array([1e6]), 0),
        (np.float16([65504]), np.array([1e6]), np.inf),
        (np.int8([-128]), np.array([128]), 0),
        (np.int8([3]), np.array([1]), 2),
        (np.array([True]), np.array([False]), 1),
        (np.uint8([255]), np.array([-1]), 0),
        (np.zeros((0, 3), np.float32), np.zeros((0, 3)), 0),
    ],
)
def test_errors(got: Any, reference: Any, expected: float) -> None:
    assert error(got, reference) == pytest.approx(expected)


def test_a_wrong_shape_is_an_error_of_its_own() -> None:
    with pytest.raises(ValueError, match=r"shape \[2\], the reference \[1, 2\]"):
        error(np.zeros(2), np.zeros((1, 2)))


def test_bounds_are_those_of_the_operator_or_of_the_result() -> None:
    assert bound("bf16", np.zeros(1, np.float32)) == BOUNDS["bf16"]
    assert bound("f64", np.zeros(1, np.float32)) == BOUNDS["f32"]
    assert bound("i8", np.zeros(1, np.float64)) == BOUNDS["f64"]
    assert bound("f32", np.zeros(1, np.int64)) == 0


def test_a_cell_shows_its_largest_error() -> None:
    row = Row("relu", "f32", {way: Cell(1.26e-7) for way in WAYS})
    assert operator_table.line(row, {}).count("| 1.3e-07 ") == len(WAYS)


def test_a_page_is_read_as_it_was_written() -> None:
    text = operator_table.PAGE.read_text()
    assert operator_table.page(operator_table.read(text)) == text
    broken = [
        Row("relu", "f32", {way: Cell(0.5, "slow", "an error of 0.5") for way in WAYS}),
        Row("relu", "i32", {}, "no end after 1 s"),
    ]
    failed = operator_table.page(
        {"relu": broken, "exp": [Row("exp", "f32", {way: Cell(None, "none") for way in WAYS})]}
    )
    assert operator_table.page(operator_table.read(failed)) == failed


def test_one_operator_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also without the results of an earlier run."""
    before = operator_table.PAGE.read_text()
    monkeypatch.setattr(operator_table, "PAGE", tmp_path / "operators.md")
    monkeypatch.setattr(operator_table, "CACHE", tmp_path / "build" / "operators.json")
    operator_table.PAGE.write_text(before)
    made = [Row("relu", dtype, {way: Cell(0.0) for way in WAYS}) for dtype in OPERATORS["relu"].dtypes]
    monkeypatch.setattr(operator_table, "run", lambda name, samples: made)
    assert operator_table.main(["relu"]) == 0
    table, expected = operator_table.read(operator_table.PAGE.read_text()), operator_table.read(before)
    assert list(table) == list(OPERATORS)
    assert table.pop("relu") == made
    expected.pop("relu")
    assert table == expected
