"""A fixed share of what the fuzzers draw, and what they have found: no traceback, and nothing takes long."""

from __future__ import annotations

from pathlib import Path

import pytest

from compiler.support.errors import StrataError
from tests.fuzz import calls, mutants
from tests.fuzz.mutants import Mutant
from tests.sample import some

SEED = 16
TABLE = """func.func @rows(%T: tensor<100x16xf32>, %I: tensor<5xi64>) -> tensor<5x16xf32> {
  %Y = te.gather "Y" [i = 5, d = 16] %T[%I[i], d] else 0.0 : tensor<100x16xf32>, tensor<5xi64> -> tensor<5x16xf32>
  func.return %Y : tensor<5x16xf32>
}
"""
FOUND: dict[str, tuple[str, tuple[str, ...]]] = {
    "te where loops are taken": (TABLE, ("-p", "loop-to-low")),
    "te where the low level is taken": (TABLE, ("-p", "promote-buffers")),
    "a scalar argument": (
        'func.func @f(%a: f32, %A: memref<4xf32>) {\n  loop.for "i" %i = 4 { }\n  func.return\n}\n',
        ("-p", "loop-to-low"),
    ),
    "a function without a body": ("func.func private @f(memref<4xf32>)\n", ("-p", "reorder-contiguous")),
    "an element that does not fit": (
        "func.func @f() {\n  %a = arith.constant dense<300> : vector<2xi8>\n  func.return\n}\n",
        (),
    ),
    "an element of 65 bits": (
        "func.func @f() {\n  %a = arith.constant dense<18446744073709551616> : vector<2xi64>\n  func.return\n}\n",
        (),
    ),
}


@pytest.mark.parametrize("share", some(range(5), 2))
def test_mutants(share: int) -> None:
    collected = [f"{case}: {said}" for case, _, said in mutants.failures(SEED, range(100 * share, 100 * share + 100))]
    assert collected == []


@pytest.mark.parametrize("name", FOUND)
def test_mutants_that_were_found(name: str, tmp_path: Path) -> None:
    text, options = FOUND[name]
    assert mutants.fault(Mutant(name, text, options), tmp_path) is None


def test_a_crash_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(arguments: list[str]) -> int:
        raise RuntimeError("a fault")

    monkeypatch.setattr(mutants, "strata_opt", crash)
    fault = mutants.fault(Mutant("crash", "", ()), tmp_path)
    assert fault is not None and "RuntimeError: a fault" in fault


def test_every_public_name_is_called_wrongly() -> None:
    names = {target.name for target in calls.targets()}
    assert {"compiler.build", "compiler.te.compute", "Schedule.split", "Kernel.time", "Tensor.__getitem__"} <= names
    assert len(names) > 150


@pytest.mark.parametrize("share", range(5))
def test_wrong_calls(share: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # some calls are right, and write files
    collected = [f"{call}: {said}" for _, call, said in calls.failures(SEED, range(100 * share, 100 * share + 100))]
    assert collected == []


WRONG = [
    ("compiler.build", {"target": "[]"}),
    ("compiler.build", {"policy": "None"}),
    ("Kernel.text", {"level": "[]"}),
    ("Kernel.time", {"repeats": "nan"}),
    ("Kernel.time", {"repeats": "True"}),
    ("Kernel.time", {"min_seconds": "object()"}),
    ("Schedule.split", {"factors": "None"}),
    ("Schedule.split", {"tail": "np.zeros(3)"}),
    ("Schedule.merge", {"shift": "np.zeros(3)"}),
    ("Schedule.sample_perfect_tile", {"parts": "2**70"}),
    ("Schedule.sample_categorical", {"probabilities": "int"}),
    ("Schedule.transform_layout", {"buffer": "{}"}),
    ("Schedule.step", {"op": "'8'"}),
    ("Schedule.multiple", {"size": "-1", "factor": "object()"}),
]


@pytest.mark.parametrize(("name", "wrong"), WRONG, ids=lambda value: str(value))
def test_wrong_calls_that_were_found(name: str, wrong: dict[str, str]) -> None:
    (target,) = (target for target in calls.targets() if target.name == name)
    assert calls.fault(calls.Call(target, tuple(wrong.items()))) is None


@pytest.mark.parametrize("repeats", ["8", None, 8.5, True, 0, -1, float("nan"), []])
def test_counts_are_integers(repeats: object) -> None:
    with pytest.raises(StrataError, match=r"repeats is .*, expected an integer of at least 1"):
        calls._kernel().time(repeats=repeats)
