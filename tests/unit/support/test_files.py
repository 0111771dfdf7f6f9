"""Reading and writing files: in one step, through nobody's links, and every refusal in a sentence."""

from __future__ import annotations

import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from compiler.__main__ import main
from compiler.autotune.search.log import LogFile
from compiler.opt import main as opt
from compiler.support.errors import InputError
from compiler.support.files import read, to_path, write
from tests.said import refusal

NAMELESS = ["", "a\0b", "\ud800", b"a\0b", 5, None, True, 1.5]
EXAMPLE = str(Path(__file__).parents[3] / "examples" / "mm_exp_mm.mlir")


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def files_of(size: int) -> Iterator[None]:
    """No file may become larger, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_links_beside_a_file_are_not_written_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever may write into the folder plants links under every name that could be guessed."""
    victim, out = tmp_path / "victim", tmp_path / "out"
    victim.write_text("precious\n")
    monkeypatch.setattr("secrets.token_hex", lambda count: "0" * 2 * count)
    for name in ("out.partial", f".{'0' * 16}.partial"):
        (tmp_path / name).symlink_to(victim)
    with pytest.raises(InputError, match="cannot be written: File exists"):
        write(out, ["new\n"])
    monkeypatch.undo()
    write(out, ["new\n"])
    assert victim.read_text() == "precious\n" and out.read_text() == "new\n" and not out.is_symlink()
    assert (tmp_path / "out.partial").is_symlink(), "what is not ours stays"


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_a_new_file_has_the_permissions_of_the_umask(mask: int, mode: int, tmp_path: Path) -> None:
    with umask(mask):
        write(tmp_path / "out", ["new\n"])
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == mode


def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("old\n")
    (tmp_path / "out").chmod(0o640)
    write(tmp_path / "out", ["new\n"])
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o640


def test_a_full_disk_is_said_and_leaves_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("old\n")
    with files_of(10), pytest.raises(InputError, match="out cannot be written: File too large"):
        write(tmp_path / "out", ["a line of more than ten bytes\n"])
    assert (tmp_path / "out").read_text() == "old\n" and os.listdir(tmp_path) == ["out"]


def test_a_log_on_a_full_disk_is_said_once(tmp_path: Path) -> None:
    with files_of(10), pytest.raises(InputError, match="log cannot be written: File too large"):  # noqa: SIM117
        with LogFile(tmp_path / "log") as log:
            log.write(["a line of more than ten bytes"])


@pytest.mark.parametrize("name", NAMELESS, ids=repr)
def test_what_cannot_be_a_name_is_said(name: object) -> None:
    for use in (to_path, read, lambda path: write(path, []), LogFile):
        if use is not LogFile or name is not None:
            with pytest.raises(InputError, match="is not the name of a file"):
                use(name)  # type: ignore[arg-type]


NULS = {
    "opt": (opt, ["a\0b"]),
    "opt output": (opt, [EXAMPLE, "-o", "a\0b"]),
    "opt script": (opt, [EXAMPLE, "-p", 'te-to-loop,apply-schedule{script="a\0b"}']),
    "run": (main, ["run", "a\0b"]),
    "build": (main, ["build", "a\0b", "--emit", "low"]),
    "build output": (main, ["build", EXAMPLE, "-o", "a\0b.ll"]),
    "check": (main, ["check", "a\0b.mlir"]),
    "explain": (main, ["explain", "a\0b.mlir"]),
    "explain script": (main, ["explain", EXAMPLE, "--static", "--script", "a\0b"]),
    "space": (main, ["space", "a\0b.mlir"]),
    "tune": (main, ["tune", "a\0b.mlir"]),
    "tune database": (main, ["tune", EXAMPLE, "--database", "a\0b"]),
    "tune log": (main, ["tune", EXAMPLE, "--no-database", "--log", "a\0b"]),
    "replay": (main, ["replay", EXAMPLE, "a\0b"]),
    "bench json": (main, ["bench", "softmax:4x8", "--json", "a\0b"]),
    **{f"db {act}": (main, ["db", act, "a\0b"]) for act in ("list", "best", "export", "replay")},
    "db import": (main, ["db", "import", "a\0b", EXAMPLE]),
    "db import of": (main, ["db", "import", "{folder}/new.db", "a\0b"]),
    "db export to": (main, ["db", "export", "{folder}/new.db", "a\0b"]),
    "db report": (main, ["db", "report", "a\0b", "x"]),
    "db prune": (main, ["db", "prune", "a\0b", "--failed"]),
}


@pytest.mark.parametrize("case", NULS)
def test_a_zero_in_a_path_is_said(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command, arguments = NULS[case]
    main(["db", "import", str(tmp_path / "new.db"), os.devnull])
    capsys.readouterr()
    assert command([argument.replace("{folder}", str(tmp_path)) for argument in arguments]) == 1
    said = capsys.readouterr().err
    assert "a\\x00b" in refusal(said) and "\0" not in said
