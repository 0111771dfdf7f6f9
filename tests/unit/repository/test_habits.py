"""What people who take part use: versions of tools, the hooks before a commit, the jobs of CI."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[3]
PINS = dict(re.findall(r"^([\w-]+)==(\S+)$", (ROOT / "constraints.txt").read_text("utf-8"), re.MULTILINE))
HOOKS = (ROOT / ".pre-commit-config.yaml").read_text("utf-8")
JOBS = (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")


def other_versions(text: str) -> set[tuple[str, str]]:
    """The packages that a text pins to another version than constraints.txt."""
    return {(name, version) for name, version in re.findall(r"\b([\w-]+)==([\w.]+)", text) if PINS[name] != version}


def test_hooks_have_the_versions_of_make() -> None:
    assert HOOKS.count("ruff==") == 2 and other_versions(HOOKS) == set()
    assert other_versions("[ruff==0.0.1]") == {("ruff", "0.0.1")}


def test_hooks_check_what_make_does() -> None:
    commands = re.findall(r"^        name: (.*)$", HOOKS, re.MULTILINE)
    (lint,) = re.findall(r"^lint:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    assert commands == [*re.findall(r"\$\(BIN\)/(.*) \.", lint), "make types"]


def test_every_tool_of_make_has_a_version() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    names = {re.split(r"[><=]", requirement)[0] for requirement in (*extras["dev"], *extras["docs"])}
    assert names - PINS.keys() == set()


def test_ci_runs_what_is_there() -> None:
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o100 and "- run: .ci/run\n" in JOBS
    targets = set(re.findall(r"^([\w-]+):", MAKEFILE, re.MULTILINE))
    scripts = (JOBS, (ROOT / ".ci" / "run").read_text("utf-8"))
    named = [set(re.findall(r"\bmake ([a-z][\w-]*)", script)) for script in scripts]
    assert named[0] == {"fuzz", "test-all"} and named[0] | named[1] <= targets
