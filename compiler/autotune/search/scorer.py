"""`Scorer`: predictions for the candidates of a space, by models learned from the trials."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compiler.autotune.search.model import CostModel, Prediction, SuccessModel, WarmStart, expected_improvement
from compiler.autotune.search.trials import Trials
from compiler.space.candidates import Candidate, Pool, Space, filter_all

FITTED = 4
"""The number of measured trials from which on the cost model is fitted."""


@dataclass(frozen=True)
class Scored:
    """Candidates (n) with their predicted log costs, and the chance (n,) that each does not fail."""

    pool: Pool
    prediction: Prediction
    chance: NDArray[np.float64]

    def __add__(self, other: Scored) -> Scored:
        mean = np.concatenate([self.prediction.mean, other.prediction.mean])
        spread = np.concatenate([self.prediction.spread, other.prediction.spread])
        chance = np.concatenate([self.chance, other.chance])
        return Scored(self.pool + other.pool, Prediction(mean, spread), chance)

    @property
    def promise(self) -> NDArray[np.float64]:
        """Log chance minus log cost (n,), higher is better: half the chance of success counts as twice the cost."""
        return np.asarray(np.log(self.chance) - self.prediction.mean)

    def improvement(self, best: float | None) -> NDArray[np.float64]:
        """The chance times the expected decrease of the log cost below that of `best`, a cost: (n,), higher is better.
        Without a best cost (None) `promise`."""
        if best is None:
            return self.promise
        return np.asarray(self.chance * expected_improvement(self.prediction, float(np.log(best))))


class Scorer:
    """Stores the features of trials, fits the models to them, and scores candidates; the costs of a space that
    estimates them come from the space (see `SketchSpace.costs`)."""

    def __init__(self, space: Space, seed: int, warm_starts: Sequence[WarmStart]) -> None:
        self._space = space
        self._seed = seed
        self.model = CostModel(seed, warm_starts)
        self._chance = SuccessModel(np.zeros((0, 0), np.float32), np.zeros(0, np.bool_), seed)
        self._values: dict[Candidate, NDArray[np.float32]] = {}
        self._learned = 0
        self._costs = space.costs if getattr(space, "estimated", False) else None  # type: ignore[attr-defined]

    @property
    def ready(self) -> bool:
        """Whether it can score: by enough trials, by earlier tasks, or by the estimates of the space."""
        return self.model.ready or self._costs is not None

    def learn(self, trials: Trials[Candidate]) -> None:
        """Refit the models to all outcomes if there are new ones and at least FITTED measured trials."""
        if self._learned == trials.changed:
            return
        self._learned = trials.changed
        self._look_at(trials.tried())
        rows = [c for c in trials.tried() if c in self._values]
        ok = np.array([trials.ranks(c) for c in rows], dtype=np.bool_)
        if np.count_nonzero(ok) >= FITTED:
            values = np.stack([self._values[c] for c in rows])
            costs = np.array([trials.outcome(c).cost for c in rows])
            self.model.fit(values[ok], costs[ok])
            self._chance = SuccessModel(values, ok, self._seed)

    def score(self, pool: Pool) -> Scored:
        """Predict the log cost and the chance of success of each candidate of a pool."""
        if not len(pool):
            return Scored(pool, Prediction(np.zeros(0), np.zeros(0)), np.zeros(0))
        chance = self._chance.predict(pool.values)
        if self._costs is not None:
            return Scored(pool, Prediction(np.log(self._costs(pool.values)), np.zeros(len(pool))), chance)
        return Scored(pool, self.model.predict(pool.values), chance)

    def _look_at(self, candidates: Iterable[Candidate]) -> None:
        """Compute and store the missing features of candidates that were tried; infeasible ones are skipped."""
        pool = filter_all(self._space, [c for c in candidates if c not in self._values]).feasible
        self._values.update(zip(pool.candidates, pool.values, strict=True))
