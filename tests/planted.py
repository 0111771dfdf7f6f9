"""Faults planted in functions of the compiler, which random programs must show."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial, wraps
from types import ModuleType
from typing import Any

import pytest

Plant = Callable[[pytest.MonkeyPatch], None]
"""It puts a fault into the compiler; its docstring says what is wrong then."""


def in_place_of(module: ModuleType, name: str) -> Callable[[Callable[..., Any]], Plant]:
    """Plant a function in the place of one of a module, which it takes as its first argument."""

    def decorate(wrong: Callable[..., Any]) -> Plant:
        @wraps(wrong)
        def plant(monkeypatch: pytest.MonkeyPatch) -> None:
            monkeypatch.setattr(module, name, partial(wrong, getattr(module, name)))

        return plant

    return decorate


def assert_seen(
    fault: Plant, monkeypatch: pytest.MonkeyPatch, shows_fault: Callable[[int], bool], seeds: Iterable[int]
) -> None:
    """Check that one of the seeds shows a fault, and that it shows none without it."""
    with monkeypatch.context() as planted:
        fault(planted)
        seed = next((seed for seed in seeds if shows_fault(seed)), None)
    assert seed is not None, fault.__doc__
    assert not shows_fault(seed), "the program is right without the fault"
