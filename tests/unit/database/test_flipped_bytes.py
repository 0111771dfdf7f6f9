"""Files of tuning with bytes changed: a share of what `python -m tests.fuzz.files` draws, and what it has found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.files import KINDS, database, read_database, read_log, trial
from tests.sample import some

FOUND = [("database", 3773471939)]
"""Seeds of files that once ended otherwise than in a sentence."""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", some(range(500), 12))
def test_a_changed_file_is_read_or_refused_in_words(kind: str, seed: int, tmp_path: Path) -> None:
    trial(kind, seed, tmp_path)


@pytest.mark.parametrize(("kind", "seed"), FOUND)
def test_what_was_found(kind: str, seed: int, tmp_path: Path) -> None:
    trial(kind, seed, tmp_path)


def test_names_that_are_no_text_are_damage(tmp_path: Path) -> None:
    """SQLite quotes them in what it says, which Python cannot read."""
    read_database(database().replace(b"CREATE TABLE programs", b"CREATE TABLE pro\x9crams"), tmp_path)
    read_database(database().replace(b"records_by_key", b"records\x9cby_key"), tmp_path)


@pytest.mark.parametrize(
    "line",
    [
        '{"propose": 1000000000}',
        '{"propose": "4"}',
        '{"update": [0, "12"], "outcome": {}}',
        '{"update": [0, [0]], "outcome": {"kind": "measured", "seconds": [1], "rates": []}}',
        '{"update": [0, [0]], "outcome": {"kind": "x", "seconds": [], "rates": []}}',
        '{"update": [0, [0]], "outcome": {"kind": "measured", "seconds": [1e999], "rates": [1]}}',
        '{"call": ["descend"]}',
        "[" * 100_000,
        "7",
        '"propose"',
    ],
)
def test_lines_that_no_search_has_written(line: str, tmp_path: Path) -> None:
    from tests.fuzz.files import log

    read_log(log() + line.encode() + b"\n", tmp_path)
