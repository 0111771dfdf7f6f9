"""The corpus of scripts: another spelling of the same loops is told from other loops."""

import re

import pytest

from tools.scripts_corpus import compare, corpus


@pytest.fixture(scope="module")
def scripts() -> dict[str, str]:
    return corpus(["further/odd product, avx2, 1"])


def test_equal_scripts_do_not_differ(scripts: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(scripts, dict(scripts)) == 0
    assert capsys.readouterr().out == f"0 of {len(scripts)} scripts differ\n"


def test_other_names_of_handles_are_another_spelling(
    scripts: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    name = next(iter(scripts))
    assert compare({**scripts, name: re.sub(r"%i0\b", "%other", scripts[name])}, scripts) == 1
    assert "1 spelled otherwise with equal loops: " in capsys.readouterr().out


def test_a_step_less_makes_other_loops(scripts: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    name = next(iter(scripts))
    assert compare({**scripts, name: re.sub(r"\n +sched.vectorize.*", "", scripts[name], count=1)}, scripts) == 1
    assert f"{name}: OTHER LOOPS" in capsys.readouterr().out
