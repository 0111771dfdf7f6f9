"""How long a person waits for `strata tune`: `python -m benchmarks.waiting [NAME ...]`.

Measured with commands as a person types them, each on one processor, with an empty cache of machine code, alone and
beside a process that never sleeps on the same processor:

    first    until the first number is printed, of one group and of a network
    seconds  until `--seconds 5` ends
    nothing  until a run ends whose database has all trials
    ctrl-c   from Ctrl-C to the end, pressed so many seconds after the start; `again` is a second one 0.2 s later

A row is late where it exceeds what docs/tuning.md promises. Beside the seconds stands the CPU time that the command and
its workers took meanwhile, which other processes of the machine do not change much. Workers that outlive their command
are counted.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any, TypeAlias
from uuid import uuid4

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

ROOT = Path(__file__).resolve().parents[1]
GROUP = "matmul:512x512x512"
NUMBER = re.compile(r"\d (us|ms|s)\b")
MARK = "STRATA_WAITING"
"""A variable of the environment by which the processes of a session are found."""
PROMISED = {
    "first": (5.0, 15.0),
    "seconds": (8.0, 8.0),
    "nothing": (2.0, 2.0),
    "ctrl-c": (2.0, 2.0),
    "again": (1.0, 1.0),
}
"""The seconds that docs/tuning.md promises of one group and of a network."""
LONGEST = 30.0
"""Seconds after which a run without a number is given up."""
AGAIN = 0.2
"""Seconds after which Ctrl-C is pressed again."""
PRESSED = (0.3, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Seconds after the start at which Ctrl-C is pressed."""


def residual_network(path: Path, stages: Sequence[tuple[int, int]] = ((64, 3), (128, 4), (256, 6), (512, 3))) -> None:
    """Write a residual network with bottlenecks for images of 224x224, with random weights, as an ONNX file; stages:
    widths and numbers of blocks, by default those of ResNet-50, without its norms."""
    random = np.random.default_rng(0)
    nodes: list[Any] = []
    weights: list[Any] = []

    def convolution(x: str, filters: int, channels: int, kernel: int, stride: int = 1, relu: bool = True) -> str:
        name = f"c{len(weights)}"
        scale = np.float32((2 / (channels * kernel * kernel)) ** 0.5)
        drawn = random.standard_normal((filters, channels, kernel, kernel), dtype=np.float32) * scale
        weights.append(numpy_helper.from_array(drawn, f"{name}.w"))
        edge = [kernel // 2] * 4
        nodes.append(helper.make_node("Conv", [x, f"{name}.w"], [name], strides=[stride] * 2, pads=edge))
        if not relu:
            return name
        nodes.append(helper.make_node("Relu", [name], [f"{name}.r"]))
        return f"{name}.r"

    y = convolution("x", 64, 3, 7, 2)
    nodes.append(helper.make_node("MaxPool", [y], ["pooled"], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4))
    y, channels = "pooled", 64
    for number, (width, blocks) in enumerate(stages):
        for block in range(blocks):
            stride = 2 if number and not block else 1
            z = convolution(convolution(y, width, channels, 1), width, width, 3, stride)
            z = convolution(z, 4 * width, width, 1, relu=False)
            y = convolution(y, 4 * width, channels, 1, stride, relu=False) if not block else y
            nodes.append(helper.make_node("Add", [z, y], [f"{z}.a"]))
            nodes.append(helper.make_node("Relu", [f"{z}.a"], [f"{z}.s"]))
            y, channels = f"{z}.s", 4 * width
    nodes.append(helper.make_node("GlobalAveragePool", [y], ["y"]))
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 224, 224])
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, channels, 1, 1])
    graph = helper.make_graph(nodes, "residual", [given], [result], weights)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)


Moment: TypeAlias = tuple[float, float]


@dataclass
class Session:
    """A command: its lines, and the moments at which it printed the first number, Ctrl-C was pressed, and it ended,
    each in seconds since its start and in CPU seconds of all its processes; its exit status, and its processes that
    outlived it."""

    lines: list[str] = field(default_factory=list)
    first: Moment | None = None
    pressed: Moment | None = None
    end: Moment = (0.0, 0.0)
    status: int = 0
    orphans: int = 0


