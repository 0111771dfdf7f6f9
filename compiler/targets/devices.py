"""The GPUs that kernels are made for, by name, loaded when used."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from compiler.errors import TargetError

DEVICES = {"cuda": "compiler.targets.cuda.kernel:made"}
"""Functions of a lowered module, its host function, what that takes, a floating-point policy and an architecture to a
kernel that can be called."""


def device(name: str) -> Callable[..., Any]:
    """What makes kernels for a GPU. Raises TargetError for a name that there is not."""
    place = DEVICES.get(name)
    if place is None:
        raise TargetError(f"unknown target '{name}' (there are cpu, {', '.join(DEVICES)})")
    module, _, attribute = place.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), attribute)
    return found
