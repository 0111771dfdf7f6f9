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
from compiler.space.candidates import Candidate, Space, belongs, defaults_of, neighbours, sift, sift_all
from compiler.support.errors import InputError

LIKELY = 16
"""How many candidates are drawn for each of the random start; dissimilar ones are chosen."""


@dataclass(frozen=True)
class Proposal:
    """A candidate to measure. `predicted` is its log cost by the model (flattened where it is slow), None without a
    prediction; `relative` says that the prediction rests on earlier tasks only, whose costs compare with each other
    alone. `why` names the source of the choice: default, start, improvement, mean, random or neighbour. `improvement`
    is the expected decrease of the best log cost, None while it is unknown."""

    candidate: Candidate
    predicted: float | None
    why: str
    relative: bool = False
    improvement: float | None = None

    @property
    def cost(self) -> float | None:
        """The log cost that it is predicted to have, if there is one to compare with others."""
        return None if self.relative else self.predicted


class Search:
    """Chooses what to measure next in a space; the same seed and the same calls give the same proposals.

    Its phases: the space's defaults and a random start, spread over the sketches; rounds in which the model scores
    thousands of candidates, drawn and mutated from good ones; at the end of the budget, or after `descend()`, the
    neighbours of the best until none of them is better. What was proposed or has an outcome is not proposed again; to
    measure leaders again, ask `leaders`. What is infeasible is counted, never proposed. `warm_starts` are trials of
    earlier tasks: they rank candidates before there are trials of this one, and as long as they rank better than a
    coin.

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
        """The candidate with the lowest cost, all its outcomes combined; None while none was measured."""
        return next(iter(self._trials.best(1)), None)

    @property
    def best_outcome(self) -> Outcome | None:
        """The outcome of the best candidate."""
        return None if self.best is None else self._trials.outcome(self.best)

    @property
    def pending(self) -> tuple[Candidate, ...]:
        """The proposals without an outcome."""
        return tuple(self._pending)

    @property
    def infeasible(self) -> Counter[str]:
        """How many of the candidates that were looked at are infeasible, by reason."""
        return self._supply.infeasible

    @property
    def heard(self) -> int:
        """The number of earlier tasks whose ranking helps so far."""
        return self._scorer.model.heard

    @property
    def done(self) -> bool:
        """Whether there is nothing left to propose."""
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
        """The next candidates to measure, at most `count`, and none twice; fewer or none when few are left."""
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
        is the median of all samples, and a failure stands; a timeout or a lack of memory after a success counts for
        nothing."""
        self._check(candidate)
        proposal = self._pending.pop(candidate, None)
        combined = self._trials.add(candidate, outcome)
        if proposal is not None and proposal.cost is not None and self._trials.ranks(candidate):
            self.quality.add(proposal.cost, combined.cost)
        self._log.updated(candidate, outcome)

    def leaders(self, count: int) -> list[Candidate]:
        """Those of the `count` best that were measured fewer than `options.repeats` times, the least measured first.

        The first best is often a lucky measurement: measure these again, in turns, and `update` until there are none.
        """
        best = self._trials.best(count)
        return sorted((c for c in best if self._trials.times(c) < self.options.repeats), key=self._trials.times)

    def descend(self) -> None:
        """From now on the neighbours of the best come first, as at the end of a budget."""
        self._descending = True
        self._log.called("descend")

    def release(self) -> None:
        """Forget proposals without an outcome: they will not be measured now, and may be proposed again."""
        self._pending.clear()
        self._exhausted = False
        self._log.called("release")

    def log(self) -> str:
        """All calls that influenced the proposals so far; `replay` rebuilds the search from them."""
        return str(self._log)

    def log_lines(self, start: int = 0) -> list[str]:
        """The lines of the log from one on, counted from zero."""
        return self._log.lines[start:]

    def _plan_start(self) -> list[Proposal]:
        """The defaults, then dissimilar candidates; with earlier tasks, half are those that these rank best."""
        named = dict.fromkeys(defaults_of(self._space))
        for candidate in named:
            self._check(candidate)
        feasible = set(sift_all(self._space, named).feasible.candidates)
        defaults = [c for c in named if c in feasible]
        wanted = min(max(self.options.start, len(self._sizes)), 2 * self.options.start)
        count = max(wanted - len(defaults), wanted // 2)
        drawn = self._supply.drawn(LIKELY * count, named)
        told = self._told(count // 2, named)
        shuffled = [drawn.candidates[i] for i in self._rng.permutation(len(drawn))]
        spread = spread_out([c for c in shuffled if c not in told], count - len(told))
        return [Proposal(c, None, "default") for c in defaults] + [Proposal(c, None, "start") for c in told + spread]

    def _told(self, count: int, named: Collection[Candidate]) -> list[Candidate]:
        """What earlier tasks rank best; nothing without any."""
        if not self._scorer.ready:
            return []
        scored = self._scorer.score(self._supply.drawn(self.options.pool, named))
        return [scored.pool.candidates[i] for i in pick(scored.pool, best_first(scored.promise), count)]

    def _from_start(self, count: int) -> list[Proposal]:
        """The remainder of the first round, with predictions if there is a model by now."""
        left = [p for p in self._start if p.candidate not in self]
        now, self._start = left[:count], left[count:]
        if not self._scorer.ready:
            return now
        scored = self._scorer.score(sift(self._space, (p.candidate for p in now)).feasible)
        whys = {proposal.candidate: proposal.why for proposal in now}
        places = {candidate: place for place, candidate in enumerate(scored.pool.candidates)}
        return self._proposals(scored, {places[candidate]: why for candidate, why in whys.items()})

    def _from_neighbours(self, count: int) -> list[Proposal]:
        """In the final descent, the untried neighbours of the best, best predicted first."""
        final = self.options.final
        if not (self._descending or (final is not None and len(self._trials) >= final)):
            return []
        if self.best is None or not self._scorer.ready:
            return []
        near = (c for c in neighbours(self._sizes, self.best) if c not in self)
        scored = self._scorer.score(sift_all(self._space, near).feasible)
        return self._proposals(scored, dict.fromkeys(best_first(scored.promise)[:count].tolist(), "neighbour"))

    def _from_model(self, count: int) -> list[Proposal]:
        """A round: a pool, scored, and of it a batch by improvement, by mean, and at random."""
        drawn = self._supply.drawn(self.options.pool, self)
        if not self._scorer.ready:
            order = self._rng.permutation(len(drawn))
            proposals = [Proposal(c, None, "random") for c in spread_out([drawn.candidates[i] for i in order], count)]
        else:
            proposals = self._batch(self._evolve(self._scorer.score(drawn)), len(drawn), count)
        self._exhausted = not proposals and not self._pending
        return proposals

    def _evolve(self, scored: Scored) -> Scored:
        """A pool with mutants of the best measured candidates, then of the pool's best, as many generations as set."""
        if self._supply.everything is not None:
            return scored
        parents = self._trials.best(self.options.parents)
        for _ in range(self.options.generations):
            scored_before = set(scored.pool.candidates)
            made = self._supply.mutants(parents, self)
            scored += self._scorer.score(
                made.subset([i for i, c in enumerate(made.candidates) if c not in scored_before])
            )
            order = best_first(scored.improvement(self._best_cost))[: self.options.parents]
            parents = [scored.pool.candidates[i] for i in order]
        return scored

    def _batch(self, scored: Scored, drawn: int, count: int) -> list[Proposal]:
        """A batch of a pool whose first `drawn` were drawn at random."""
        random = self._share(self.options.random, count)
        mean = self._share(self.options.greedy, count - random)
        self._chosen += count
        orders = (
            ("improvement", best_first(scored.improvement(self._best_cost)), count - random - mean),
            ("mean", best_first(scored.promise), mean),
            ("random", self._rng.permutation(drawn), random),
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
        if not belongs(self._sizes, candidate):
            raise InputError(f"the candidate {candidate} is not one of the space")

    def _share(self, share: float, count: int) -> int:
        """How many of the next `count` are of a share, so that small batches keep it over time."""
        return int((self._chosen + count) * share) - int(self._chosen * share)

    def _proposals(self, scored: Scored, whys: Mapping[int, str]) -> list[Proposal]:
        """Scored candidates, by their positions."""
        candidates, means = scored.pool.candidates, scored.prediction.mean.tolist()
        gains: list[float | None] = [None] * len(means)
        if self._best_cost is not None and self._scorer.model.fitted:
            gains = scored.improvement(self._best_cost).tolist()
        return [Proposal(candidates[n], means[n], why, improvement=gains[n]) for n, why in whys.items()]
