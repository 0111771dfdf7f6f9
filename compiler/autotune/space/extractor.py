"""`extractor_for`: which features a machine's candidates have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from compiler.autotune.space import cpu_features, gpu_features
from compiler.autotune.space.cpu_features import Extracted
from compiler.program.tree import Program
from compiler.targets.machine import Gpu, Machine


@dataclass(frozen=True)
class FeatureExtractor:
    """How many features a program has, the reasons for which one is not built, and what tells both of a program that
    does so much useful work."""

    width: int
    reasons: tuple[str, ...]
    of: Callable[[Program, float], Extracted]


def extractor_for(machine: Machine | Gpu) -> FeatureExtractor:
    """What is seen of programs for a machine."""
    if isinstance(machine, Machine):
        return FeatureExtractor(
            cpu_features.WIDTH, cpu_features.REASONS, partial(cpu_features.extract, machine=machine)
        )
    return FeatureExtractor(gpu_features.WIDTH, gpu_features.REASONS, partial(gpu_features.extract, gpu=machine))
