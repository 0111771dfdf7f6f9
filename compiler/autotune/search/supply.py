"""Candidates to choose from: drawn at random over all sketches, enumerated, or mutated from good ones."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from compiler.autotune.search.options import Options
from compiler.space.candidates import (
    SOME,
    Candidate,
    FilteredCandidates,
    Pool,
    Space,
    candidate_count,
    enumerate_sketch,
    filter_candidates,
)

Sizes = Sequence[tuple[int, ...]]

CROSSED = 0.3
"""The share of mutants that take each choice from either of two parents of one sketch."""
NEAR = 0.5
"""The share of changed choices that move to a neighbouring option, since options are usually ordered; others are
uniform."""
WAVES = 8
"""The maximum number of draws in a round; a draw is repeated until half the requested number are feasible and new."""


class Supply:
    """A source of untried feasible candidates of a space, drawn or mutated.

    everything: the feasible candidates of a space of at most `options.pool`, which is enumerated; else None. The space
    may defer features; those are requested again in each round, so that no round waits for all.
    infeasible: the number of rejected candidates by reason; without enumeration a candidate drawn twice counts twice.
    """

    def __init__(self, space: Space, options: Options, rng: np.random.Generator) -> None:
        self.infeasible: Counter[str] = Counter()
        self.everything: Pool | None = None
        self._space = space
        self._sizes = tuple(space.sizes)
        self._options = options
        self._rng = rng
        self._later: tuple[Candidate, ...] = ()
        if candidate_count(self._sizes) <= options.pool:
            sketches = range(len(self._sizes))
            sifted = self._sifted(c for sketch in sketches for c in enumerate_sketch(self._sizes, sketch))
            self.everything, self._later = sifted.feasible, sifted.later

    def _sifted(self, candidates: Iterable[Candidate]) -> FilteredCandidates:
        """Filter candidates into feasible, infeasible and deferred ones, and count the infeasible ones."""
        sifted = filter_candidates(self._space, candidates)
        self.infeasible.update(sifted.refused)
        return sifted

    def drawn(self, count: int, tried: Container[Candidate]) -> Pool:
        """Draw about `count` feasible untried candidates over all sketches; of an enumerated space return all that are
        not deferred. If there are none, request deferred ones until one is feasible or none is left."""
        if self.everything is not None:
            return self._left(self.everything, tried)
        pool, drawn_before = Pool((), np.zeros((0, 0), np.float32)), set[Candidate]()
        later: tuple[Candidate, ...] = ()
        for _ in range(WAVES):
            fresh = [c for c in draw(self._sizes, count, self._rng) if c not in drawn_before and c not in tried]
            drawn_before.update(fresh)
            sifted = self._sifted(fresh)
            pool, later = pool + sifted.feasible, later + sifted.later
            if len(pool) >= count // 2:
                break
        return pool if len(pool) else self._first_of(later)

    def _first_of(self, later: tuple[Candidate, ...]) -> Pool:
        """The first feasible candidates among deferred ones, requested until there are some or none is deferred."""
        sifted = self._resift(later)
        while sifted.later and not len(sifted.feasible):
            sifted = self._resift(sifted.later)
        return sifted.feasible

    def _resift(self, later: tuple[Candidate, ...]) -> FilteredCandidates:
        """Filter deferred candidates again: all, or if the space still defers all of them, only the first few. If it
        defers even these, drop all: `later` of the result is empty."""
        sifted = self._sifted(later)
        if len(sifted.later) < len(later) or not later:
            return sifted
        first_few, still_later = later[:SOME], later[SOME:]
        sifted = self._sifted(first_few)
        return FilteredCandidates(
            sifted.feasible, sifted.refused, (*sifted.later, *still_later) if len(sifted.later) < len(first_few) else ()
        )

    def exhausted(self, tried: Container[Candidate]) -> bool:
        """Whether all feasible candidates of an enumerated space were tried; False for a larger space."""
        return self.everything is not None and not self._later and all(c in tried for c in self.everything.candidates)

    def _left(self, pool: Pool, tried: Container[Candidate]) -> Pool:
        """Add deferred candidates that are feasible by now to an enumerated space, and return its untried ones."""
        while True:
            sifted = self._resift(self._later)
            self.everything = pool = pool + sifted.feasible
            self._later = sifted.later
            untried = [i for i, c in enumerate(pool.candidates) if c not in tried]
            if untried or not self._later:
                return pool.subset(untried)

    def mutants(self, parents: Sequence[Candidate], tried: Container[Candidate]) -> Pool:
        """Mutate parents, best first, to at most `options.mutants` candidates; return the feasible untried ones."""
        mutants = mutate(self._sizes, parents, self._options.mutants, self._rng)
        return self._sifted(c for c in mutants if c not in tried).feasible


def draw(sizes: Sizes, count: int, rng: np.random.Generator) -> list[Candidate]:
    """Draw about `count` different candidates, an equal share of each sketch; a smaller sketch is enumerated. The
    unused share of small sketches goes to the others: 10 of sketches with 2 and 100 candidates are 2 and 8. sizes: for
    each sketch the number of options of each choice.

    >>> strata.autotune.draw([(2, 3), (1,)], 3, np.random.default_rng(0))
    [(1, (0,)), (0, (1, 1)), (0, (1, 0))]
    """
    candidates: list[Candidate] = []
    order = sorted(range(len(sizes)), key=lambda sketch: (prod(sizes[sketch]), sketch))
    for rank, sketch in enumerate(order):
        share = -(-max(count - len(candidates), 0) // (len(order) - rank))
        candidates += draw_sketch(sizes, sketch, share, rng)
    return candidates


def draw_sketch(sizes: Sizes, sketch: int, count: int, rng: np.random.Generator) -> list[Candidate]:
    """Draw at most `count` different candidates of a sketch; all of them if it has no more."""
    if prod(sizes[sketch]) <= count:
        return list(enumerate_sketch(sizes, sketch))
    rows = rng.integers(0, np.array(sizes[sketch]), (count, len(sizes[sketch])))
    return list(dict.fromkeys((sketch, tuple(row)) for row in rows.tolist()))


def mutate(sizes: Sizes, parents: Sequence[Candidate], count: int, rng: np.random.Generator) -> list[Candidate]:
    """Mutate parents, which come best first, to at most `count` different candidates; better ones have more children.
    Parents of a sketch without choices have none.

    A child is a parent, or a crossing of two of one sketch. One of its n choices is drawn again, and each further one
    with the chance 1 / n; a choice may draw its former option, so that a child may equal a parent.
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
    """Return a child of each row (n, choices): crossed with another row with the chance CROSSED, then one choice drawn
    again, and each further one with the chance 1 / choices. A choice is drawn from the two next options with the chance
    NEAR (beyond an end it stays), else from all. `sizes` (choices,): the numbers of options."""
    shape = rows.shape
    crossed = (rng.random((shape[0], 1)) < CROSSED) & (rng.random(shape) < 0.5)
    rows = np.where(crossed, rows[rng.permutation(shape[0])], rows)
    changed = rng.random(shape) < 1 / shape[1]
    changed[np.arange(shape[0]), rng.integers(0, shape[1], shape[0])] = True
    step = np.clip(rows + np.where(rng.random(shape) < 0.5, 1, -1), 0, sizes - 1)
    anywhere = rng.integers(0, sizes, shape)
    replacement = np.where(rng.random(shape) < NEAR, step, anywhere)
    return np.where(changed, replacement, rows)
