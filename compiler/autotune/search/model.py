"""The cost model: a random forest on log cost, what earlier tasks add to it, and the improvement to expect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compiler.autotune.search.ranking import pairs
from compiler.support.errors import InputError

Values = NDArray[np.float32]
Costs = NDArray[np.float64]

TREES = 64
"""Trees of a forest: prediction and refit take time in proportion; more rank no better."""
ROWS = 512
"""The most rows that a forest is fitted to, so that a refit stays well below a second however long the search runs."""
SLOW = np.log(2.0)
"""Above the best by more than this (log cost), a candidate is slow: it matters that it is, less how much."""
FLATTER = 0.25
"""The weight of a cost's excess over SLOW. Failing tiles cost twenty times the best, and would dominate both the splits
of the trees and their spread; better than the plain log and than clipping, on synthetic spaces."""
MEMBERS = 8
"""The most earlier tasks that a model listens to, the last ones given."""
CHANCE_TREES = 16
"""Trees of the forest that tells what fails: yes or no needs fewer."""
LEAST_CHANCE = 0.02
"""The least chance that anything is given."""
JUDGED = 8
"""Trials of the task before an earlier one can be judged by them."""


@dataclass(frozen=True)
class Prediction:
    """Log cost of some candidates (n,), flatter where it is slow: the mean over the trees, and their deviation."""

    mean: Costs
    spread: Costs


@dataclass(frozen=True)
class WarmStart:
    """What an earlier task measured: `values` (n, features) f32 with the columns of this task, `costs` (n,) positive,
    in whatever unit: only their ratios count."""

    values: Values
    costs: Costs


class CostForest:
    """A random forest on whatever it is given (n,), usually log costs. The same rows and seed give the same forest."""

    def __init__(self, values: Values, targets: Costs, seed: int, trees: int = TREES) -> None:
        from sklearn.ensemble import RandomForestRegressor  # takes seconds to load: runs of few trials need none

        keep = representative(targets)
        forest = RandomForestRegressor(trees, max_features="sqrt", random_state=seed, n_jobs=1)
        forest.fit(values[keep], targets[keep])
        self._trees = [estimator.tree_ for estimator in forest.estimators_]
        self._width = values.shape[1]

    def predict(self, values: Values) -> Prediction:
        """Mean and spread over the trees, each asked directly (a forest's own prediction checks its input once a tree)
        and summed in a fixed order: threads that add up as they finish would make runs differ."""
        rows = np.ascontiguousarray(values, dtype=np.float32)
        if rows.shape[1] != self._width:  # a tree asked directly would read past the end
            raise InputError(f"a cost model of {self._width} features is asked about rows of {rows.shape[1]}")
        each = np.stack([tree.predict(rows)[:, 0] for tree in self._trees])
        return Prediction(each.mean(axis=0), each.std(axis=0))


def flattened(logs: Costs) -> Costs:
    """Log costs (n,), n above 0, in the same order: near the best as they are, flatter beyond."""
    above = logs - logs.min()
    near = np.minimum(above, SLOW)
    return np.asarray(logs.min() + near + FLATTER * (above - near))


def representative(targets: Costs) -> NDArray[np.int64]:
    """At most ROWS of the rows, in their order: the better half of the rows, and the latest of the others."""
    if len(targets) <= ROWS:
        return np.arange(len(targets))
    order = np.argsort(targets, kind="stable")
    best, worse = order[: ROWS // 2], np.sort(order[ROWS // 2 :])
    return np.sort(np.concatenate([best, worse[-(ROWS - ROWS // 2) :]]))


class CostModel:
    """Predicts log cost from features, flattened where it is slow; learns online, and from earlier tasks as long as
    their ranking helps.

    An earlier task is a forest of its own, on log costs about their median, so that tasks of different size are
    comparable. The prior is the mean of the earlier tasks that rank this task's trials better than chance. The forest
    of this task learns the residual of the prior, scaled by how far it explains the trials. Without trials the prior is
    the prediction.
    """

    def __init__(self, seed: int, warm_starts: Sequence[WarmStart] = ()) -> None:
        self._seed = seed
        told = [warm_start for warm_start in warm_starts if len(warm_start.costs) > 1][-MEMBERS:]
        trees = TREES // max(len(told), 1)
        self._members = [CostForest(p.values, _centred(p.costs), seed + 1 + i, trees) for i, p in enumerate(told)]
        self._heard = list(self._members)
        self._scale = 1.0
        self._forest: CostForest | None = None

    @property
    def ready(self) -> bool:
        """Whether it can predict."""
        return self._forest is not None or bool(self._heard)

    @property
    def fitted(self) -> bool:
        """Whether it has learned trials of this task; before that its predictions are relative."""
        return self._forest is not None

    @property
    def heard(self) -> int:
        """The number of earlier tasks that it listens to."""
        return len(self._heard)

    def fit(self, values: Values, costs: Costs) -> None:
        """Learn the trials of this task anew: `values` (n, features), `costs` (n,) positive and finite, n above 0."""
        targets = flattened(np.log(costs))
        each = [(member, member.predict(values).mean) for member in self._members]
        if len(costs) >= JUDGED:
            latest = slice(-ROWS, None)
            each = [(m, said) for m, said in each if (pairs(said[latest], costs[latest]).accuracy or 0.0) > 0.5]
        self._heard = [member for member, _ in each]
        prior = np.mean([said for _, said in each], axis=0) if each else np.zeros(len(costs))
        self._scale = _slope(prior, targets) if len(costs) >= JUDGED else 1.0
        self._forest = CostForest(values, targets - self._scale * prior, self._seed)

    def predict(self, values: Values) -> Prediction:
        """Mean and spread of the log cost of candidates with these features; relative while it knows no trials."""
        rows = np.ascontiguousarray(values, dtype=np.float32)
        prior = np.mean([m.predict(rows).mean for m in self._heard], axis=0) if self._heard else np.zeros(len(rows))
        if self._forest is None:
            return Prediction(prior, np.zeros(len(rows)))
        left = self._forest.predict(rows)
        return Prediction(left.mean + self._scale * prior, left.spread)


class Chance:
    """The chance (n,) that a candidate does not fail, by a small forest on the trials; 1 while nothing failed.

    Failures are not rows of the cost model, which needs costs; so it does not know where they lie, and a search that
    follows it alone would enter regions where everything fails. The chance is never zero, so that nothing is ruled out.
    Source: Gelbart, Snoek and Adams, Bayesian optimization with unknown constraints, 2014.
    """

    def __init__(self, values: Values, ok: NDArray[np.bool_], seed: int) -> None:
        latest = slice(-ROWS, None)
        mixed = len(ok) > 0 and bool(ok[latest].any()) and not bool(ok[latest].all())
        self._forest = CostForest(values[latest], ok[latest].astype(np.float64), seed, CHANCE_TREES) if mixed else None

    def predict(self, values: Values) -> Costs:
        """The chance of each candidate."""
        if self._forest is None:
            return np.ones(len(values))
        return np.maximum(self._forest.predict(values).mean, LEAST_CHANCE)


def expected_improvement(prediction: Prediction, best: float) -> Costs:
    """How much below `best` (a log cost) each candidate is expected to come, its cost a Gaussian of mean and spread.

    Over the trees alone it would always be zero: no tree predicts beyond the best that it has seen.
    Source: Jones, Schonlau and Welch, Efficient global optimization of expensive black-box functions, 1998.
    """
    from scipy.special import ndtr  # type: ignore[import-untyped]

    spread = np.maximum(prediction.spread, 1e-9)
    z = (best - prediction.mean) / spread
    density = np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)
    return np.asarray(spread * (z * ndtr(z) + density))


def _centred(costs: Costs) -> Costs:
    logs = flattened(np.log(costs))
    return np.asarray(logs - np.median(logs))


def _slope(prior: Costs, targets: Costs) -> float:
    """How far a prior explains the targets, by least squares, between not at all and fully."""
    about = prior - prior.mean()
    variance = float(about @ about)
    return min(max(float(about @ targets) / variance, 0.0), 1.0) if variance > 0 else 0.0
