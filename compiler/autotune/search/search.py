"""`Search`: proposes candidates to measure, and learns from their outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from compiler.autotune.search.batch import best_first, pick, spread_out
from compiler.autotune.search.log import Log
from compiler.autotune.search.model import WarmStart
from compiler.autotune.search.options import Options
from compiler.autotune.search.ranking import RankingQuality
from compiler.autotune.search.scorer import Scored, Scorer
from compiler.autotune.search.supply import Supply
from compiler.autotune.search.trials import Trials
from compiler.database.outcome import Outcome
from compiler.space.candidates import (
    Candidate,
    Space,
    defaults_of,
    filter_all,
    filter_candidates,
    is_in_space,
    neighbours,
)
from compiler.support.errors import InputError

LIKELY = 16
"""The number of candidates drawn for each one of the random start, which picks dissimilar ones."""


@dataclass(frozen=True)
class Proposal:
    """A candidate to measure.

    predicted: its log cost by the model, flattened above SLOW; None without a prediction. why: the source of the
    choice: default, start, improvement, mean, random or neighbour. relative: whether the prediction rests on earlier
    tasks only, so that it compares with others of this kind alone. improvement: the expected decrease of the best log
    cost; None while it is unknown.
    """

    candidate: Candidate
    predicted: float | None
    why: str
    relative: bool = False
    improvement: float | None = None

    @property
    def cost(self) -> float | None:
        """The predicted log cost; None if it is relative or missing."""
        return None if self.relative else self.predicted


class Search:
    """Proposes candidates of a space to measure; the same seed and the same calls give the same proposals.

    Its phases: the space's defaults and a random start, spread over the sketches; rounds in which the model scores
    thousands of candidates, drawn and mutated from good ones; at the end of the budget, or after `descend()`, the
    neighbours of the best until none of them is better. A candidate is proposed once, unless `release` forgets it;
    `leaders` returns those to measure again. Infeasible candidates are counted, never proposed. `warm_starts` are
    trials of earlier tasks. They rank candidates before the first trials of this task, and then as long as they rank
    better than chance.

    The design follows Ansor (Zheng et al., 2020): a learned model ranks, evolution proposes, a share stays random.
    Raises InputError for options out of range, a candidate that is not of the space, and warm starts whose features
    are not this space's.
    """

    def __init__(
        self, space: Space, seed: int, options: Options | None = None, warm_starts: Sequence[WarmStart] = ()
    ) -> None:
        self.options = options or Options()
        self.quality = RankingQuality()
        self._space = space
        self._sizes = tuple(space.sizes)
        self._rng = np.random.default_rng(seed)
        self._supply = Supply(space, self.options, self._rng)
        self._scorer = Scorer(space, seed, warm_starts)
        self._trials: Trials[Candidate] = Trials()
        self._pending: dict[Candidate, Proposal] = {}
        self._chosen = 0
        self._descending = False
        self._exhausted = False
        self._start = self._plan_start()
        self._log = Log(self._sizes, seed, self.options, warm_starts)

    @property
    def best(self) -> Candidate | None:
        """The candidate with the lowest combined cost; None while none was measured."""
        return next(iter(self._trials.best(1)), None)

    @property
    def best_outcome(self) -> Outcome | None:
        """The combined outcome of the best candidate; None while none was measured."""
        return None if self.best is None else self._trials.outcome(self.best)

    @property
    def pending(self) -> tuple[Candidate, ...]:
        """The candidates that were proposed and have no outcome yet."""
        return tuple(self._pending)

    @property
    def infeasible(self) -> Counter[str]:
        """The number of infeasible candidates met so far, by reason."""
        return self._supply.infeasible

    @property
    def prior_tasks(self) -> int:
        """The number of earlier tasks whose ranking is in use."""
        return self._scorer.model.prior_tasks

    @property
    def done(self) -> bool:
        """Whether no candidate is left to propose; in a space too large to enumerate, the last round found none."""
        if self._supply.everything is None:
            return self._exhausted
        return self._supply.exhausted(self)

    def __contains__(self, candidate: object) -> bool:
        """Whether a candidate was tried or proposed."""
        return candidate in self._trials or candidate in self._pending

    def __len__(self) -> int:
        """The number of candidates that were tried."""
        return len(self._trials)

    def propose(self, count: int) -> list[Proposal]:
        """Propose the next candidates to measure, at most `count`, none that is pending or was tried; fewer or none
        when few are left."""
        self._scorer.learn(self._trials)
        proposals: list[Proposal] = []
        for phase in (self._from_start, self._from_neighbours, self._from_model):
            if len(proposals) < count:
                for chosen in phase(count - len(proposals)):
                    proposal = replace(chosen, relative=not self._scorer.model.fitted)
                    proposals.append(proposal)
                    self._pending[proposal.candidate] = proposal
        self._log.proposed(count, [(p.candidate, p.predicted, p.why) for p in proposals])
        return proposals

    def update(self, candidate: Candidate, outcome: Outcome) -> None:
        """Learn the outcome of a candidate, proposed or not. Several outcomes of one candidate are combined: the cost
        is the median of all samples, and a failure is final; a timeout or a lack of memory after a success is
        ignored."""
        self._check(candidate)
        proposal = self._pending.pop(candidate, None)
        combined = self._trials.add(candidate, outcome)
        if proposal is not None and proposal.cost is not None and self._trials.ranks(candidate):
            self.quality.add(proposal.cost, combined.cost)
        self._log.updated(candidate, outcome)

    def leaders(self, count: int) -> list[Candidate]:
        """The candidates among the `count` best with fewer than `options.repeats` measurements, the fewest first.

        The first best is often a lucky measurement. Measure the leaders again, in turns, and `update`, until there are
        none.
        """
        best = self._trials.best(count)
        return sorted((c for c in best if self._trials.times(c) < self.options.repeats), key=self._trials.times)

    def descend(self) -> None:
        """Begin the final descent: from now on the neighbours of the best come first."""
        self._descending = True
        self._log.called("descend")

    def release(self) -> None:
        """Forget the proposals without an outcome, so that they may be proposed again."""
        self._pending.clear()
        self._exhausted = False
        self._log.called("release")

    def log(self) -> str:
        """The text of all calls that influenced the proposals so far; `replay` rebuilds the search from it."""
        return str(self._log)

    def log_lines(self, start: int = 0) -> list[str]:
        """The lines of the log from number `start` on, counted from zero."""
        return self._log.lines[start:]

    def _plan_start(self) -> list[Proposal]:
        """The proposals of the first round: the defaults, then dissimilar candidates; with earlier tasks, half of these
        are the ones that they rank best."""
        named = dict.fromkeys(defaults_of(self._space))
        for candidate in named:
            self._check(candidate)
        feasible = set(filter_all(self._space, named).feasible.candidates)
        defaults = [c for c in named if c in feasible]
        total = min(max(self.options.start, len(self._sizes)), 2 * self.options.start)
        count = max(total - len(defaults), total // 2)
        drawn = self._supply.drawn(LIKELY * count, named)
        ranked = self._ranked(count // 2, named)
        shuffled = [drawn.candidates[i] for i in self._rng.permutation(len(drawn))]
        spread = spread_out([c for c in shuffled if c not in ranked], count - len(ranked))
        return [Proposal(c, None, "default") for c in defaults] + [Proposal(c, None, "start") for c in ranked + spread]

    def _ranked(self, count: int, named: Collection[Candidate]) -> list[Candidate]:
        """The `count` candidates that earlier tasks (or estimates) rank best, without those `named`; none without
        earlier tasks or estimates."""
        if not self._scorer.ready:
            return []
        scored = self._scorer.score(self._supply.drawn(self.options.pool, named))
        return [scored.pool.candidates[i] for i in pick(scored.pool, best_first(scored.promise), count)]

    def _from_start(self, count: int) -> list[Proposal]:
        """The next `count` proposals of the first round, fewer at its end, with predictions if there is a model."""
        untried = [p for p in self._start if p.candidate not in self]
        batch, self._start = untried[:count], untried[count:]
        if not self._scorer.ready:
            return batch
        scored = self._scorer.score(filter_candidates(self._space, (p.candidate for p in batch)).feasible)
        whys = {proposal.candidate: proposal.why for proposal in batch}
        positions = {candidate: position for position, candidate in enumerate(scored.pool.candidates)}
        return self._proposals(scored, {positions[candidate]: why for candidate, why in whys.items()})

    def _from_neighbours(self, count: int) -> list[Proposal]:
        """In the final descent, at most `count` untried neighbours of the best, best predicted first; else none."""
        final = self.options.final
        if not (self._descending or (final is not None and len(self._trials) >= final)):
            return []
        if self.best is None or not self._scorer.ready:
            return []
        near = (c for c in neighbours(self._sizes, self.best) if c not in self)
        scored = self._scorer.score(filter_all(self._space, near).feasible)
        return self._proposals(scored, dict.fromkeys(best_first(scored.promise)[:count].tolist(), "neighbour"))

    def _from_model(self, count: int) -> list[Proposal]:
        """A batch of a round: draw a pool, evolve and score it, pick by improvement, by mean and at random. Without a
        model: dissimilar random candidates."""
        drawn = self._supply.drawn(self.options.pool, self)
        if not self._scorer.ready:
            order = self._rng.permutation(len(drawn))
            proposals = [Proposal(c, None, "random") for c in spread_out([drawn.candidates[i] for i in order], count)]
        else:
            proposals = self._batch(self._evolve(self._scorer.score(drawn)), len(drawn), count)
        self._exhausted = not proposals and not self._pending
        return proposals

    def _evolve(self, scored: Scored) -> Scored:
        """Return a pool with further mutants: of the best measured candidates, then, `options.generations` - 1 times,
        of its best scored candidates; an enumerated space stays as it is."""
        if self._supply.everything is not None:
            return scored
        parents = self._trials.best(self.options.parents)
        for _ in range(self.options.generations):
            scored_before = set(scored.pool.candidates)
            mutants = self._supply.mutants(parents, self)
            unscored = [i for i, c in enumerate(mutants.candidates) if c not in scored_before]
            scored += self._scorer.score(mutants.subset(unscored))
            order = best_first(scored.improvement(self._best_cost))[: self.options.parents]
            parents = [scored.pool.candidates[i] for i in order]
        return scored

    def _batch(self, scored: Scored, drawn: int, count: int) -> list[Proposal]:
        """Pick at most `count` candidates of a scored pool: shares by improvement, by mean, and at random from its
        first `drawn`."""
        by_chance = self._share(self.options.random, count)
        by_mean = self._share(self.options.greedy, count - by_chance)
        self._chosen += count
        orders = (
            ("improvement", best_first(scored.improvement(self._best_cost)), count - by_chance - by_mean),
            ("mean", best_first(scored.promise), by_mean),
            ("random", self._rng.permutation(drawn), by_chance),
        )
        picked: dict[int, str] = {}
        for why, order, number in orders:
            beside = [scored.pool.candidates[i] for i in picked]
            picked.update(dict.fromkeys(pick(scored.pool, order.tolist(), number, beside), why))
        return self._proposals(scored, picked)

    @property
    def _best_cost(self) -> float | None:
        return None if self.best_outcome is None else self.best_outcome.cost

    def _check(self, candidate: Candidate) -> None:
        if not is_in_space(self._sizes, candidate):
            raise InputError(f"the candidate {candidate} is not one of the space")

    def _share(self, share: float, count: int) -> int:
        """The number of the next `count` proposals that belong to a share, so that small batches add up to it. A share
        of 0.1 and batches of 4: 0, 0, 1, 0, 1, ... of them."""
        return int((self._chosen + count) * share) - int(self._chosen * share)

    def _proposals(self, scored: Scored, whys: Mapping[int, str]) -> list[Proposal]:
        """Return proposals of scored candidates; `whys` maps positions in the pool to the source of the choice, in the
        order of the result."""
        candidates, means = scored.pool.candidates, scored.prediction.mean.tolist()
        gains: list[float | None] = [None] * len(means)
        if self._best_cost is not None and self._scorer.model.fitted:
            gains = scored.improvement(self._best_cost).tolist()
        return [Proposal(candidates[n], means[n], why, improvement=gains[n]) for n, why in whys.items()]
