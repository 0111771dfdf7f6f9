"""The GPUs that kernels are made for, by name, loaded when used."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from compiler.errors import TargetError
from compiler.targets.machine import Gpu

DEVICES = {"cuda": "compiler.targets.cuda.device"}
"""Modules with two functions: `made`, of a lowered module, its host function, what that takes, a floating-point policy
and an architecture to a kernel that can be called; `machine`, of an architecture to what is known of its GPUs."""


def device(name: str) -> Callable[..., Any]:
    """What makes kernels for a GPU. Raises TargetError for a name that there is not."""
    found: Callable[..., Any] = _module(name).made
    return found


def described(name: str, arch: str) -> Gpu:
    """The GPU that stands for an architecture of a target. Raises TargetError for names that there are not."""
    found: Gpu = _module(name).machine(arch)
    return found


def _module(name: str) -> Any:
    place = DEVICES.get(name)
    if place is None:
        raise TargetError(f"unknown target '{name}' (there are cpu, {', '.join(DEVICES)})")
    return import_module(place)
