"""Docs are executed: the README's Python, and its strata-opt commands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from compiler.opt import main as strata_opt

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", README, re.DOTALL))
def test_python(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out


@pytest.mark.parametrize("command", re.findall(r"^python tools/opt.py (.*)$", README, re.MULTILINE))
def test_commands(command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    assert strata_opt(shlex.split(command)) == 0
    assert capsys.readouterr().out
