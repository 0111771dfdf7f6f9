"""Search spaces without hardware: what a candidate costs is a formula, what is measured of it has noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from compiler.database.outcome import MEASURED, Outcome
from compiler.space.candidates import LATER, Candidate, Features

Rows = NDArray[np.float64]

MR = (1, 2, 4, 6, 8, 12, 14, 16)
NV = (1, 2, 3, 4)
KC = (32, 64, 128, 256, 512, 1024)
MC = (16, 32, 64, 128, 256, 512)
NC = (128, 256, 512, 1024)
UNROLL = (1, 2, 4)
PREFETCH = (0, 1)
MATMUL = (MR, NV, KC, MC, NC, UNROLL, PREFETCH)
NAMES = ("", "registers", "cache")


@dataclass(frozen=True)
class Tiled:
    """Something like the tiles of a packed matmul: three sketches (pack both operands, one, none), seven choices.

    The cost is the reciprocal of an efficiency with interactions: latency of the multiply-adds against registers,
    three cache levels, the share of packing, unrolling against the micro-kernel's size.
    """

    defaults: Sequence[Candidate] = ()
    wide: int = 0  # columns of features that say nothing
    sizes: Sequence[tuple[int, ...]] = field(default=(tuple(len(c) for c in MATMUL),) * 3)

    def script(self, candidate: Candidate) -> str:
        return f"sketch {candidate[0]}, {candidate[1]}"

    def chosen(self, positions: NDArray[np.int64]) -> list[Rows]:
        return [np.array(options, np.float64)[positions[:, i]] for i, options in enumerate(MATMUL)]

    def features(self, sketch: int, positions: NDArray[np.int64]) -> Features:
        mr, nv, kc, mc, nc, unroll, prefetch = self.chosen(positions)
        registers = mr * nv + nv + 1
        columns = [mr, nv, kc, mc, nc, unroll, prefetch, np.full(len(mr), float(sketch)), registers, mr * nv]
        columns += [kc * nv * 64, mc * kc * 4, nc * kc * 4, mr * unroll * nv, (mr + 16 * nv) / (mr * nv)]
        noise = [np.full(len(mr), 1.0)] * self.wide
        values = np.log1p(np.stack(columns + noise, axis=1)).astype(np.float32)
        reasons = np.where(registers > 40, 1, np.where(nc * kc * 4 > 3 << 20, 2, 0)).astype(np.int16)
        return Features(values, reasons, NAMES)

    def cost(self, candidate: Candidate) -> float:
        """The true cost: 1 would be the ceiling."""
        return float(self.costs(candidate[0], np.array([candidate[1]], np.int64))[0])

    def costs(self, sketch: int, positions: NDArray[np.int64]) -> Rows:
        mr, nv, kc, mc, nc, unroll, prefetch = self.chosen(positions)
        registers = mr * nv + nv + 1
        latency = np.minimum(mr * nv / 10, 1.0)
        spill = np.where(registers > 32, 1 + 0.06 * (registers - 32), 1.0)
        loads = 1 + 0.35 * np.maximum((mr + nv) / (mr * nv) - 0.35, 0)
        first = 1 + 0.25 * np.maximum(np.log2(kc * nv * 64 / 32768), 0)
        second = 1 + 0.2 * np.maximum(np.log2(mc * kc * 4 / (1 << 20)), 0) + 0.15 * np.maximum(np.log2(mr * 4 / mc), 0)
        third = 1 + 0.1 * np.maximum(np.log2(nc * kc * 4 / (1 << 20)), 0)
        packing = (1 + 12 / nc + 6 / mc, 1 + 40 / nc + 0.1 * (kc > 256), 1 + 60 / kc + 0.2 * (nc > 512))[sketch]
        start = 1 + 12 / kc * mr * nv / 24
        body = 1 + 0.04 * (unroll * mr * nv > 64) + 0.05 / unroll
        fetch = np.where(prefetch > 0, 0.98 if sketch else 1.01, 1.0)
        return spill * loads * first * second * third * packing * start * body * fetch / latency

    def everything(self) -> dict[Candidate, float]:
        """The true costs of all feasible candidates."""
        grids = np.stack([g.ravel() for g in np.meshgrid(*map(np.arange, self.sizes[0]), indexing="ij")], axis=1)
        collected: dict[Candidate, float] = {}
        for sketch in range(len(self.sizes)):
            rows = grids[self.features(sketch, grids).reasons == 0]
            candidates = [(sketch, tuple(row)) for row in rows.tolist()]
            collected.update(zip(candidates, self.costs(sketch, rows).tolist(), strict=True))
        return collected


@dataclass
class Bench:
    """Measures candidates of a formula with lognormal noise, repeatably; `fails` says what fails, and how."""

    cost: Callable[[Candidate], float]
    noise: float = 0.0
    seed: int = 0
    fails: Callable[[Candidate], str | None] = lambda candidate: None

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(self.seed)

    def __call__(self, candidate: Candidate, samples: int = 3) -> Outcome:
        kind = self.fails(candidate)
        if kind is not None:
            return Outcome(kind, reason="planted")
        noise = np.exp(self.noise * self._rng.standard_normal(samples)) * np.exp(
            self.noise * self._rng.standard_normal()
        )
        seconds = tuple((self.cost(candidate) * noise).tolist())
        return Outcome(MEASURED, seconds, (1.0,) * samples)


@dataclass(frozen=True)
class Table:
    """A space whose sizes, features and costs are given: one column for each choice of the longest sketch."""

    sizes: Sequence[tuple[int, ...]]
    infeasible: Callable[[Candidate], int] = lambda candidate: 0
    defaults: Sequence[Candidate] = ()

    def script(self, candidate: Candidate) -> str:
        return str(candidate)

    def features(self, sketch: int, positions: NDArray[np.int64]) -> Features:
        width = max(map(len, self.sizes))
        values = np.zeros((len(positions), width + 1), np.float32)
        values[:, 0] = sketch
        values[:, 1 : 1 + positions.shape[1]] = positions
        reasons = [self.infeasible((sketch, tuple(row))) for row in positions.tolist()]
        return Features(values, np.array(reasons, np.int16).reshape(-1), NAMES)


@dataclass
class Reluctant:
    """A table that at each call looks at one more value of the first choice, and tells of the others later; of no value
    where more than `patience` candidates are asked for together."""

    table: Table
    mute: bool = False
    patience: int = 1 << 30
    known: set[int] = field(default_factory=set)

    @property
    def sizes(self) -> Sequence[tuple[int, ...]]:
        return self.table.sizes

    @property
    def defaults(self) -> Sequence[Candidate]:
        return self.table.defaults

    def script(self, candidate: Candidate) -> str:
        return self.table.script(candidate)

    def features(self, sketch: int, positions: NDArray[np.int64]) -> Features:
        told = self.table.features(sketch, positions)
        new = [value for value in positions[:, 0].tolist() if value not in self.known]
        self.known.update([] if self.mute or len(positions) > self.patience else new[:1])
        hidden = ~np.isin(positions[:, 0], sorted(self.known))
        reasons = np.where(hidden, len(told.names), told.reasons).astype(np.int16)
        return Features(np.where(hidden[:, None], 0, told.values), reasons, (*told.names, LATER))
