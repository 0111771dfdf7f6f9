"""`extractor_for`: the feature extractor of a machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from compiler.program.tree import Program
from compiler.space import cpu_features, gpu_features
from compiler.space.cpu_features import ExtractedFeatures
from compiler.types.machines import Gpu, Machine

AnyMachine: TypeAlias = Any  # the Machine or Gpu of a family, by which functions are registered


@dataclass(frozen=True)
class FeatureExtractor:
    """The feature extractor of a target. width: the number of features. reasons: the names of the reasons not to build
    a program. extract: a function from a program and its operations without padding to features and reasons. seconds: a
    function from a program, these operations and feature values (n, features) to the estimated seconds (n,) of
    candidates; None if the features include no estimate."""

    width: int
    reasons: tuple[str, ...]
    extract: Callable[[Program, float], ExtractedFeatures]
    seconds: Callable[[Program, float, NDArray[np.float32]], NDArray[np.float64]] | None = None


def _of_cpu(machine: AnyMachine) -> FeatureExtractor:
    return FeatureExtractor(cpu_features.WIDTH, cpu_features.REASONS, partial(cpu_features.extract, machine=machine))


def _of_gpu(machine: AnyMachine) -> FeatureExtractor:
    def seconds(program: Program, useful: float, values: NDArray[np.float32]) -> NDArray[np.float64]:
        perfect = gpu_features.ideal(program, useful, machine)
        return np.asarray(values[:, gpu_features.ESTIMATE].astype(np.float64) * perfect)

    extract = partial(gpu_features.extract, gpu=machine)
    return FeatureExtractor(gpu_features.WIDTH, gpu_features.REASONS, extract, seconds)


EXTRACTORS: Mapping[str, Callable[[AnyMachine], FeatureExtractor]] = {"cpu": _of_cpu, "gpu": _of_gpu}
"""The feature extractors by families of machines."""


def extractor_for(machine: Machine | Gpu) -> FeatureExtractor:
    """The feature extractor of a machine's family, for this machine."""
    return EXTRACTORS[machine.family](machine)
