"""Temporary folders of measuring: they go with their process or the next one, and nothing else does."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from compiler.autotune.measure import folder as room
from compiler.autotune.measure.folder import MARKER, WRITTEN, Folder

HOLDS = """
import time
from compiler.autotune.measure.folder import Folder
folder = Folder()
(folder.path / "large").write_bytes(bytes(1000))
print(folder.path, flush=True)
time.sleep(60)
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def own(temporary: Path) -> Path:
    return temporary / f"strata-{os.geteuid()}"


def test_a_folder_outlives_its_killed_process_until_the_next_one(temporary: Path) -> None:
    command = [sys.executable, "-c", f"import tempfile; tempfile.tempdir = {str(temporary)!r}\n{HOLDS}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as process:
        assert process.stdout is not None
        held = Path(process.stdout.readline().strip())
        first = Folder()
        assert held.exists() and (held / "large").exists() and first.path.exists()
        assert first.path.parent == held.parent == own(temporary)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert held.exists()
    second = Folder()
    assert not held.exists() and first.path.exists() and second.path.exists()
    for folder in (first, second, second):
        folder.close()
    assert list(temporary.iterdir()) == [], "and nothing around them"


def test_nobody_else_enters(temporary: Path) -> None:
    folder = Folder()
    for path in (folder.path, own(temporary)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    folder.close()


def dead(path: Path, marker: bytes = WRITTEN) -> Path:
    """A folder such as a process leaves that was killed."""
    path.mkdir(mode=0o700, parents=True)
    (path / MARKER).write_bytes(marker)
    (path / "precious").write_text("work\n")
    return path


def _beside(temporary: Path) -> Path:
    return dead(temporary / "strata-mine")


def _other_marker(temporary: Path) -> Path:
    return dead(own(temporary) / "x", b"")


def _longer_marker(temporary: Path) -> Path:
    return dead(own(temporary) / "x", WRITTEN + b"more")


def _open_to_others(temporary: Path) -> Path:
    path = dead(own(temporary) / "x")
    path.chmod(0o755)
    return path


def _through_a_link(temporary: Path) -> Path:
    path = dead(temporary / "elsewhere")
    (own(temporary) / "x").symlink_to(path)
    return path


def _marker_is_a_link(temporary: Path) -> Path:
    path = dead(own(temporary) / "x")
    (path / MARKER).rename(path / "marker")
    (path / MARKER).symlink_to(path / "marker")
    return path


def _of_another_user(temporary: Path) -> Path:
    path = dead(own(temporary) / "x")
    os.chown(path, 65534, 65534)
    return path


@pytest.mark.parametrize(
    "made",
    [
        _beside,
        _other_marker,
        _longer_marker,
        _open_to_others,
        _through_a_link,
        _marker_is_a_link,
        pytest.param(_of_another_user, marks=pytest.mark.skipif(os.geteuid() != 0, reason="only root can do that")),
    ],
)
def test_what_is_not_certainly_ours_stays(made: Callable[[Path], Path], temporary: Path) -> None:
    own(temporary).mkdir(mode=0o700)
    ours, path = dead(own(temporary) / "ours"), made(temporary)
    Folder().close()
    assert (path / "precious").read_text() == "work\n" and not ours.exists()


def _file(path: Path) -> None:
    path.write_text("")


def _link(path: Path) -> None:
    (path.parent / "elsewhere").mkdir(mode=0o700)
    path.symlink_to(path.parent / "elsewhere")


def _open(path: Path) -> None:
    path.mkdir()
    path.chmod(0o777)


@pytest.mark.parametrize("squat", [_file, _link, _open])
def test_where_somebody_has_taken_the_name_a_folder_has_another_one(
    squat: Callable[[Path], None], temporary: Path
) -> None:
    squat(own(temporary))
    folder = Folder()
    assert folder.path.parent == temporary and stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    assert not (temporary / "elsewhere").exists() or not list((temporary / "elsewhere").iterdir())
    folder.close()
    assert not folder.path.exists()


def test_users_have_folders_of_their_own(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = dead(temporary / "strata-4711" / "x")
    Folder().close()
    assert kept.exists()


def test_a_marker_that_cannot_be_written_leaves_nothing(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*stated: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched, pytest.raises(OSError, match="No space left"):
        patched.setattr(room.os, "write", full)
        Folder()
    assert list(temporary.iterdir()) == []


def test_a_folder_is_made_where_another_process_removes_the_one_around_it(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, left = room._own, iter(range(3))

    def removed() -> Path | None:
        path = found()
        if next(left, None) is not None and path is not None:
            path.rmdir()
        return path

    monkeypatch.setattr(room, "_own", removed)
    folder = Folder()
    assert folder.path.is_dir() and folder.path.parent == own(temporary)
    folder.close()
