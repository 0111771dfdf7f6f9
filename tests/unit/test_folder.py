"""Temporary folders of measuring: they go with their process, or with the next one."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from compiler.autotune.measure.folder import Folder

HOLDS = """
import time
from compiler.autotune.measure.folder import Folder
folder = Folder()
(folder.path / "large").write_bytes(bytes(1000))
print(folder.path, flush=True)
time.sleep(60)
"""


def test_a_folder_outlives_its_killed_process_until_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "strata-of-others").mkdir()
    command = [sys.executable, "-c", f"import tempfile; tempfile.tempdir = {str(tmp_path)!r}\n{HOLDS}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as process:
        assert process.stdout is not None
        held = Path(process.stdout.readline().strip())
        first = Folder()
        assert held.exists() and (held / "large").exists() and first.path.exists() and first.path.parent == tmp_path
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert held.exists()
    second = Folder()
    assert not held.exists() and first.path.exists() and second.path.exists()
    for folder in (first, second, second):
        folder.close()
    assert [path.name for path in tmp_path.iterdir()] == ["strata-of-others"]
