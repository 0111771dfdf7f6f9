"""Standard streams: whoever reads leaves early, the disk behind is full, they are closed; and interruptions."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compiler import __main__ as strata
from compiler.autotune.search import Search
from compiler.autotune.task import SearchTask
from compiler.bench.workloads import find
from compiler.driver.exporting import export
from compiler.support.command import run
from compiler.targets import compilers
from tests.sample import pairs
from tests.unit.database.test_database import PROGRAM, filled, made

ROOT = Path(__file__).resolve().parents[3]
ENV = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
EXAMPLE = "examples/mm_exp_mm.mlir"
GPU = "examples/gpu_matmul.mlir"
SMALL = "softmax:4x8"

FORKS = """
import json, os, sys
from importlib import import_module
from compiler import opt
from compiler.__main__ import arguments, main
arguments()
for name in ("compiler.driver", "compiler.autotune.task", "compiler.opt.session", "rich.table"):
    import_module(name)

def child(arguments, how):
    gone, end = os.pipe()
    os.close(gone)
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(errors, 2)
    if how == "closed":
        sys.stdout = None
        os.close(1)
    else:
        os.dup2(full if how == "full" else end, 1)
    tool, *rest = arguments
    try:
        status = (opt.main if tool == "opt" else main)(rest)
    except SystemExit as end:
        status = end.code
    try:
        sys.stdout.flush()  # as the interpreter does at its end
    except OSError:
        status = 120
    os._exit(status)

found = []
for arguments, how in json.load(sys.stdin):
    said, errors = os.pipe()
    pid = os.fork()
    if not pid:
        child(arguments, how)
    os.close(errors)
    with open(said, "rb") as file:
        text = file.read().decode()
    found.append((os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), text))
print(json.dumps(found))
"""


PLUGIN = '''
from dataclasses import dataclass
from xdsl.passes import ModulePass

@dataclass(frozen=True)
class Idle(ModulePass):
    """Do nothing."""
    name = "idle"

    def apply(self, ctx, op):
        pass

def register(registry):
    registry.pass_(Idle)
'''
"""A plugin, for the commands that need one."""


def commands(folder: Path) -> dict[str, list[str]]:
    """A command that prints, of each kind."""
    db, log = str(filled(folder / "tuning.db", made(1.0, program=PROGRAM))), folder / "log"
    search = Search(SearchTask(find(SMALL).function(), threads=1).space, 0)
    log.write_text(search.log())
    library, verify = folder / "libmm.so", dict[str, list[str]]()
    plugin = folder / "mine.py"
    plugin.write_text(PLUGIN)
    if compilers.compiler_command() is not None:
        export(find(SMALL).function(), library, threads=1)
        verify = {"verify": ["strata", "verify", str(library)]}
    return {
        **verify,
        "help": ["strata", "--help"],
        "run": ["strata", "run", EXAMPLE, "--calls", "1"],
        "build": ["strata", "build", EXAMPLE, "--emit", "low"],
        "check": ["strata", "check", SMALL],
        "bench": ["strata", "bench", "--list"],
        "explain": ["strata", "explain", EXAMPLE, "--static"],
        "view": ["strata", "view", SMALL, "-o", "-"],
        "explain-rewrites": ["strata", "explain-rewrites", EXAMPLE],
        "fuzz": ["strata", "fuzz", "--load", str(plugin), "--cases", "2", "--seed", "1"],
        "hash": ["strata", "hash", EXAMPLE],
        "cache info": ["strata", "cache", "info"],
        "examples": ["strata", "examples", str(folder / "examples")],
        "cache path": ["strata", "cache", "path"],
        "plugins": ["strata", "plugins"],
        "space": ["strata", "space", SMALL, "--threads", "1"],
        "tune": ["strata", "tune", SMALL, "--threads", "1", "--no-database"],
        "replay": ["strata", "replay", SMALL, str(log), "--threads", "1"],
        **{f"db {act}": ["strata", "db", act, db] for act in ("list", "best", "export", "replay")},
        "db list --json": ["strata", "db", "list", db, "--json"],
        "db report": ["strata", "db", "report", db, "-"],
        "db prune": ["strata", "db", "prune", db, "--failed", "--dry-run"],
        "db import": ["strata", "db", "import", str(folder / "new.db"), os.devnull],
        "opt": ["opt", EXAMPLE],
        "opt --list-passes": ["opt", "--list-passes"],
        "opt --help": ["opt", "--help"],
        "opt --version": ["opt", "--version"],
    }


def test_every_command_is_here(tmp_path: Path) -> None:
    here = {name.partition(" ")[0] for name in commands(tmp_path)} - {"help", "opt"}
    missing = {"worker", "lsp"} if "verify" in here else {"worker", "lsp", "verify"}
    assert here == set(strata.COMMANDS) - missing, "a worker needs a scheduler, lsp a client, verify a C compiler"


SAID = {
    "closed": "{tool}: error: standard output is closed\n",
    "full": "{tool}: error: [^\n]*output[^\n]*: No space left on device\n",
    "left": "",
}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
def test_output_that_nobody_takes(tmp_path: Path) -> None:
    """One sentence where there is something to say, status 1, and nothing else."""
    lines = commands(tmp_path)
    stated = {(name, how): lines[name] for name, how in pairs(list(lines), list(SAID))}
    told = json.dumps([(arguments, how) for (_, how), arguments in stated.items()])
    done = subprocess.run([sys.executable, "-c", FORKS], input=told, capture_output=True, text=True, cwd=ROOT, env=ENV)
    assert done.returncode == 0, done.stderr
    for ((name, how), arguments), (status, said) in zip(stated.items(), json.loads(done.stdout), strict=True):
        tool = "strata-opt" if arguments[0] == "opt" else "strata"
        assert status == 1 and re.fullmatch(SAID[how].format(tool=tool), said), (name, how, said)


def shell(command: str, **more: Any) -> subprocess.CompletedProcess[str]:
    line = command.format(strata=f"{sys.executable} -m compiler", opt=f"{sys.executable} -m compiler.opt")
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=ROOT, **more)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("{opt} --list-passes | head -1", ""),
        ("{strata} bench --list >&-", "strata: error: standard output is closed\n"),
        ("{opt} - <&- >/dev/null", "strata-opt: error: standard input is closed\n"),
        ("{strata} run nothing.mlir 2>&- >/dev/null; test $? = 1", ""),
        ("LC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0 {strata} run größe.mlir; test $? = 1", None),
    ],
)
def test_in_a_shell(command: str, said: str | None) -> None:
    done = shell(command)
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr
    assert said is None or done.stderr == said


def test_no_file_takes_the_number_of_a_closed_stream(tmp_path: Path) -> None:
    """What native code writes to number 2 would reach a log else."""
    path, script = tmp_path / "numbers", tmp_path / "script.py"
    script.write_text(f"""
