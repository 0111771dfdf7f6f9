"""Random programs under random scripts (tests/fuzz/scripts.py): a fixed share, and the seeds that once failed."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.fuzz import proofs
from tests.fuzz.scripts import check, check_fault
from tests.sample import some

CHUNK = 10
FOUND = [115, 3075]
"""Seeds that once failed."""


@pytest.mark.parametrize("chunk", some(range(30), 8))
def test_random_scripts(chunk: int) -> None:
    answers = Counter(
        check(seed, native=seed % CHUNK == 0)[1].answer for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK)
    )
    assert answers["proved"] > CHUNK // 2


@pytest.mark.parametrize("chunk", some(range(10)))
def test_random_faults_are_not_proved(chunk: int) -> None:
    answers = Counter(check_fault(seed) for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK))
    assert answers["refuted"]


@pytest.mark.parametrize("chunk", some(range(24)))
def test_wrong_mutants_are_not_proved(chunk: int) -> None:
    answers = Counter(proofs.check(seed) for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK))
    assert answers["refuted"]


@pytest.mark.parametrize("seed", FOUND)
def test_seeds_that_once_failed(seed: int) -> None:
    check(seed, native=True)
