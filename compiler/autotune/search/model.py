"""The cost model: a random forest on log cost over a prior from earlier tasks, and the expected improvement."""

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
"""The number of trees of a forest: the times of prediction and refit grow with it; more trees do not rank better."""
ROWS = 512
"""The maximum number of rows that a forest is fitted to, so that a refit stays well below a second in long searches."""
SLOW = np.log(2.0)
"""The excess over the best log cost above which a candidate is slow: its exact cost then matters less."""
FLATTER = 0.25
"""The weight of a cost's excess over SLOW. Bad tiles cost twenty times the best; unweighted they would dominate the
splits of the trees and their spread. On synthetic spaces it ranks better than the plain log and than clipping."""
MEMBERS = 8
"""The maximum number of earlier tasks in a model; of more, the last ones, which are the most similar, are used."""
CHANCE_TREES = 16
"""The number of trees of the forest that predicts failures: a binary target needs fewer."""
LEAST_CHANCE = 0.02
"""The lower limit of a predicted chance of success."""
JUDGED = 8
"""The number of trials of a task from which on its earlier tasks must rank these better than chance."""


@dataclass(frozen=True)
class Prediction:
    """The predicted log cost of candidates (n,), flattened above SLOW: mean and standard deviation over the trees."""

    mean: Costs
    spread: Costs


@dataclass(frozen=True)
class WarmStart:
    """The measurements of an earlier task: `values` (n, features) f32 with the columns of this task, `costs` (n,)
    positive, in any unit, since only their ratios count."""

    values: Values
    costs: Costs


class CostForest:
    """A random forest from `values` (n, features) to `targets` (n,), usually log costs; fitted to the rows that
    `representative` selects. trees: their number. The same rows and seed give the same forest."""

    def __init__(self, values: Values, targets: Costs, seed: int, trees: int = TREES) -> None:
        from sklearn.ensemble import RandomForestRegressor  # takes seconds to load: runs of few trials need none

        keep = representative(targets)
        forest = RandomForestRegressor(trees, max_features="sqrt", random_state=seed, n_jobs=1)
        forest.fit(values[keep], targets[keep])
        self._trees = [estimator.tree_ for estimator in forest.estimators_]
        self._width = values.shape[1]

    def predict(self, values: Values) -> Prediction:
        """Predict rows (n, features): the mean and the spread over the trees. Raises InputError for another number of
        features.

        Each tree is evaluated directly, since scikit-learn's forest checks its input once a tree, and summed in a fixed
        order, since threads that add up as they finish make runs differ.
        """
        rows = np.ascontiguousarray(values, dtype=np.float32)
        if rows.shape[1] != self._width:  # a tree evaluated directly would read past the end
            raise InputError(f"a cost model of {self._width} features is asked about rows of {rows.shape[1]}")
        by_tree = np.stack([tree.predict(rows)[:, 0] for tree in self._trees])
        return Prediction(by_tree.mean(axis=0), by_tree.std(axis=0))


def flattened(logs: Costs) -> Costs:
    """Log costs (n,), n above 0, with the excess over the best beyond SLOW scaled by FLATTER; the order stays. [0, 0.5,
    log 2 + 1] becomes [0, 0.5, log 2 + 0.25]."""
    above = logs - logs.min()
    near = np.minimum(above, SLOW)
    return np.asarray(logs.min() + near + FLATTER * (above - near))