import os
from compiler.support.command import run
def work():
    descriptor = os.open({str(path)!r}, os.O_CREAT | os.O_WRONLY)
    os.write(descriptor, str(descriptor).encode())
    return 0
run("strata", work)
""")
    subprocess.run(["bash", "-c", f"{sys.executable} {script} <&- 2>&- >/dev/null"], cwd=ROOT)
    assert int(path.read_text()) > 2


@pytest.mark.parametrize("tool", ["strata", "opt"])
def test_an_interruption_is_said(tool: str) -> None:
    """The command waits for its input."""
    module = "compiler" if tool == "strata" else "compiler.opt"
    arguments = ["build", "-", "--emit", "low"] if tool == "strata" else ["-"]
    code = f"""
import signal, sys
from runpy import run_module
class Waits:
    def read(self):
        print("here", flush=True)
        signal.pause()
sys.stdin = Waits()
run_module({module!r}, run_name="__main__")
"""
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", code, *arguments]
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, cwd=ROOT) as process:
        assert process.stdout is not None and process.stdout.readline() == "here\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
    assert process.returncode == 130 and said == f"strata{'-opt' if tool == 'opt' else ''}: interrupted\n"


def raised(error: BaseException) -> int:
    raise error


@pytest.mark.parametrize(
    ("work", "status", "said"),
    [
        (lambda: 7, 7, ""),
        (lambda: [][0], None, ""),
        (lambda: raised(KeyboardInterrupt()), 130, "t: interrupted\n"),
        (lambda: raised(MemoryError()), 1, "t: error: there is not enough memory for this\n"),
        (lambda: os.stat("/no/such").st_size, 1, "t: error: /no/such cannot be used: No such file or directory\n"),
    ],
)
def test_statuses(work: Callable[[], int], status: int | None, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A fault of our own stays what it is."""
    if status is None:
        with pytest.raises(IndexError):
            run("t", work)
    else:
        assert run("t", work) == status
    assert capsys.readouterr().err == said
