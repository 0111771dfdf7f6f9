"""The store of the cache: an entry is read only if this user has certainly written it, whoever else was at work."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerType, Signedness, f32
from xdsl.ir import Attribute

from compiler.driver.cache import entries, fingerprint
from compiler.driver.cache.folder import CacheFolder, cache_folder
from compiler.driver.cache.store import Store
from compiler.support import plugins
from compiler.types.records import from_bytes, to_bytes

PAYLOAD = bytes(range(256)) * 40


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store with one entry."""
    made = Store(tmp_path / "cache")
    assert made.put("key", PAYLOAD) and made.get("key") == PAYLOAD
    return made


def file_of(store: Store) -> Path:
    (file,) = store.path.iterdir()
    return file


def test_a_folder_and_its_files_are_private(store: Store) -> None:
    assert oct(store.path.stat().st_mode)[-4:] == "0700" and oct(file_of(store).stat().st_mode)[-4:] == "0600"
    assert store.get("another key") is None


def flipped(file: Path, at: int) -> None:
    content = bytearray(file.read_bytes())
    content[at] ^= 1
    file.write_bytes(content)


def linked(file: Path) -> None:
    file.rename(file.parent / "planted")
    file.symlink_to("planted")


def exchanged(file: Path) -> None:
    second = Store(file.parent)
    second.put("another key", b"other code")
    (planted,) = (actual for actual in file.parent.iterdir() if actual != file)
    planted.replace(file)


PLANTED: dict[str, Callable[[Path], object]] = {
    "flipped payload": lambda file: flipped(file, -1),
    "flipped key": lambda file: flipped(file, 20),
    "flipped digest": lambda file: flipped(file, 60),
    "flipped magic": lambda file: flipped(file, 0),
    "truncated": lambda file: os.truncate(file, file.stat().st_size - 1),
    "empty": lambda file: os.truncate(file, 0),
    "of another key": exchanged,
    "symbolic link": linked,
    "hard link": lambda file: os.link(file, file.parent.parent / "second name"),
    "writable by others": lambda file: file.chmod(0o622),
    "open folder": lambda file: file.parent.chmod(0o777),
    "readable folder": lambda file: file.parent.chmod(0o755),
    "pipe": lambda file: (file.unlink(), os.mkfifo(file)),
    "folder": lambda file: (file.unlink(), file.mkdir()),
}
if os.getuid() == 0:
    PLANTED["foreign file"] = lambda file: os.chown(file, 12345, -1)
    PLANTED["foreign folder"] = lambda file: os.chown(file.parent, 12345, -1)


@pytest.mark.parametrize("name", PLANTED)
def test_what_this_user_has_not_certainly_stored_is_no_entry(store: Store, name: str) -> None:
    PLANTED[name](file_of(store))
    assert store.get("key") is None
    if "folder" not in name:
        assert store.put("key", PAYLOAD) and store.get("key") == PAYLOAD  # it takes the place of what was there


def test_a_link_is_no_folder(store: Store, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(store.path)
    beside = Store(tmp_path / "link")
    assert beside.get("key") is None and not beside.put("other", b"") and len(list(store.path.iterdir())) == 1


@pytest.mark.parametrize("path", ["/proc/strata", "/dev/null/strata", "/dev/null"])
def test_a_folder_that_cannot_be_made_has_no_entries(path: str) -> None:
    store = Store(Path(path))
    assert not store.put("key", PAYLOAD) and store.get("key") is None


def test_a_full_disk_leaves_nothing(store: Store) -> None:
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(PAYLOAD) // 2, hard[1]))
        assert not store.put("other", PAYLOAD)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, hard)
    assert store.get("key") == PAYLOAD and len(list(store.path.iterdir())) == 1


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    bound = 20 * len(PAYLOAD)
    store = Store(tmp_path / "cache", bound)
    for number in range(18):
        assert store.put(str(number), PAYLOAD)
        for file in store.path.iterdir():
            os.utime(file, (time.time() - 100 + number,) * 2) if file.stat().st_mtime > time.time() - 50 else None
    assert store.get("0") == PAYLOAD  # now the most recently used
    for number in range(18, 21):
        assert store.put(str(number), PAYLOAD)
    assert store.get("0") == PAYLOAD and store.get("1") is None
    for number in range(21, 60):
        assert store.put(str(number), PAYLOAD)
        assert store.summary().bytes <= bound
    assert store.get("59") == PAYLOAD and store.get("1") is None
    assert not store.put("larger than the bound", PAYLOAD * 21)
    assert store.summary().entries > 10


def test_what_a_killed_process_left_is_removed_when_it_is_old(store: Store) -> None:
    young, old = (store.path / f".{digit * 16}.partial" for digit in "ab")
    for partial in (young, old):
        partial.write_bytes(PAYLOAD)
    os.utime(old, (time.time() - 3600,) * 2)
    assert Store(store.path).put("other", PAYLOAD)
    assert young.exists() and not old.exists()


def test_clear_removes_entries_and_nothing_else(store: Store) -> None:
    (store.path / "notes.txt").write_text("mine")
    assert store.clear().entries == 1
    assert [file.name for file in store.path.iterdir()] == ["notes.txt"]
    assert Store(store.path / "nowhere").clear().entries == 0
    with pytest.raises(OSError):
        Store(Path("/proc/nowhere")).summary()


WRITES = """
import sys
from pathlib import Path
from compiler.driver.cache.store import Store
store = Store(Path(sys.argv[1]), 1 << 20)
for number in range(int(sys.argv[2])):
    store.put(str(number % 7), bytes([number % 7]) * 100_000)
    print(number, flush=True)
"""


