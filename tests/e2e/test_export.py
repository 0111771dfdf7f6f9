"""The programs of examples/export: in C, C++ and Rust, with shared and static libraries, sanitizers and valgrind."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

import strata
from compiler.__main__ import main
from compiler.database.store import Database
from compiler.targets import compilers
from compiler.targets.cpu.library.statuses import STATUSES
from strata import te
from tests.unit.targets.libraries import needs_compiler, normal, tool

pytestmark = needs_compiler
ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "examples" / "export"
CONSTANTS = {"W": normal(32, 64), "V": normal(64, 10, seed=1)}
STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic")


def classifier() -> te.Function:
    """Two layers and a softmax."""
    x, w, v = (te.placeholder(s, name=n) for s, n in (((8, 32), "x"), ((32, 64), "W"), ((64, 10), "V")))
    hidden = te.nn.relu(te.nn.matmul(x, w))
    return te.function("net", [x, w, v], [te.nn.softmax(te.nn.matmul(hidden, v))])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the libraries, for processors that valgrind knows."""
    path = tmp_path_factory.mktemp("export") / "net"
    strata.export(classifier(), path, cpus=("haswell", "x86-64"), threads=1, constants=CONSTANTS, schedule="auto")
    strata.export(
        classifier(), path / "net.o", cpus=("haswell", "x86-64"), threads=1, constants=CONSTANTS, schedule="auto"
    )
    return path


def compiled(folder: Path, name: str, command: Sequence[str]) -> Path:
    """Compile a program of examples/export in the folder of the library; `main` is its file."""
    words = [str(PROGRAMS / word) if word.startswith("main.") else word for word in command]
    done = subprocess.run([*words, "-o", name], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return folder / name


def check(folder: Path, command: Sequence[object]) -> None:
    """Check that a program gives the bits of the library in Python, for five inputs."""
    inputs = [normal(8, 32, seed=seed) for seed in range(5)]
    kernel = strata.load(folder / "libnet.so")
    expected = [kernel(x) for x in inputs]
    done = subprocess.run(
        [str(word) for word in command],
        input=b"".join(x.tobytes() for x in inputs),
        capture_output=True,
        cwd=folder,
        timeout=120,
        env={**os.environ, "LD_LIBRARY_PATH": str(folder)},
    )
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout == b"".join(y.tobytes() for y in expected)


@pytest.mark.parametrize("libraries", ["-L. -lnet", "libnet.a -lm", "net.o -lm"])
def test_c(libraries: str, folder: Path) -> None:
    command = [tool("gcc"), *STRICT, "-std=c11", "main.c", "-I.", *libraries.split()]
    check(folder, [compiled(folder, "c", command)])


def test_c_with_sanitizers(folder: Path) -> None:
    command = [tool("gcc"), "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "main.c", "-I."]
    check(folder, [compiled(folder, "sanitized", [*command, "-L.", "-lnet"])])


@pytest.mark.parametrize("cpu", ["haswell", "x86-64"])
def test_c_under_valgrind(cpu: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = compiled(folder, "checked", [tool("gcc"), "-g", "main.c", "-I.", "-L.", "-lnet"])
    monkeypatch.setenv("NET_CPU", cpu)
    check(folder, [tool("valgrind"), "-q", "--error-exitcode=1", "--leak-check=full", program])


@pytest.mark.parametrize("libraries", ["-L. -lnet", "libnet.a -lm"])
def test_cpp_on_two_threads(libraries: str, folder: Path) -> None:
    command = [tool("g++"), *STRICT, "-std=c++17", "main.cpp", "-I.", *libraries.split(), "-pthread"]
    check(folder, [compiled(folder, "cpp", command)])
    command = [tool("g++"), "-g", "-fsanitize=address,undefined", "-std=c++17", "main.cpp", "-I.", "-L.", "-lnet"]
    check(folder, [compiled(folder, "cpp-sanitized", [*command, "-pthread"])])


def test_rust(folder: Path) -> None:
    check(folder, [compiled(folder, "rust", [tool("rustc"), "--edition=2021", "main.rs", "-L", ".", "-D", "warnings"])])


def test_a_program_reports_the_status(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NET_CPU", "z80")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(folder))
    for name, command in (("c", [tool("gcc"), "main.c"]), ("cpp", [tool("g++"), "-std=c++17", "main.cpp", "-pthread"])):
        program = compiled(folder, name, [*command, "-I.", "-L.", "-lnet"])
        done = subprocess.run([program], capture_output=True, text=True, timeout=60, input="")
        assert (done.returncode, done.stderr) == (1, "net: no version of the library runs on this processor\n")


PAGE = (ROOT / "docs" / "export.md").read_text()


def test_the_page_has_the_program_the_functions_and_the_statuses(folder: Path) -> None:
    assert f"```c\n{(PROGRAMS / 'main.c').read_text()}```\n" in PAGE
    declared = set(re.findall(r"\bnet_\w+(?=\()", (folder / "net.h").read_text()))
    assert set(re.findall(r"`(net_\w+)\([^`]*\)`", PAGE)) == {*declared, "net_prepare_file"}
    assert all(f"| {number}, `NET_{s.name}` | {s.message} |\n" in PAGE for number, s in enumerate(STATUSES))


@pytest.mark.parametrize("command", re.findall(r"^strata (build .*)$", PAGE, re.MULTILINE))
def test_the_commands_of_the_page(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if "onnx" in command:
        pytest.importorskip("onnx")
    if "neoverse" in command and compilers.cross_command("aarch64") is None:
        pytest.skip("there is no C compiler for AArch64")
    monkeypatch.chdir(tmp_path)
    assert main(["examples"]) == 0
    with Database("mm.db"):  # the page tunes into it
        pass
    capsys.readouterr()
    assert main(shlex.split(command)) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed and all(Path(path).is_file() for path in printed)
