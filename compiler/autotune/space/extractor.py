"""`sight`: which features a machine's candidates have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from compiler.autotune.space import cpu_features, gpu_features
from compiler.autotune.space.cpu_features import Seen
from compiler.program.tree import Program
from compiler.targets.machine import Gpu, Machine


@dataclass(frozen=True)
class Sight:
    """How many features a program has, the reasons for which one is not built, and what tells both of a program that
    does so much useful work."""

    width: int
    reasons: tuple[str, ...]
    of: Callable[[Program, float], Seen]


def sight(machine: Machine | Gpu) -> Sight:
    """What is seen of programs for a machine."""
    if isinstance(machine, Machine):
        return Sight(cpu_features.WIDTH, cpu_features.REASONS, partial(cpu_features.seen, machine=machine))
    return Sight(gpu_features.WIDTH, gpu_features.REASONS, partial(gpu_features.seen, gpu=machine))
