"""Machine code for Linux's perf: the files name the functions, where they are and what they hold."""

from __future__ import annotations

import ctypes
import os
import re
import struct
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

import compiler
from compiler import te
from compiler.support.errors import InputError
from compiler.support.spans import Span, called_at
from compiler.targets.cpu import perf

ROOT = Path(__file__).parents[3]
SCRIPT = """
import numpy as np
import compiler
from compiler import te

A = te.placeholder((64, 48), name="A")
kernel = compiler.build(te.function("named", [A], te.nn.exp(A, name="B")), threads=2)
kernel(np.zeros((64, 48), np.float32))
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[list[tuple[int, int, str]], bytes]:
    """The map's lines and the dump of a process that builds one program."""
    environment = {**os.environ, "STRATA_PERF": "map,jitdump"}
    words = [
        sys.executable,
        "-P",
        "-c",
        f"import sys; sys.path.insert(0, {os.getcwd()!r})\n{SCRIPT}\nprint(__import__('os').getpid())",
    ]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    table, dump = Path(f"/tmp/perf-{int(done.stdout)}.map"), tmp_path / f"jit-{int(done.stdout)}.dump"
    lines = [line.split(" ", 2) for line in table.read_text().splitlines()]
    table.unlink()
    return [(int(start, 16), int(size, 16), name) for start, size, name in lines], dump.read_bytes()


def test_the_map_and_the_dump_name_the_same_functions(files: tuple[list[tuple[int, int, str]], bytes]) -> None:
    lines, dump = files
    assert {name for _, _, name in lines} >= {"named:<string>:8", "named.body:<string>:8"}
    ends = sorted((start, start + size) for start, size, _ in lines)
    assert all(first[1] <= second[0] for first, second in pairwise(ends))
    magic, version, size, machine, _, _, _, flags = struct.unpack_from("<IIIIIIQQ", dump)
    assert (magic, version, size, flags) == (0x4A695444, 1, 40, 0) and machine in (62, 183)
    records, position = [], size
    while position < len(dump):
        kind, total, _, _, _, virtual, address, length, index = struct.unpack_from("<IIQIIQQQQ", dump, position)
        name, code = dump[position + 56 : position + total].split(b"\0", 1)
        assert (kind, virtual, len(code), index) == (0, address, length, len(records))
        records.append((address, length, name.decode()))
        position += total
    assert position == len(dump) and records == lines


def test_symbols_are_those_of_the_assembly() -> None:
    from compiler.targets.cpu.compile import object_code
    from compiler.types.machines import detect_machine

    A = te.placeholder((64,), name="A")
    kernel = compiler.build(te.function("f", [A], te.nn.exp(A, name="B")))
    symbols = {
        symbol.name: symbol for symbol in perf.function_symbols(object_code(kernel.text("llvm"), detect_machine()).code)
    }
    labels = set(re.findall(r"^([\w.]+):", kernel.text("asm"), re.MULTILINE))
    assert "f" in symbols and set(symbols) <= labels
    assert all(symbol.size > 0 for symbol in symbols.values())


def test_functions_have_the_label_of_their_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRATA_PERF", "map")
    monkeypatch.setattr(perf, "_map_file", lambda: tmp_path / "perf.map")
    A, weights = te.placeholder((8, 16), name="A"), [te.placeholder((16, 16), name=f"W{n}") for n in range(2)]
    outputs = []
    for n, weight in enumerate(weights):
        with called_at(Span("m.py", 3, 1), f"layers.{n}\n x"):
            outputs.append(te.nn.matmul(A, weight))
    function = te.function("net", [A, *weights], outputs)
    for _ in range(2):  # compiled, then from the cache
        compiler.build(function, threads=1, schedule="auto")
        names = {line.split(" ", 2)[2] for line in (tmp_path / "perf.map").read_text().splitlines()}
        assert {"net", "group_0:layers.0_x+1", "group_0.body:layers.0_x+1"} <= names
        (tmp_path / "perf.map").unlink()


def test_nothing_is_written_without_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STRATA_PERF", raising=False)
    perf.record([b"no object file"], lambda name: ctypes.c_int(0).value)


def test_an_unknown_form_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRATA_PERF", "map,table")
    with pytest.raises(InputError, match="STRATA_PERF is 'table': it takes map and jitdump"):
        perf.record([], lambda name: None)


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        perf._JitDump(tmp_path / "no" / "jit.dump")