def session(folder: Path, arguments: Sequence[str], press: float | None = None, presses: int = 1) -> Session:
    """Run `strata tune` on one processor, and press Ctrl-C `press` seconds after its start (None: never), unless it has
    ended, `presses` times, AGAIN seconds apart."""
    mark, done = str(uuid4()), Session()
    environment = {**os.environ, MARK: mark, "PYTHONPATH": str(ROOT), "STRATA_CACHE_DIR": str(folder / f"cache-{mark}")}
    start = time.perf_counter()
    process = subprocess.Popen(
        ["taskset", "-c", "0", sys.executable, "-u", "-m", "compiler", "tune", *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )

    def now() -> Moment:
        return time.perf_counter() - start, sum(map(cpu_seconds, marked(mark)))

    def interrupt() -> None:
        time.sleep(press or 0.0)
        for _ in range(presses):
            if done.end == (0.0, 0.0):
                done.pressed = done.pressed or now()
                process.send_signal(signal.SIGINT)
            time.sleep(AGAIN)

    if press is not None:
        Thread(target=interrupt, daemon=True).start()
    assert process.stdout is not None
    for line in process.stdout:
        done.lines.append(line.rstrip())
        if done.first is None and NUMBER.search(line.partition("] ")[2]):
            done.first = now()
    _, status, used = os.wait4(process.pid, 0)
    done.end = time.perf_counter() - start, used.ru_utime + used.ru_stime
    process.returncode = done.status = os.waitstatus_to_exitcode(status)
    time.sleep(0.5)
    done.orphans = len(marked(mark))
    return done


def marked(mark: str) -> list[int]:
    """The ids of the processes whose environment has a mark."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def cpu_seconds(pid: int) -> float:
    """The CPU time of a process and of its children that have ended."""
    try:
        numbers = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]
    except OSError:
        return 0.0
    return sum(map(int, numbers)) / os.sysconf("SC_CLK_TCK")


@contextmanager
def neighbour(is_busy: bool) -> Iterator[None]:
    """Run a process that spins on the processor of the sessions in the context, if `is_busy`."""
    if not is_busy:
        yield
        return
    with subprocess.Popen(["taskset", "-c", "0", sys.executable, "-c", "while True: pass"]) as process:
        try:
            yield
        finally:
            process.kill()


@dataclass(frozen=True)
class Wait:
    """A row of the table: the kind of wait, its seconds and CPU seconds, None if the event never came, and remarks."""

    what: str
    took: Moment | None
    remark: str = ""


def waits(program: str, is_network: bool, kinds: Sequence[str], folder: Path) -> Iterator[Wait]:
    """Measure the waits of the named kinds for a program."""
    what = [program, "--threads", "1"]
    endless = [*what, "--trials", "500", "--no-database"]
    if "first" in kinds:
        run = session(folder, endless, press=LONGEST)
        yield Wait("first", run.first)
    if "seconds" in kinds:
        run = session(folder, [*what, "--seconds", "5", "--no-database"])
        yield Wait("seconds", run.end, "" if run.first is not None else "nothing was measured")
    if "nothing" in kinds:
        finished = [*what, "--trials", "24" if is_network else "8", "--database", f"{is_network}.db"]
        if not (folder / f"{is_network}.db").exists():
            session(folder, [*finished, "--quiet"])
        yield Wait("nothing", session(folder, finished).end)
    for kind, presses in (("ctrl-c", 1), ("again", 2)):
        for press in PRESSED if kind in kinds else ():
            run = session(folder, endless, press, presses)
            took = None if run.pressed is None else (run.end[0] - run.pressed[0], run.end[1] - run.pressed[1])
            yield Wait(f"{kind} at {press:g} s", took, _complaints(run))


def _complaints(run: Session) -> str:
    """The faults of the end of an interrupted command, separated by commas; empty without one."""
    complaints = {
        f"status {run.status}": run.status not in (130, -signal.SIGINT),  # the shell's 130 either way
        f"{run.orphans} workers left": run.orphans > 0,
        "a traceback": any("Traceback" in line for line in run.lines),
    }
    return ", ".join(complaint for complaint, is_so in complaints.items() if is_so)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print a table; return 1 if a promise is not kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="NAME", help=f"which waits: {', '.join(PROMISED)} (default: all)")
    parser.add_argument("--only", choices=("group", "network"), help="of one group, or of a network")
    parser.add_argument("--neighbour", choices=("idle", "busy"), help="alone, or beside a busy process (default: both)")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell ignores in the background
    late = 0
    print(f"{'what':26}{'':8}{'seconds':>9}{'CPU':>9}{'promised':>10}")
    with tempfile.TemporaryDirectory(prefix="strata-waiting-") as name:
        folder = Path(name)
        residual_network(folder / "residual.onnx")
        for is_busy in (False, True):
            if options.neighbour not in (None, "busy" if is_busy else "idle"):
                continue
            for program, is_network in ((GROUP, False), ("residual.onnx", True)):
                if options.only not in (None, "network" if is_network else "group"):
                    continue
                with neighbour(is_busy):
                    for wait in waits(program, is_network, options.kinds or list(PROMISED), folder):
                        promised = PROMISED[wait.what.split()[0]][is_network]
                        late += wait.took is None or wait.took[0] > promised or bool(wait.remark)
                        print(_row(wait, is_network, is_busy, promised), flush=True)
    return int(late > 0)


def _row(wait: Wait, is_network: bool, is_busy: bool, promised: float) -> str:
    what, beside = f"{'network' if is_network else 'group'}, {wait.what}", "busy" if is_busy else "alone"
    seconds, cpu = ("never", "") if wait.took is None else (f"{wait.took[0]:.1f}", f"{wait.took[1]:.1f}")
    return f"{what:26}{beside:8}{seconds:>9}{cpu:>9}{promised:>10.0f}  {wait.remark}".rstrip()


if __name__ == "__main__":
    sys.exit(main())
