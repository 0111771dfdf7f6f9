"""Options of tuning with values that they cannot have: a sentence that names the option, before anything is begun."""

from __future__ import annotations

import math
from dataclasses import fields
from inspect import signature
from typing import Any

import numpy as np
import pytest
from xdsl.utils.exceptions import ParseError

from compiler.autotune import SearchTask, TuningOptions
from compiler.autotune.search import Options
from compiler.support.errors import InputError, StrataError
from tests.unit.database.test_database import product

NUMBERS: list[Any] = [
    "8",
    math.nan,
    math.inf,
    -math.inf,
    8.5,
    True,
    -1,
    10**30,
    -(10**400),
    b"8",
    [8],
    (),
    1j,
    object(),
]
NOT_TEXT: list[Any] = [7, 7.5, True, b"x", ["x"], {}, object(), "a\0b", "a\nb", "", " ", "\x1b[31m"]
NO_FILE: list[Any] = [7, 7.5, True, ["x"], {}, object(), "a\0b", ""]
NO_LIST: list[Any] = [7, "text", b"x", True, object(), [7], [None]]
NO_RULES: list[Any] = [7, "text", [7], ["text"], [None]]
FULL: list[Any] = [7, "text", [7], {}, object(), True]

TUNING: dict[str, list[Any]] = {
    "trials": [*NUMBERS, 0],
    "seconds": [value for value in NUMBERS if value not in (8.5, 10**30)] + [0],
    "database": NO_FILE,
    "seed": NUMBERS,
    "allocation": [*FULL, "fair", None],
    "batch": [*NUMBERS, 0, None],
    "builders": [*NUMBERS, 0, 10**6],
    "log": NO_FILE,
    "callbacks": [*NO_LIST, None],
    "search": [*FULL, None],
    "show": [7, "yes", [], 1.0],
    "scheduler": NOT_TEXT,
    "began": [value for value in NUMBERS if value not in (8.5, 10**30, None)],
    "patience": [value for value in NUMBERS if value not in (8.5, 10**30)] + [0, None],
}
SEARCH: dict[str, list[Any]] = {
    **{name: [value for value in NUMBERS if value is not None] for name in ("start", "pool", "mutants", "parents")},
    **dict.fromkeys(("generations", "repeats", "trials"), NUMBERS),
    **{name: [*NUMBERS, 1.5] for name in ("random", "greedy", "descent")},
}
TASK: dict[str, list[Any]] = {
    "func": [7, True, b"x", None, object(), "a\0b.mlir", "nothing", []],
    "args": [7, "text", True, object(), [1]],
    "target": [*NOT_TEXT, None, "tpu"],
    "threads": [value for value in NUMBERS if value is not None] + [0],
    "policy": [*NOT_TEXT, None, "loose"],
    "error": ["3e-5", math.nan, math.inf, 1, -1, True, [1e-5], object()],
    "rules": NO_RULES,
    "name": NOT_TEXT,
    "template": [7, True, b"x", ["x"], object(), "nonsense"],
    "machine": [7, "text", True, object()],
    "constants": [*NO_LIST, ["nothing"]],
    "arch": [*NOT_TEXT],
    "timing": [*NOT_TEXT, None, "hot"],
}


def test_every_option_is_here() -> None:
    assert set(TUNING) == {field.name for field in fields(TuningOptions)}
    assert set(SEARCH) == {field.name for field in fields(Options)}
    assert set(TASK) == set(signature(SearchTask).parameters)


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in TUNING.items() for value in values])
def test_tuning_options(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"the tuning option {name}"):
        TuningOptions(**{name: value})


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in SEARCH.items() for value in values])
def test_search_options(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"the search option {name} is"):
        Options(**{name: value})


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in TASK.items() for value in values])
def test_tasks(name: str, value: Any) -> None:
    stated: dict[str, Any] = {"func": product(), name: value}
    with pytest.raises((StrataError, ParseError)) as said:
        SearchTask(**stated)
    assert str(said.value).strip()


def test_numbers_of_numpy_are_numbers() -> None:
    options = TuningOptions(
        np.int64(8), np.float32(2.0), seed=np.int32(1), batch=np.uint8(4), search=Options(np.int64(3))
    )
    assert (options.trials, options.seconds, options.seed, options.batch) == (8, 2.0, 1, 4)
    assert {type(value) for value in (options.trials, options.seed, options.search.start)} == {int}
