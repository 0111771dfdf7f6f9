"""`Candidate`, `Space` and `Features`: the interface of a search space to the search and the cost model."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Candidate = tuple[int, tuple[int, ...]]
"""The number of a sketch, and the position chosen at each of its choices."""
LATER = "later"
"""The reason of candidates whose features a space has not computed yet; each later request computes some of them."""


@dataclass(frozen=True)
class Features:
    """The features of n candidates before they are built. `values` (n, features) f32 are finite where feasible, with
    the same columns for all sketches. `reasons` (n,) is 0 for a feasible candidate, else an index into `names`, whose
    entry is the refusal or LATER (deferred); `names[0]` is empty."""

    values: NDArray[np.float32]
    reasons: NDArray[np.int16]
    names: tuple[str, ...]


class Space(Protocol):
    """A search space: sketches with open choices.

    `sizes` has for each sketch the number of options of each choice; a sketch without choices has `()`. A space may
    have `defaults` as well, a sequence of candidates that are known to be reasonable: they are measured first.
    """

    @property
    def sizes(self) -> Sequence[tuple[int, ...]]:
        """The number of options of each choice, a tuple a sketch."""

    def features(self, sketch: int, positions: NDArray[np.int64]) -> Features:
        """Return the features of n candidates of the sketch number `sketch`, in the order of their positions (n,
        choices); a space may defer some."""

    def script(self, candidate: Candidate) -> str:
        """Return the text of a candidate's transform script, with all decisions made."""


@dataclass(frozen=True)
class Pool:
    """Feasible candidates with the values (n, features) f32 of their features, in the same order."""

    candidates: tuple[Candidate, ...]
    values: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.candidates)

    def __add__(self, other: Pool) -> Pool:
        if not self.candidates or not other.candidates:
            return self if self.candidates else other
        return Pool(self.candidates + other.candidates, np.concatenate([self.values, other.values]))

    def subset(self, keep: Sequence[int] | NDArray[np.int64]) -> Pool:
        """A pool of the candidates at the positions `keep`, with their features, in the order of `keep`."""
        return Pool(tuple(self.candidates[i] for i in keep), self.values[np.asarray(keep, dtype=np.int64)])


@dataclass(frozen=True)
class FilteredCandidates:
    """The result of filtering candidates: the feasible ones with their features, the number of refused ones by reason,
    and the deferred ones (`later`)."""

    feasible: Pool
    refused: dict[str, int]
    later: tuple[Candidate, ...] = ()


def defaults_of(space: Space) -> tuple[Candidate, ...]:
    """The candidates that a space names to be measured first; empty if it names none."""
    return tuple(getattr(space, "defaults", ()))


def candidate_count(sizes: Sequence[tuple[int, ...]]) -> int:
    """The number of candidates of a space, by the number of options of each choice, a tuple a sketch: 1 for a sketch
    without choices."""
    return sum(map(prod, sizes))


def is_in_space(sizes: Sequence[tuple[int, ...]], candidate: Candidate) -> bool:
    """Whether a space has a candidate. `sizes`: for each sketch the number of options of each choice."""
    sketch, positions = candidate
    if not 0 <= sketch < len(sizes) or len(positions) != len(sizes[sketch]):
        return False
    return all(0 <= p < size for p, size in zip(positions, sizes[sketch], strict=True))


def enumerate_sketch(sizes: Sequence[tuple[int, ...]], sketch: int) -> Iterator[Candidate]:
    """Yield all candidates of the sketch number `sketch`, with the last choice varying fastest. sizes: the number of
    options of each choice, by sketch."""
    return ((sketch, positions) for positions in product(*map(range, sizes[sketch])))


def neighbours(sizes: Sequence[tuple[int, ...]], candidate: Candidate) -> Iterator[Candidate]:
    """Yield all candidates of a candidate's sketch that differ from it in exactly one choice, which must be in the
    space; by choice, then by option. sizes: the number of options of each choice, by sketch."""
    sketch, positions = candidate
    for choice, size in enumerate(sizes[sketch]):
        for option in range(size):
            if option != positions[choice]:
                yield sketch, (*positions[:choice], option, *positions[choice + 1 :])


def distance(left: Candidate, right: Candidate) -> int | None:
    """The number of choices in which two candidates of one sketch differ; None for candidates of two sketches."""
    return sum(a != b for a, b in zip(left[1], right[1], strict=True)) if left[0] == right[0] else None


def filter_candidates(space: Space, candidates: Iterable[Candidate]) -> FilteredCandidates:
    """Request the features of candidates, sketch by sketch, and split the candidates into feasible, refused and
    deferred ones. Those of one sketch stay in order, and sketches are in the order of their first candidates."""
    by_sketch: defaultdict[int, list[tuple[int, ...]]] = defaultdict(list)
    for sketch, positions in candidates:
        by_sketch[sketch].append(positions)
    feasible_candidates: list[Candidate] = []
    values: list[NDArray[np.float32]] = []
    refused: Counter[str] = Counter()
    later: list[Candidate] = []
    for sketch, rows in by_sketch.items():
        shape = (len(rows), len(space.sizes[sketch]))
        features = space.features(sketch, np.array(rows, dtype=np.int64).reshape(shape))
        for reason in np.flatnonzero(np.bincount(features.reasons)[1:]) + 1:
            refused_rows = np.flatnonzero(features.reasons == reason)
            if features.names[reason] == LATER:
                later += [(sketch, rows[i]) for i in refused_rows]
            else:
                refused[features.names[reason]] += len(refused_rows)
        feasible = np.flatnonzero(features.reasons == 0)
        feasible_candidates += [(sketch, rows[i]) for i in feasible]
        values.append(features.values[feasible])
    pool = Pool(tuple(feasible_candidates), np.concatenate(values) if values else np.zeros((0, 0), np.float32))
    return FilteredCandidates(pool, dict(refused), tuple(later))


def filter_all(space: Space, candidates: Iterable[Candidate]) -> FilteredCandidates:
    """Filter candidates, requesting deferred ones again a few at a time, until none is left or a whole request is
    deferred.

    >>> A = te.placeholder((64,), name="A")
    >>> task = SearchTask(te.function("f", [A], te.nn.exp(A)), threads=1, machine=strata.targets.MACHINES["avx2"])
    >>> sifted = strata.autotune.filter_all(task.space, [(0, ()), (1, ())])
    >>> len(sifted.feasible), sifted.refused
    (2, {})
    """
    sifted = filter_candidates(space, candidates)
    while sifted.later:
        first_few, still_later = sifted.later[:SOME], sifted.later[SOME:]
        more = filter_candidates(space, first_few)
        if len(more.later) == len(first_few):
            return sifted
        refused = dict(Counter(sifted.refused) + Counter(more.refused))
        sifted = FilteredCandidates(sifted.feasible + more.feasible, refused, (*more.later, *still_later))
    return sifted


SOME = 4
"""The number of deferred candidates in a request: few enough that a space does not defer them again."""
