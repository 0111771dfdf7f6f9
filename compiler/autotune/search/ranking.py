"""The ranking quality of a cost model: the share of pairs in the right order, and the recall of the best."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

APART = 0.05
"""Two costs differ if their difference exceeds this share of the lower one; less is noise."""


@dataclass(frozen=True)
class Pairs:
    """The number of pairs of candidates with different costs (`total`), and of those predicted in the right order
    (`right`); a tie in the prediction counts half."""

    right: float = 0.0
    total: int = 0

    @property
    def accuracy(self) -> float | None:
        """The share of pairs predicted in the right order; 0.5 is chance. None without pairs."""
        return self.right / self.total if self.total else None

    def __add__(self, other: Pairs) -> Pairs:
        return Pairs(self.right + other.right, self.total + other.total)


def pairs_against(
    predicted: float, cost: float, others_predicted: NDArray[np.float64], other_costs: NDArray[np.float64]
) -> Pairs:
    """Judge the pairs of one candidate with each of several others: predictions (lower is better) against costs. Pairs
    of equal costs, by APART, do not count."""
    differ = np.maximum(cost, other_costs) > (1 + APART) * np.minimum(cost, other_costs)
    agreement = np.sign(predicted - others_predicted[differ]) * np.sign(cost - other_costs[differ])
    return Pairs(float(np.sum(agreement + 1) / 2), int(np.count_nonzero(differ)))


def pairs(predicted: ArrayLike, costs: ArrayLike) -> Pairs:
    """Count the pairs of candidates that predictions order as costs do, and all pairs: predictions are in any unit
    (lower is better), costs positive. Pairs of equal costs, by APART, do not count."""
    p, c = np.asarray(predicted, np.float64), np.asarray(costs, np.float64)
    return sum((pairs_against(p[i], c[i], p[:i], c[:i]) for i in range(1, len(c))), Pairs())


@dataclass
class RankingQuality:
    """The ranking quality of predictions made before their candidates were measured, updated trial by trial.

    Each candidate counts once, with the cost of its first measurement. Randomly picked candidates count as well, so
    that the model is not judged by its own picks alone. pairs: the counts of all and of right ones.
    """

    pairs: Pairs = field(default_factory=Pairs)
    _predicted: list[float] = field(default_factory=list)
    _costs: list[float] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self._costs)

    def add(self, predicted: float, cost: float) -> None:
        """Add a candidate: its predicted cost (lower is better) and its measured cost (positive)."""
        self.pairs += pairs_against(predicted, cost, np.array(self._predicted), np.array(self._costs))
        self._predicted.append(predicted)
        self._costs.append(cost)

    def recall(self, count: int) -> float | None:
        """The share of the `count` best measured among the `count` best predicted; None with fewer candidates, or for a
        `count` below 1."""
        if not 0 < count <= len(self):
            return None
        measured, predicted = (np.argsort(values, kind="stable")[:count] for values in (self._costs, self._predicted))
        return len(np.intersect1d(measured, predicted)) / count

    def line(self, count: int = 8) -> str:
        """Return one line of text for people: the share of pairs in the right order, and the recall of the best `count`
        if so many were measured; without pairs, a line that says so."""
        if self.pairs.accuracy is None:
            return "ranking: nothing predicted and measured yet"
        text = f"ranking: {self.pairs.accuracy:.0%} of {self.pairs.total} pairs right"
        recall = self.recall(count)
        return text if recall is None else f"{text}, {round(recall * count)} of the best {count} foreseen"
