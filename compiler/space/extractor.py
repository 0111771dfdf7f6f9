"""`extractor_for`: the feature extractor of a machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from compiler.program.tree import Program
from compiler.space import cpu_features, gpu_features
from compiler.space.cpu_features import Extracted
from compiler.types.machines import Gpu, Machine


@dataclass(frozen=True)
class FeatureExtractor:
    """The features of a target: their number, the reasons why a program is not built, and what gives both for a program
    that does so many useful operations."""

    width: int
    reasons: tuple[str, ...]
    of: Callable[[Program, float], Extracted]


def extractor_for(machine: Machine | Gpu) -> FeatureExtractor:
    """The feature extractor of a machine, a CPU or a GPU."""
    if isinstance(machine, Machine):
        return FeatureExtractor(
            cpu_features.WIDTH, cpu_features.REASONS, partial(cpu_features.extract, machine=machine)
        )
    return FeatureExtractor(gpu_features.WIDTH, gpu_features.REASONS, partial(gpu_features.extract, gpu=machine))
