"""The cost model on synthetic rows: rank, repeatability, bounds, earlier tasks, failures; the quality of a rank."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from compiler.autotune.search import model
from compiler.autotune.search.model import (
    CostForest,
    CostModel,
    Prediction,
    SuccessModel,
    WarmStart,
    expected_improvement,
    flattened,
    representative,
)
from compiler.autotune.search.ranking import APART, Pairs, RankingQuality, pairs
from compiler.support.errors import InputError
from tests.synthetic_spaces import Tiled

SPACE = Tiled()


def rows(count: int, seed: int, scale: float = 1.0) -> tuple[model.Values, model.Costs]:
    """Features and true costs of random feasible candidates."""
    rng = np.random.default_rng(seed)
    positions = rng.integers(0, np.array(SPACE.sizes[0]), (3 * count, len(SPACE.sizes[0])))
    actual = SPACE.features(0, positions)
    keep = np.flatnonzero(actual.reasons == 0)[:count]
    assert len(keep) == count
    return actual.values[keep], scale * SPACE.costs(0, positions[keep])


def accuracy(predicted: Prediction, costs: model.Costs) -> float:
    actual = pairs(predicted.mean, costs).accuracy
    assert actual is not None
    return actual


@pytest.mark.parametrize(("trained", "least"), [(16, 0.75), (64, 0.83), (256, 0.88)])
def test_it_ranks_what_it_has_not_seen(trained: int, least: float) -> None:
    values, costs = rows(trained, seed=1)
    fitted = CostModel(seed=0)
    fitted.fit(values, costs)
    unseen, truth = rows(500, seed=2)
    assert accuracy(fitted.predict(unseen), truth) > least


def test_the_mean_is_a_log_cost() -> None:
    values, costs = rows(200, seed=1, scale=1e9)
    fitted = CostModel(seed=0)
    fitted.fit(values, costs)
    fast = costs < 2 * costs.min()
    assert np.abs(fitted.predict(values).mean - np.log(costs))[fast].mean() < 0.1


def test_slow_ones_are_flattened_in_order() -> None:
    logs = np.log(np.array([4.0, 1.0, 2.0, 32.0, 1.5]))
    actual = flattened(logs)
    assert np.array_equal(np.argsort(actual), np.argsort(logs))
    assert actual[[1, 2, 4]] == pytest.approx(logs[[1, 2, 4]])
    assert actual[3] == pytest.approx(math.log(2) + 0.25 * math.log(16))


def test_the_mean_is_that_of_the_trees_in_their_order() -> None:
    values, costs = rows(100, seed=1)
    forest = CostForest(values, np.log(costs), seed=3)
    each = [tree.predict(values)[:, 0] for tree in forest._trees]
    total = np.zeros(len(values))
    for one in each:
        total += one
    predicted = forest.predict(values)
    assert np.array_equal(predicted.mean, total / len(each))
    assert np.allclose(predicted.spread, np.std(each, axis=0))


def test_same_seed_same_bits_other_seed_other_bits() -> None:
    values, costs = rows(64, seed=1)
    first, again, second = (CostModel(seed) for seed in (5, 5, 6))
    for forest in (first, again, second):
        forest.fit(values, costs)
    assert first.predict(values).mean.tobytes() == again.predict(values).mean.tobytes()
    assert first.predict(values).mean.tobytes() != second.predict(values).mean.tobytes()


def test_a_refit_is_bounded_and_keeps_the_best() -> None:
    targets = np.random.default_rng(0).random(5 * model.ROWS)
    kept = representative(targets)
    assert len(kept) == model.ROWS
    assert np.array_equal(kept, np.unique(kept))
    best = np.argsort(targets)[: model.ROWS // 2]
    assert set(best.tolist()) <= set(kept.tolist())
    assert len(targets) - 1 in kept or len(targets) - 1 in best
    assert np.array_equal(representative(targets[: model.ROWS]), np.arange(model.ROWS))


def test_rows_of_another_width_are_refused() -> None:
    values, costs = rows(16, seed=1)
    fitted = CostModel(seed=0)
    fitted.fit(values, costs)
    with pytest.raises(InputError, match="15 features is asked about rows of 3"):
        fitted.predict(values[:, :3])


def test_an_earlier_task_ranks_before_there_are_trials() -> None:
    assert not CostModel(seed=0).ready
    told = CostModel(seed=0, warm_starts=[WarmStart(*rows(200, seed=1, scale=1e6))])
    assert told.ready
    values, costs = rows(300, seed=2)
    assert accuracy(told.predict(values), costs) > 0.85


def test_an_earlier_task_helps_while_there_are_few_trials() -> None:
    past = WarmStart(*rows(200, seed=1, scale=1e6))
    few, costs = rows(12, seed=3)
    alone, told = CostModel(seed=0), CostModel(seed=0, warm_starts=[past])
    for each in (alone, told):
        each.fit(few, costs)
    values, truth = rows(300, seed=2)
    assert accuracy(told.predict(values), truth) > accuracy(alone.predict(values), truth) + 0.05


def test_an_earlier_task_that_misleads_is_dropped() -> None:
    values, costs = rows(200, seed=1)
    wrong, right = WarmStart(values, 1 / costs), WarmStart(values, costs)
    told = CostModel(seed=0, warm_starts=[wrong, right])
    trials, measured = rows(model.JUDGED, seed=3)
    told.fit(trials[:-1], measured[:-1])
    assert told.prior_tasks == 2, "too few trials to judge by"
    told.fit(trials, measured)
    assert told.prior_tasks == 1
    only = CostModel(seed=0, warm_starts=[wrong])
    alone = CostModel(seed=0)
    for each in (only, alone):
        each.fit(trials, measured)
    assert only.prior_tasks == 0
    assert only.predict(values).mean.tobytes() == alone.predict(values).mean.tobytes()


def test_earlier_tasks_of_other_sizes_are_comparable() -> None:
    """Tasks that differ by a factor say the same; and a task with one trial says nothing."""
    values, costs = rows(100, seed=1)
    small, large = CostModel(0, [WarmStart(values, costs)]), CostModel(0, [WarmStart(values, 1e12 * costs)])
    assert np.abs(small.predict(values).mean - large.predict(values).mean).mean() < 0.02  # last bits decide ties
    assert not CostModel(0, [WarmStart(values[:1], costs[:1])]).ready


def test_the_improvement_is_that_of_a_gaussian() -> None:
    """Against integration by samples; nothing to expect is zero, not negative or undefined."""
    rng = np.random.default_rng(0)
    for mean, spread, best in ((0.0, 1.0, 0.0), (1.0, 0.5, 0.3), (-1.0, 2.0, -1.5)):
        drawn = mean + spread * rng.standard_normal(400_000)
        expected = np.maximum(best - drawn, 0).mean()
        actual = expected_improvement(Prediction(np.array([mean]), np.array([spread])), best)
        assert actual[0] == pytest.approx(expected, rel=0.02)
    certain = expected_improvement(Prediction(np.array([0.0, 2.0]), np.zeros(2)), 1.0)
    assert certain == pytest.approx([1.0, 0.0])


def test_spread_makes_the_unknown_worth_a_look() -> None:
    actual = expected_improvement(Prediction(np.array([1.0, 1.0]), np.array([0.1, 1.0])), 0.5)
    assert actual[1] > 100 * actual[0]


def test_the_chance_of_failure_is_learned() -> None:
    values, _ = rows(200, seed=1)
    fails = values[:, 2] > np.median(values[:, 2])
    assert SuccessModel(values, np.ones(200, np.bool_), 0).predict(values).tolist() == [1.0] * 200
    actual = SuccessModel(values, ~fails, 0).predict(values)
    assert actual[~fails].min() > actual[fails].max()
    assert actual.min() >= model.LEAST_CHANCE


def naive(predicted: list[float], costs: list[float]) -> Pairs:
    right, total = 0.0, 0
    for (p, c), (q, d) in combinations(list(zip(predicted, costs, strict=True)), 2):
        if max(c, d) > (1 + APART) * min(c, d):
            total += 1
            right += 0.5 if p == q else float((p < q) == (c < d))
    return Pairs(right, total)


def test_pairs_by_hand_and_one_by_one() -> None:
    assert pairs([1, 2, 3], [1.0, 2.0, 3.0]) == Pairs(3, 3)
    assert pairs([3, 2, 1], [1.0, 2.0, 3.0]) == Pairs(0, 3)
    assert pairs([1, 1, 1], [1.0, 2.0, 3.0]) == Pairs(1.5, 3)
    assert pairs([2, 1], [1.0, 1.04]) == Pairs(0, 0), "not apart"
    assert Pairs().accuracy is None
    rng = np.random.default_rng(0)
    predicted, costs = rng.integers(0, 20, 80).astype(float), rng.uniform(1, 2, 80)
    grown = RankingQuality()
    for p, c in zip(predicted.tolist(), costs.tolist(), strict=True):
        grown.add(p, c)
    assert grown.pairs == pairs(predicted, costs) == naive(predicted.tolist(), costs.tolist())


def test_recall_and_the_line() -> None:
    seen = RankingQuality()
    assert seen.line() == "ranking: nothing predicted and measured yet"
    for number in range(10):
        seen.add(math.log(1 + number), 10.0 - number if number < 2 else 1.0 + number)
    assert seen.recall(0) is None
    assert seen.recall(11) is None
    assert seen.recall(10) == 1.0
    assert seen.recall(4) == 0.5  # measured best: 2, 3, 4, 5; predicted best: 0, 1, 2, 3
    assert (
        seen.line(4)
        == f"ranking: {seen.pairs.accuracy:.0%} of {seen.pairs.total} pairs right, 2 of the best 4 foreseen"
    )
    assert pairs([], []) == Pairs()
