# ruff: noqa: E402
"""torch's own samples of its operators, compiled, beside eager: a share by turns of the operators, none of it wrong.

`python -m tests.operator_samples` runs them in processes of their own, and reports shares and reasons.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")  # which torch's own tests import
pytestmark = pytest.mark.doors

from tests.operator_samples.running import CRASHED, WRONG, outcomes
from tests.operator_samples.samples import BY_NAME, Unit, operators, units
from tests.sample import all_asked

OTHERS = [dtype for dtype in BY_NAME if dtype != "f32"]


def share(dtypes: list[str], step: int, **options: object) -> list[Unit]:
    """One operator in each `step` of them, one sample of each; all where the environment asks for it."""
    found = units(dtypes, "", most=None if all_asked() else 1, **options)
    return found if all_asked() else found[step // 2 :: step]


ONCE_WRONG = ["floor_divide", "remainder"]
UNTESTED_ELSEWHERE = """scatter scatter_add scatter_reduce:amax scatter_reduce:mean index_put index_reduce:prod put
    cdist searchsorted bucketize histc histogram median kthvalue fmax fmin norm addbmm addmv diagonal_scatter
    nn.functional.bilinear nn.functional.embedding_bag nn.functional.grid_sample nn.functional.conv_transpose3d
    nn.functional.adaptive_max_pool2d max_pool2d_with_indices_backward""".split()  # noqa: SIM905
"""Operators that have no other test."""
UNITS = [
    *share(["f32"], 13),
    *share(OTHERS, 200),
    *share(["f32"], 60, special=True),
    *(Unit(operator, "f32", most=2, special=True) for operator in ONCE_WRONG),
    *(Unit(operator, "f32", most=2) for operator in UNTESTED_ELSEWHERE if operator in operators()),
]


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Torch's threads, which other tests have more of."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("unit", UNITS, ids=lambda u: f"{u.operator} {u.dtype}{' special' if u.special else ''}")
def test_samples_agree_with_eager(unit: Unit, one_thread: None) -> None:
    found = [outcome for _, _, run in outcomes(unit) for outcome in run()]
    assert [outcome for outcome in found if outcome.kind in (WRONG, CRASHED)] == []
