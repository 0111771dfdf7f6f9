"""A GPU that is pretended, for tests of kernels that run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

PRETENDED = Path(__file__).parents[2] / "pretended_gpu"


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A GPU that is pretended, also for the processes that are started."""
    pytest.importorskip("compiler")
    try:
        import cupy

        if not str(cupy.__file__).startswith(str(PRETENDED)):
            pytest.skip("there is a CuPy here")
    except ImportError:
        pass
    monkeypatch.syspath_prepend(str(PRETENDED))
    yield
    import sys

    sys.modules.pop("cupy", None)
