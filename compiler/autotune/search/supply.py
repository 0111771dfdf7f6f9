"""Candidates to choose from: drawn at random over all sketches, enumerated, or changed from good ones."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from compiler.autotune.search.options import Options
from compiler.space.candidates import SOME, Candidate, Pool, Sifted, Space, enumerate_sketch, sift, total

Sizes = Sequence[tuple[int, ...]]

CROSSED = 0.3
"""The share of mutants that take each choice from either of two parents of one sketch."""
NEAR = 0.5
"""The share of changes that go to the next option, up or down: options are in order as a rule. Others go anywhere."""
WAVES = 8
"""How often more candidates are drawn for a round when too few of them are feasible and new."""


class Supply:
    """Feasible candidates of a space that were not tried yet, drawn or mutated; counts the infeasible ones.

    A space of at most `options.pool` candidates is enumerated, and `everything` holds the candidates whose features are
    known: features that the space defers are asked for again in each round, so that no round waits for all.
    `infeasible` counts the rejected candidates by reason; where the space is not enumerated, a candidate drawn twice
    counts twice.
    """

    def __init__(self, space: Space, options: Options, rng: np.random.Generator) -> None:
        self.infeasible: Counter[str] = Counter()
        self.everything: Pool | None = None
        self._space = space
        self._sizes = tuple(space.sizes)
        self._options = options
        self._rng = rng
        self._later: tuple[Candidate, ...] = ()
        if total(self._sizes) <= options.pool:
            sketches = range(len(self._sizes))
            sifted = self._sifted(c for sketch in sketches for c in enumerate_sketch(self._sizes, sketch))
            self.everything, self._later = sifted.feasible, sifted.later

    def _sifted(self, candidates: Iterable[Candidate]) -> Sifted:
        """The feasible candidates among some; infeasible ones are counted, deferred ones are not."""
        sifted = sift(self._space, candidates)
        self.infeasible.update(sifted.refused)
        return sifted

    def drawn(self, count: int, tried: Container[Candidate]) -> Pool:
        """About `count` candidates drawn over all sketches and not tried; of an enumerated space all that are known,
        and at least one while there is one."""
        if self.everything is not None:
            return self._left(self.everything, tried)
        pool, seen = Pool((), np.zeros((0, 0), np.float32)), set[Candidate]()
        later: tuple[Candidate, ...] = ()
        for _ in range(WAVES):
            fresh = [c for c in draw(self._sizes, count, self._rng) if c not in seen and c not in tried]
            seen.update(fresh)
            sifted = self._sifted(fresh)
            pool, later = pool + sifted.feasible, later + sifted.later
            if len(pool) >= count // 2:
                break
        return pool if len(pool) else self._first_of(later)

    def _first_of(self, later: tuple[Candidate, ...]) -> Pool:
        """The first feasible candidates among deferred ones, asked for as often as that takes."""
        sifted = self._told(later)
        while sifted.later and not len(sifted.feasible):
            sifted = self._told(sifted.later)
        return sifted.feasible

    def _told(self, later: tuple[Candidate, ...]) -> Sifted:
        """What a space tells now of candidates that it put off: of all, or where that is nothing, of the first few;
        none are left where it tells nothing even of these."""
        sifted = self._sifted(later)
        if len(sifted.later) < len(later) or not later:
            return sifted
        first_few, still_later = later[:SOME], later[SOME:]
        sifted = self._sifted(first_few)
        return Sifted(
            sifted.feasible, sifted.refused, (*sifted.later, *still_later) if len(sifted.later) < len(first_few) else ()
        )

    def exhausted(self, tried: Container[Candidate]) -> bool:
        """Whether an enumerated space has nothing left that was not tried."""
        return self.everything is not None and not self._later and all(c in tried for c in self.everything.candidates)

    def _left(self, pool: Pool, tried: Container[Candidate]) -> Pool:
        """The untried candidates of an enumerated space, after asking again for deferred ones."""
        while True:
            sifted = self._told(self._later)
            self.everything = pool = pool + sifted.feasible
            self._later = sifted.later
            left = [i for i, c in enumerate(pool.candidates) if c not in tried]
            if left or not self._later:
                return pool.subset(left)

    def mutants(self, parents: Sequence[Candidate], tried: Container[Candidate]) -> Pool:
        """Candidates made from good ones, best first, and not tried."""
        made = mutate(self._sizes, parents, self._options.mutants, self._rng)
        return self._sifted(c for c in made if c not in tried).feasible


def draw(sizes: Sizes, count: int, rng: np.random.Generator) -> list[Candidate]:
    """About `count` different candidates, every sketch with the same share; one with fewer is enumerated.

    What small sketches leave of their share goes to the others.
    """
    candidates: list[Candidate] = []
    order = sorted(range(len(sizes)), key=lambda sketch: (prod(sizes[sketch]), sketch))
    for place, sketch in enumerate(order):
        share = -(-max(count - len(candidates), 0) // (len(order) - place))
        candidates += draw_sketch(sizes, sketch, share, rng)
    return candidates


def draw_sketch(sizes: Sizes, sketch: int, count: int, rng: np.random.Generator) -> list[Candidate]:
    """At most `count` different candidates of a sketch; all where it has no more."""
    if prod(sizes[sketch]) <= count:
        return list(enumerate_sketch(sizes, sketch))
    rows = rng.integers(0, np.array(sizes[sketch]), (count, len(sizes[sketch])))
    return list(dict.fromkeys((sketch, tuple(row)) for row in rows.tolist()))


def mutate(sizes: Sizes, parents: Sequence[Candidate], count: int, rng: np.random.Generator) -> list[Candidate]:
    """At most `count` different candidates made from parents, best first: good ones have more children.

    A child is a parent, or a crossing of two of one sketch, with one choice changed and every other one with the
    chance that changes one more on average.
    """
    if not parents:
        return []
    weights = 1.0 / np.sqrt(np.arange(1, len(parents) + 1))
    chosen = rng.choice(len(parents), count, p=weights / weights.sum())
    by_sketch: defaultdict[int, list[tuple[int, ...]]] = defaultdict(list)
    for number in chosen.tolist():
        sketch, positions = parents[number]
        by_sketch[sketch].append(positions)
    mutants: list[Candidate] = []
    for sketch, rows in by_sketch.items():
        if sizes[sketch]:
            children_of_sketch = _children(np.array(sizes[sketch]), np.array(rows), rng)
            mutants += [(sketch, tuple(row)) for row in children_of_sketch.tolist()]
    return list(dict.fromkeys(mutants))


def _children(sizes: NDArray[np.int64], rows: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """One child for each row (n, choices): crossed with another row or not, then changed."""
    shape = rows.shape
    crossed = (rng.random((shape[0], 1)) < CROSSED) & (rng.random(shape) < 0.5)
    rows = np.where(crossed, rows[rng.permutation(shape[0])], rows)
    changed = rng.random(shape) < 1 / shape[1]
    changed[np.arange(shape[0]), rng.integers(0, shape[1], shape[0])] = True
    step = np.clip(rows + np.where(rng.random(shape) < 0.5, 1, -1), 0, sizes - 1)
    anywhere = rng.integers(0, sizes, shape)
    replacement = np.where(rng.random(shape) < NEAR, step, anywhere)
    return np.where(changed, replacement, rows)
