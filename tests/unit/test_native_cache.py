"""Machine code from the cache: the same kernel, and none for another program, setting, machine or compiler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from compiler.cache import entries
from compiler.dialects.functions import find_function
from compiler.native import pool
from compiler.native.compile import Job, key_text
from compiler.native.unit import Unit, UnitKey
from tests.unit.test_native import packed, product


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("STRATA_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the units that are compiled."""
    found: list[str] = []
    compile_unit = pool.compile_unit

    def noted(job: Job) -> Unit:
        found.append(job.name)
        return compile_unit(job)

    monkeypatch.setattr(pool, "compile_unit", noted)
    return found


def job(name: str = "one") -> Job:
    text = key_text(find_function(product().module))
    return Job(UnitKey(text, packed(), (1,), (), "contract", 1, "here"), name)


def test_a_unit_is_compiled_once_whatever_its_name(folder: Path, compiled: list[str]) -> None:
    (first,) = pool.compiled([job()])
    (second,) = pool.compiled([job("two")])
    assert compiled == ["one"] and first.seconds > 0 and first.prepare
    assert [code.name for code in second.codes] == ["two.prepare", "two"]
    assert replace(second.named("one"), seconds=first.seconds) == first


OTHERS: dict[str, Callable[[UnitKey], UnitKey]] = {
    "text": lambda key: replace(key, text=key.text.replace("add", "mul")),
    "script": lambda key: replace(key, script=None),
    "constants": lambda key: replace(key, constants=()),
    "shared": lambda key: replace(key, shared=((0, 0),)),
    "policy": lambda key: replace(key, policy="strict"),
    "threads": lambda key: replace(key, threads=2),
    "machine": lambda key: replace(key, machine="elsewhere"),
}


def test_units_of_other_keys_are_others(folder: Path) -> None:
    assert set(OTHERS) == set(UnitKey.__dataclass_fields__)
    (unit,) = pool.compiled([job()])
    assert entries.get(Unit, [job().key]) == unit
    for change in OTHERS.values():
        assert entries.get(Unit, [change(job().key)]) is None
