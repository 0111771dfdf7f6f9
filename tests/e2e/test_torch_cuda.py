"""`torch.compile` on pretended GPUs: tests/torch_cuda_cases.py, in a process whose torch has a pretended device."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.host_cuda import needs_gxx

CASES = Path(__file__).parents[1] / "torch_cuda_cases.py"


@needs_gxx
@pytest.mark.doors
@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
def test_each_case() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(CASES)]
    run = subprocess.run([*command, "--show-capture=no"], capture_output=True, text=True, cwd=CASES.parents[1])
    assert run.returncode == 0 and " passed" in run.stdout and "skipped" not in run.stdout, run.stdout[-6000:]
