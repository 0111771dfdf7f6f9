"""Every option of every command with values that it cannot have: a sentence and status 1, whatever the option."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path
from typing import NoReturn

import pytest

import compiler.bench.harness
from compiler.__main__ import arguments, main
from compiler.autotune.task import SearchTask
from compiler.opt import main as opt
from compiler.opt.command_line import arguments as opt_arguments
from compiler.support.errors import InputError, TargetError
from tests.sample import some
from tests.unit.cli.test_printable import harmless
from tests.unit.database.test_database import PROGRAM, filled, made

EXAMPLE = str(Path(__file__).parents[3] / "examples" / "mm_exp_mm.mlir")
SMALL = "softmax:4x8"
WRONG = {
    "nothing": "",
    "blank": " ",
    "negative": "-1",
    "zero": "0",
    "nan": "nan",
    "exponent": "1e999999999",
    "enormous": "9" * 5000,
    "fraction": "1/0",
    "escape": "\x1b[31m",
    "long": "x" * 5000,
    "a zero byte": "a\0b",
    "no text": "a\udcffb",
    "an extent": "matmul:99999999999999999999999x1x1",
    "no extent": "softmax:0x-1",
    "a folder": "/",
}
PATIENCE = 60
"""Seconds after which a command hangs."""


def leaves(parser: argparse.ArgumentParser, name: str = "") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    inner = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not inner:
        yield name, parser
    for action in inner:
        for word, sub in action.choices.items():
            yield from leaves(sub, f"{name} {word}".strip())


COMMANDS = dict(leaves(arguments()))
BASES = {
    "run": ["{file}", "--calls", "1"],
    "build": ["{file}", "--emit", "low"],
    "check": ["{small}"],
    "bench": ["{small}"],
    "explain": ["{file}", "--static"],
    "view": ["{small}", "--output", "-"],
    "explain-rewrites": ["{file}"],
    "verify": ["{file}"],
    "hash": ["{file}"],
    "fuzz": ["--cases", "1"],
    "space": ["{small}"],
    "tune": ["{small}", "--quiet"],
    "replay": ["{small}", "{log}"],
    "db list": ["{db}"],
    "db best": ["{db}"],
    "db export": ["{db}", "-"],
    "db import": ["{new}", "{lines}"],
    "db replay": ["{db}"],
    "db report": ["{db}", "-"],
    "db prune": ["{db}", "--failed", "--dry-run"],
    "cache info": [],
    "cache clear": [],
    "cache path": [],
    "plugins": [],
    "examples": ["{new}.d"],
    "worker": ["nonsense", "--once"],
    "lsp": ["--tcp", "1", "--stdio"],  # which is refused: else it would wait for a client
}
"""A call of each command that is right, the values of its positional arguments first."""


def stated(parser: argparse.ArgumentParser, base: list[str], value: str) -> Iterator[list[str]]:
    """Calls with a value in the place of each argument that takes one."""
    positional = [action for action in parser._actions if not action.option_strings]
    for number, _ in enumerate(positional):
        if number < len(base):
            yield [*base[:number], value, *base[number + 1 :]]
    for action in parser._actions:
        if action.option_strings and action.nargs != 0:
            count = action.nargs if isinstance(action.nargs, int) else 1
            yield [*base, *[f"{action.option_strings[-1]}={value}"][: count == 1], *_spread(action, value, count)]


def _spread(action: argparse.Action, value: str, count: int) -> list[str]:
    return [] if count == 1 else [action.option_strings[-1], *[value] * count]


def test_every_command_is_here() -> None:
    assert set(BASES) == set(COMMANDS)


@contextmanager
def limited() -> Iterator[None]:
    def late(*stated: object) -> NoReturn:
        raise AssertionError("it hangs")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("wrong")
    lines, log = folder / "lines", folder / "log"
    lines.touch()
    log.touch()
    names = {"file": EXAMPLE, "small": SMALL, "log": str(log), "lines": str(lines), "new": str(folder / "new.db")}
    return names | {"db": str(filled(folder / "tuning.db", made(1.0, program=PROGRAM)))}


def refuse_to_begin(*stated: object, **more: object) -> NoReturn:
    raise InputError("it would begin now")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What the options have passed is not gone on with."""
    monkeypatch.setattr(SearchTask, "tune", refuse_to_begin)
    monkeypatch.setattr(compiler.bench.harness, "measure", refuse_to_begin)
    monkeypatch.chdir(tmp_path)


def check(status: int, said: str, call: list[str]) -> None:
    assert status in (0, 1), call
    assert "Traceback" not in said and (status == 0 or ": error: " in said), (call, said)
    assert status != 1 or harmless(said), call


@pytest.mark.sampled
@pytest.mark.parametrize(("command", "what"), some(product(BASES, WRONG), 4))  # 4 does not divide len(WRONG)
def test_strata(command: str, what: str, places: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    base = [word.format(**places) for word in BASES[command]]
    for call in stated(COMMANDS[command], base, WRONG[what]):
        with limited():
            status = main([*command.split(), *call])
        check(status, capsys.readouterr().err, call)


@pytest.mark.sampled
@pytest.mark.parametrize("what", WRONG)
def test_strata_opt(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    for call in stated(opt_arguments(), [EXAMPLE], WRONG[what]):
        with limited():
            status = opt(call)
        check(status, capsys.readouterr().err, call)


LIBRARY = ("--cpu", "--features", "--library", "--weights", "--output")


@pytest.mark.sampled
@pytest.mark.parametrize("what", WRONG)
def test_strata_build_of_a_library(
    what: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = compiler.build(EXAMPLE, threads=1)
    monkeypatch.setattr("compiler.driver.exporting.compile_program", refuse_to_begin)
    for option in LIBRARY:
        call = ["build", EXAMPLE, "-o", "libnet.so", f"{option}={WRONG[what]}"]
        with limited():
            status = main(call)
        check(status, capsys.readouterr().err, call)
        assert status == 1
    with suppress(InputError, TargetError):
        kernel.export(WRONG[what], name="net")
    with suppress(InputError, TargetError):
        kernel.export("libnet.so", name=WRONG[what])


def test_sentences_about_libraries(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for options, words in (
        (["--emit", "low", "--weights", "file"], "--weights is of a library: give -o a name that ends in .so,"),
        (["-o", "net.low", "--cpu", "haswell"], "--cpu is of a library"),
        (["-o", "net.low", "--features", "+avx2"], "--features is of a library"),
        (["-o", "net.s", "--library", "net"], "--library is of a library"),
        (["-o", "net.so", "--cpu", "z80"], "there is no processor 'z80' (there are native, "),
        (["-o", "net.so", "--cpu", "avx2,avx2"], "expected distinct names of processors"),
        (["-o", "net.so", "--features", "avx2"], "'avx2' is not a feature with a sign, as in "),
        (["-o", "/proc/net.so"], "/proc/net.h cannot be written"),
        (["-o", f"{EXAMPLE}/net.so"], "mm_exp_mm.mlir/net.h cannot be written"),
    ):
        assert main(["build", EXAMPLE, "--threads", "1", *options]) == 1
        assert words in capsys.readouterr().err
    monkeypatch.setattr("compiler.targets.compilers.compiler_command", lambda: None)
    assert main(["build", EXAMPLE, "-o", "net.so", "--threads", "1"]) == 1
    assert "error: there is no C compiler: install gcc or clang, or the package ziglang" in capsys.readouterr().err
