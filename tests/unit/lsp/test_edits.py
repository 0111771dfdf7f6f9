"""Texts as while typing: no feature raises, and every range is in the text."""

from __future__ import annotations

import random

import pytest

from tests.lsp_edits import FILES, check, edited
from tests.sample import some


@pytest.mark.parametrize("seed", some(range(140), 28))
def test_random_edits(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(4):
        path = rng.choice(FILES)
        check(path, edited(path.read_text(), rng), rng)


@pytest.mark.parametrize("path", some(FILES, 24), ids=lambda path: path.stem)
def test_the_errors_of_files_are_those_that_they_expect(path: object) -> None:
    from pathlib import Path

    assert isinstance(path, Path)
    snapshot = check(path, path.read_text(), random.Random(0), is_deep=True)
    if path.parent.name != "payloads" and not any(command.is_inverted for command in snapshot.commands):
        assert [finding for finding in snapshot.findings if finding.severity == 1] == []