def writer(folder: Path, count: int) -> subprocess.Popen[bytes]:
    """A process that writes entries in a loop, of which it says which are written."""
    return subprocess.Popen([sys.executable, "-c", WRITES, str(folder), str(count)], stdout=subprocess.PIPE)


def works(folder: Path) -> bool:
    """Whether a folder that writers have left has entries that are right, or none, and takes new ones."""
    store = Store(folder, 1 << 20)
    collected = [store.get(str(n)) for n in range(7)]
    right = all(payload in (None, bytes([n]) * 100_000) for n, payload in enumerate(collected))
    return right and any(collected) and store.put("new", PAYLOAD) and store.get("new") == PAYLOAD


def test_killed_writers_leave_a_cache_that_works(tmp_path: Path) -> None:
    writers = [writer(tmp_path / "cache", 1_000_000) for _ in range(3)]
    for number, process in enumerate(writers):
        assert process.stdout
        for _ in range(5 + 7 * number):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert works(tmp_path / "cache")


def test_processes_write_at_once(tmp_path: Path) -> None:
    writers = [writer(tmp_path / "cache", 30) for _ in range(3)]
    assert [process.communicate() and process.returncode for process in writers] == [0, 0, 0]
    assert works(tmp_path / "cache") and Store(tmp_path / "cache").summary().entries == 8


@dataclass(frozen=True)
class Inner:
    kind: Attribute
    dtype: np.dtype[Any]
    code: bytes


@dataclass(frozen=True)
class Outer:
    name: str
    size: float
    inner: tuple[Inner, ...]
    maybe: Inner | None
    pair: tuple[int, bool]
    named: dict[str, bytes] = field(default_factory=dict)


def test_dataclasses_become_bytes_and_back() -> None:
    from compiler.types.dtypes import DTYPES

    inner = tuple(Inner(row.type, row.array, bytes([n])) for n, row in enumerate(DTYPES.values()))
    for maybe in (None, Inner(IntegerType(8, Signedness.UNSIGNED), np.dtype(bool), b"")):
        outer = Outer("ä\udcff\n", 0.1, inner, maybe, (3, True), {"a": b"1", "b": b"23"})
        assert from_bytes(Outer, to_bytes(outer)) == outer
    with pytest.raises(ValueError, match="expected int, got str"):
        from_bytes(Outer, to_bytes(Outer("", 0.0, (), None, ("3", True))))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="object has no place in a record"):
        to_bytes(object())


def test_the_environment_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STRATA_CACHE", "STRATA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/someone")
    assert cache_folder().path == Path("/home/someone/.cache/strata")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder().path == Path("/home/someone/.cache/strata")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert cache_folder().path == Path("/caches/strata")
    monkeypatch.setenv("STRATA_CACHE_DIR", "here")
    assert cache_folder().path == Path.cwd() / "here"
    monkeypatch.setenv("STRATA_CACHE", "off")
    assert cache_folder() == CacheFolder(None, "STRATA_CACHE is off")


def test_another_process_has_the_same_fingerprint() -> None:
    code = "from compiler.driver.cache.fingerprint import fingerprint; print(fingerprint())"
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    checked = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert checked.stdout.strip() == fingerprint.fingerprint()


def test_other_sources_have_another_fingerprint(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    began = fingerprint._BEGAN
    sources = {"__init__.py": "", "room/a.py": "x = 1"}

    def digest(sources: dict[str, str], age: float = 10.0) -> str | None:
        for name, text in sources.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text)
            os.utime(tmp_path / name, (began - age,) * 2)
        fingerprint._of_package.cache_clear()
        return fingerprint.fingerprint()

    own = fingerprint.fingerprint()
    try:
        monkeypatch.setattr(fingerprint.compiler, "__file__", str(tmp_path / "__init__.py"))
        first = digest(sources)
        assert first and first == digest(sources) and first != own
        assert digest({"room/a.py": "x = 2"}) != first
        assert digest({**sources, "room/b.py": ""}) != first
        assert digest(sources, -10.0) is None  # younger than this process
        monkeypatch.setattr(fingerprint, "_versions", lambda: ("another LLVM",))
        assert digest(sources) not in (None, first)
    finally:
        fingerprint._of_package.cache_clear()


def test_rules_of_plugins_have_other_entries(tmp_path: Path) -> None:
    """A file that is as old as the process is in keys; of a younger one nothing is cached."""
    began, own, file = fingerprint._BEGAN, fingerprint.fingerprint(), tmp_path / "nothing.py"

    def loaded(text: str, age: float) -> str | None:
        file.write_text(text)
        os.utime(file, (began - age,) * 2)
        with plugins.loaded([str(file)]):
            return fingerprint.fingerprint()

    rule = "def rule(draft, label): yield from ()\n\ndef register(registry): registry.search_rule(rule)\n"
    first = loaded(rule, 10.0)
    assert first and own and first != own and first.startswith(own)
    assert loaded(rule + "# another", 10.0) not in (first, own, None)
    assert loaded(rule, -10.0) is None
    assert loaded("def register(registry): pass", -10.0) == own == fingerprint.fingerprint()


def test_entries_of_other_words_or_classes_are_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STRATA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("STRATA_CACHE", raising=False)
    value = Inner(f32, np.dtype("f4"), b"code")
    entries.put(value, ("text", 1))
    assert entries.get(Inner, ("text", 1)) == value
    assert entries.get(Inner, ("text", 2)) is None and entries.get(Outer, ("text", 1)) is None
    monkeypatch.setenv("STRATA_CACHE", "off")
    assert entries.get(Inner, ("text", 1)) is None
    entries.put(value, ("text", 2))
    monkeypatch.delenv("STRATA_CACHE")
    assert entries.get(Inner, ("text", 2)) is None
