"""The road from a program to machine code: what a build lowers, reads, writes and verifies, and the rooms it enters."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType

import pytest

import compiler
from compiler import te
from compiler.te import nn

ROOT = Path(compiler.__file__).parent
WATCHED = {
    ("lowering/te_to_loop/nests.py", "program"): "lowered",
    ("program/read.py", "read"): "read",
    ("program/write.py", "write"): "written",
    ("dialects/dominance.py", "verify_module"): "verified",
    ("analysis/verify/prove.py", "verify_schedule"): "proved",
    ("schedule/recorder.py", "apply"): "applied",
}
"""Functions by their files, and what each call of them counts as."""


def counts(build: Callable[[], object]) -> tuple[Counter[str], set[str]]:
    """The calls of watched functions during a build, and the rooms that it enters: folders and files of the package."""
    calls, rooms = Counter[str](), set[str]()
    titles = dict[CodeType, str]()

    def title(code: CodeType) -> str:
        path = Path(code.co_filename)
        if not path.is_relative_to(ROOT):
            return ""
        place = path.relative_to(ROOT)
        rooms.add(place.parts[0])
        return WATCHED.get((place.as_posix(), code.co_name), "")

    def look(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call":
            if code not in titles:
                titles[code] = title(code)
            if titles[code]:
                calls[titles[code]] += 1

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        build()
    finally:
        sys.setprofile(before)
    return calls, rooms


@pytest.fixture(autouse=True)
def as_users_build(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes are trusted, and nothing is cached."""
    monkeypatch.setenv("STRATA_VERIFY_EACH", "0")
    monkeypatch.setenv("STRATA_CACHE", "off")


def two_computes() -> te.Function:
    a, b = te.placeholder((64, 48), name="A"), te.placeholder((48, 32), name="B")
    return te.function("two", [a, b], nn.exp(nn.matmul(a, b)))


def network(layers: int) -> te.Function:
    """Layers of different widths, each of which is a group or two."""
    inputs = [te.placeholder((32, 24), name="X")]
    value = inputs[0]
    for number in range(layers):
        inputs.append(te.placeholder((value.shape[1], 24 + 8 * number), name=f"W{number}"))
        value = nn.softmax(nn.relu(nn.matmul(value, inputs[-1])))
    return te.function("network", inputs, value)


def test_a_program_of_two_computes() -> None:
    function = two_computes()
    compiler.build(function, threads=1, schedule="auto")  # which imports what it needs
    calls, rooms = counts(lambda: compiler.build(function, threads=1, schedule="auto"))
    assert calls == {"lowered": 1, "read": 1, "written": 1, "verified": 1, "proved": 1}
    assert len(rooms) <= 16, sorted(rooms)


def test_a_network() -> None:
    function, groups = network(4), 0

    def build() -> None:
        nonlocal groups
        groups = len(compiler.build(function, threads=1, schedule="auto").groups)

    calls, _ = counts(build)
    assert groups >= 2
    assert calls == {"lowered": groups, "read": groups, "written": groups, "verified": 2, "proved": groups}
