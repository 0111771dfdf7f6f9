"""`strata.verify`: loops are compared without a script."""

from __future__ import annotations

import pytest

import strata
from strata import Schedule, te
from strata.errors import InputError


def scheduled() -> Schedule:
    A = te.placeholder((12, 8), name="A")
    s = Schedule(te.function("f", [A], te.compute((12, 8), lambda i, j: A[i, j] + 1.0, name="B")))
    s.split(s.get_loops("B")[0], [None, 5])
    return s


def test_a_schedule_is_compared_with_its_beginning() -> None:
    s = scheduled()
    assert strata.verify(s) and strata.verify(s, s.original) and strata.verify(str(s.module), str(s.original))


def test_loops_edited_by_hand_are_refuted() -> None:
    s = scheduled()
    text = str(s.module)
    assert text.count("= 3 {") == 1
    assert strata.verify(text.replace("= 3 {", "= 2 {"), s.original).answer == "refuted"


@pytest.mark.parametrize(
    ("programs", "reason"),
    [(("func.func @f() {\n  func.return\n}\n",), "needs the original program"), ((3, 4), "cannot build a int")],
)
def test_what_is_no_program_is_refused(programs: tuple[object, ...], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        strata.verify(*programs)


def test_another_level_is_refused() -> None:
    A = te.placeholder((4,), name="A")
    f = te.function("f", [A], te.nn.exp(A))
    with pytest.raises(InputError, match=r"at the loop level: strata\.lower"):
        strata.verify(f, f)