def representative(targets: Costs) -> NDArray[np.int64]:
    """The positions of at most ROWS rows, ascending: the ROWS / 2 lowest targets, and the latest of the others."""
    if len(targets) <= ROWS:
        return np.arange(len(targets))
    order = np.argsort(targets, kind="stable")
    best, worse = order[: ROWS // 2], np.sort(order[ROWS // 2 :])
    return np.sort(np.concatenate([best, worse[-(ROWS - ROWS // 2) :]]))


class CostModel:
    """Predicts log cost, flattened above SLOW, from features. It learns online, and from earlier tasks while their
    ranking helps.

    Each earlier task of two or more costs, of these the last MEMBERS, has a forest on its log costs minus their median,
    so that tasks of different size are comparable. The prior is the mean of these forests; from JUDGED trials on, of
    those only that rank this task's trials better than chance, and scaled by its least-squares slope. The forest of
    this task learns the difference of its log costs from the prior. Without trials the prior is the prediction.
    """

    def __init__(self, seed: int, warm_starts: Sequence[WarmStart] = ()) -> None:
        self._seed = seed
        past_tasks = [warm_start for warm_start in warm_starts if len(warm_start.costs) > 1][-MEMBERS:]
        trees = TREES // max(len(past_tasks), 1)
        self._members = [CostForest(p.values, _centred(p.costs), seed + 1 + i, trees) for i, p in enumerate(past_tasks)]
        self._heard = list(self._members)
        self._scale = 1.0
        self._forest: CostForest | None = None

    @property
    def ready(self) -> bool:
        """Whether `predict` has a model: trials of this task, or an earlier task in the prior."""
        return self._forest is not None or bool(self._heard)

    @property
    def fitted(self) -> bool:
        """Whether the model has learned trials of this task; before, its predictions only compare with each other."""
        return self._forest is not None

    @property
    def prior_tasks(self) -> int:
        """The number of earlier tasks in the prior."""
        return len(self._heard)

    def fit(self, values: Values, costs: Costs) -> None:
        """Fit the model to trials of this task only: `values` (n, features), `costs` (n,) positive, finite, not
        empty."""
        targets = flattened(np.log(costs))
        priors = [(member, member.predict(values).mean) for member in self._members]
        if len(costs) >= JUDGED:
            latest = slice(-ROWS, None)
            priors = [(m, mean) for m, mean in priors if (pairs(mean[latest], costs[latest]).accuracy or 0.0) > 0.5]
        self._heard = [member for member, _ in priors]
        prior = np.mean([mean for _, mean in priors], axis=0) if priors else np.zeros(len(costs))
        self._scale = _slope(prior, targets) if len(costs) >= JUDGED else 1.0
        self._forest = CostForest(values, targets - self._scale * prior, self._seed)

    def predict(self, values: Values) -> Prediction:
        """The predicted log cost of candidates (n, features); until `fitted` with an unknown offset and spread 0."""
        rows = np.ascontiguousarray(values, dtype=np.float32)
        prior = np.mean([m.predict(rows).mean for m in self._heard], axis=0) if self._heard else np.zeros(len(rows))
        if self._forest is None:
            return Prediction(prior, np.zeros(len(rows)))
        residual = self._forest.predict(rows)
        return Prediction(residual.mean + self._scale * prior, residual.spread)


class SuccessModel:
    """The chance (n,) that a candidate does not fail, by a small forest on the latest ROWS trials; 1 if all of these
    failed, or none. `values` are their features (n, features), `ok` is False for a failure.

    Failures have no cost and are not rows of the cost model. A search that follows that model alone would enter regions
    where everything fails. The chance is never zero, so that no candidate is ruled out.
    Source: Gelbart, Snoek and Adams, Bayesian optimization with unknown constraints, 2014.
    """

    def __init__(self, values: Values, ok: NDArray[np.bool_], seed: int) -> None:
        latest = slice(-ROWS, None)
        mixed = len(ok) > 0 and bool(ok[latest].any()) and not bool(ok[latest].all())
        self._forest = CostForest(values[latest], ok[latest].astype(np.float64), seed, CHANCE_TREES) if mixed else None

    def predict(self, values: Values) -> Costs:
        """The chance (n,) that each candidate, of features (n, features), does not fail; at least LEAST_CHANCE."""
        if self._forest is None:
            return np.ones(len(values))
        return np.maximum(self._forest.predict(values).mean, LEAST_CHANCE)


def expected_improvement(prediction: Prediction, best: float) -> Costs:
    """The expected decrease below `best` (a log cost) by each candidate, its log cost a Gaussian of mean and spread.

    An expectation over the trees would always be zero: no tree predicts below the best cost that it has learned.
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
    """The least-squares slope of the targets over a prior, clipped to 0..1; 0 for a constant prior. Prior [0, 1, 2] and
    targets [0, 0.5, 1]: 0.5."""
    about = prior - prior.mean()
    variance = float(about @ about)
    return min(max(float(about @ targets) / variance, 0.0), 1.0) if variance > 0 else 0.0
