"""The scripts that recipes write for many programs: `python -m tools.scripts_corpus --write PATH` or `--compare PATH`.

A change of the recipes that is meant to change no schedule is proved by it: write the corpus before the change, compare
after it. Each program is derived for several machines and threads, its preferred script and all others. Where a script
differs, both are replayed: those with equal loops are only spelled otherwise. Exit status 1 if any script differs.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from pathlib import Path

from benchmarks.defaults.cases import FAMILIES
from benchmarks.defaults.layers import LAYERS, layer
from benchmarks.networks import Network
from compiler import te
from compiler.autotune.task import SearchTask
from compiler.bench.workloads import PRESETS, find
from compiler.pipeline.source import parse
from compiler.program.write import write
from compiler.schedule import Schedule
from compiler.support.errors import StrataError
from compiler.types.machines import MACHINES

nn = te.nn
MOST_SHOWN = 3
"""The most scripts that differ of which both texts are printed."""
SEPARATOR = "\n=== "


def _convolution(
    rank: int, channels: int, filters: int, size: int, taps: int, stride: int = 1, groups: int = 1
) -> te.Function:
    x = te.placeholder((2, channels, *(size + n for n in range(rank))), name="X")
    w = te.placeholder((filters, channels // groups, *[taps] * rank), name="W")
    conv = {1: nn.conv1d, 2: nn.conv2d, 3: nn.conv3d}[rank]
    steps = stride if rank == 1 else (stride,) * rank
    padding = taps // 2 if rank == 1 else (taps // 2,) * rank
    return te.function("f", [x, w], conv(x, w, None, stride=steps, padding=padding, groups=groups))


def _over_time(taps: tuple[int, int, int], stride: tuple[int, int, int]) -> te.Function:
    x, w = te.placeholder((1, 16, 6, 14, 14), name="X"), te.placeholder((64, 16, *taps), name="W")
    padding = tuple(size // 2 for size in taps)
    return te.function("f", [x, w], nn.relu(nn.conv3d(x, w, None, stride=stride, padding=padding)))


def _channels_last(filters: int, taps: int, depthwise: bool, padding: int, stride: int = 1) -> te.Function:
    """A convolution with channels last, which is otherwise the result of laws on networks."""
    x = te.placeholder((1, 15, 17, 24), name="X")
    border = ((0, 0), (padding, padding), (padding, padding), (0, 0))
    image = nn.pad(x, border) if padding else x
    w = te.placeholder((24 if depthwise else filters, 1 if depthwise else 24, taps, taps), name="W")
    r, q, c = (te.reduce_axis(size, name) for size, name in ((taps, "r"), (taps, "q"), (w.shape[1], "c")))
    height, width = ((size - taps) // stride + 1 for size in image.shape[1:3])

    def element(n: object, h: object, v: object, k: object) -> object:
        channel = k if depthwise else c
        return te.sum(image[n, h * stride + r, v * stride + q, channel] * w[k, c, r, q], axis=[r, q, c])  # type: ignore

    y = te.compute((1, height, width, w.shape[0]), element, name="Y")  # type: ignore[arg-type]
    return te.function("f", [x, w], nn.relu(y))


def _transposed(rank: int, size: int, taps: int, stride: int, padding: int) -> te.Function:
    x, w = te.placeholder((2, 12, *[size] * rank), name="X"), te.placeholder((12, 24, *[taps] * rank), name="W")
    transpose = nn.conv1d_transpose if rank == 1 else nn.conv2d_transpose
    return te.function("f", [x, w], transpose(x, w, stride=stride, padding=padding))


def _grad_weight() -> te.Function:
    x, g = te.placeholder((4, 16, 14, 14), name="X"), te.placeholder((4, 24, 14, 14), name="G")
    return te.function("f", [x, g], nn.conv2d_grad_weight(x, g, (24, 16, 3, 3), padding=1))


def _chain() -> te.Function:
    a, b, d = (te.placeholder((size, 80), name=name) for size, name in ((60, "A"), (80, "B"), (80, "D")))
    return te.function("f", [a, b, d], nn.matmul(nn.relu(nn.matmul(a, b)), d))


def _matmul(m: int, n: int, k: int, dtype: str = "f32") -> te.Function:
    a, b = te.placeholder((m, k), dtype, "A"), te.placeholder((k, n), dtype, "B")
    return te.function("f", [a, b], nn.relu(nn.matmul(a, b, dtype="f32")))


def _softmax() -> te.Function:
    x = te.placeholder((64, 1000), name="X")
    return te.function("f", [x], nn.softmax(x))


Make = Callable[[], te.Function]
EVERY = tuple((machine, threads) for machine in MACHINES for threads in (1, 2))
SOME = (("avx512-amx", 1), ("avx512-amx", 2), ("avx2", 2))
"""The machines and the threads of programs that cover a family with few others, and of those with many."""
FURTHER: dict[str, Make] = {
    "depthwise conv1d": partial(_convolution, 1, 32, 32, 40, 3, groups=32),
    "depthwise conv3d s2": partial(_convolution, 3, 8, 8, 9, 3, 2, 8),
    "grouped by 2": partial(_convolution, 2, 32, 64, 12, 3, groups=2),
    "grouped by 4 s2": partial(_convolution, 2, 64, 96, 15, 3, 2, 4),
    "conv1d of one tap": partial(_convolution, 1, 24, 40, 61, 1),
    "conv3d of one tap s2": partial(_convolution, 3, 12, 72, 9, 1, 2),
    "one row of one tap": partial(_convolution, 2, 16, 128, 3, 1),
    "filters over time": partial(_over_time, (3, 1, 1), (1, 1, 1)),
    "filters over time s2": partial(_over_time, (3, 1, 1), (2, 1, 1)),
    "filters over time and rows": partial(_over_time, (1, 3, 1), (1, 1, 2)),
    "channels last 3x3": partial(_channels_last, 40, 3, False, 1),
    "channels last 3x3 s2, no border": partial(_channels_last, 6, 3, False, 0, 2),
    "channels last 1x1": partial(_channels_last, 40, 1, False, 0),
    "channels last depthwise 3x3": partial(_channels_last, 24, 3, True, 1),
    "channels last depthwise 5x5 s2": partial(_channels_last, 24, 5, True, 2, 2),
    "transposed 1d": partial(_transposed, 1, 11, 3, 2, 1),
    "transposed 3x3 s2": partial(_transposed, 2, 9, 3, 2, 1),
    "transposed 2x2 s3": partial(_transposed, 2, 6, 2, 3, 0),
    "gradient of weights": _grad_weight,
    "chain of products": _chain,
    "odd product": partial(_matmul, 37, 53, 71),
}
FOR_GPU: dict[str, Make] = {
    "product": partial(_matmul, 256, 128, 512),
    "odd product": partial(_matmul, 37, 53, 71),
    "thin product": partial(_matmul, 1, 64, 2048),
    "product on tensor cores": partial(_matmul, 128, 128, 256, "f16"),
    "convolution": partial(_convolution, 2, 16, 32, 14, 3),
    "softmax": _softmax,
}


@dataclass(frozen=True)
class Case:
    """A program, a machine and a number of threads."""

    name: str
    make: Make
    machine: str
    threads: int

    def tasks(self) -> Sequence[SearchTask]:
        """Return the tasks of its groups; inputs with names in W or b are constants, as in the benchmarks."""
        function = self.make()
        if self.machine not in MACHINES:
            task = SearchTask(function, target="cuda", arch=self.machine)
        else:
            weights = [tensor.name for tensor in function.inputs if tensor.name[0] in "Wb"]
            machine = MACHINES[self.machine]
            task = SearchTask(function, threads=self.threads, machine=machine, constants=weights)
        return task.groups or (task,)

    @property
    def label(self) -> str:
        """The name, the machine and the threads, as in the corpus."""
        return f"{self.name}, {self.machine}, {self.threads} threads"

    def scripts(self) -> Iterator[tuple[str, str]]:
        """Iterate over the names and texts of its scripts, the preferred one of a group first."""
        for group, task in enumerate(self.tasks()):
            for number, sketch in enumerate(task.derived.sketches):
                yield (
                    f"{self.label}, group {group}, {number}",
                    f"{sketch.name}\n{sketch.text(sketch.recorded_positions)}",
                )


def cases() -> Iterator[Case]:
    """Iterate over all cases; the machine of a GPU is its architecture."""
    programs: dict[str, Make] = {f"preset {name}": partial(_preset, name) for name in PRESETS}
    programs |= {f"{family}/{name}": make for family, some in FAMILIES.items() for name, make in some.items()}
    programs |= {f"{net}/{name}": partial(_layer, net, name) for net, some in LAYERS.items() for name in some}
    programs |= {f"further/{name}": make for name, make in FURTHER.items()}
    for name, make in programs.items():
        for machine, threads in EVERY if name.startswith("further") else SOME:
            yield Case(name, make, machine, threads)
    for arch in ("sm_75", "sm_80"):
        yield from (Case(f"gpu/{name}", make, arch, 1) for name, make in FOR_GPU.items())


def _preset(name: str) -> te.Function:
    return find(name).function()


def _layer(network: str, name: str) -> te.Function:
    return layer(network, name, Network(name))


def _chosen(patterns: Sequence[str]) -> Iterator[Case]:
    """Iterate over the cases whose labels begin with a match of one of the patterns; all without patterns."""
    return (case for case in cases() if not patterns or any(fnmatch(case.label, f"{pattern}*") for pattern in patterns))


def corpus(patterns: Sequence[str] = ()) -> dict[str, str]:
    """Return the text of every script by its name."""
    return {name: text for case in _chosen(patterns) for name, text in case.scripts()}


def read(path: Path) -> dict[str, str]:
    """Return the corpus in a file."""
    entries = (entry.split("\n", 1) for entry in path.read_text("utf-8").split(SEPARATOR)[1:])
    return dict(entries)


def _label_of(name: str) -> str:
    """Return the label of a script's case."""
    return name.rsplit(", ", 2)[0]


def loops_of(task: SearchTask, text: str) -> str:
    """Return the loops of a task under a script, as text; the reason if the script is refused."""
    try:
        script = parse(text.split("\n", 1)[1], "the script")
        return str(write(Schedule(task.schedule.module).apply(script).program))
    except StrataError as error:
        return str(error)


def compare(before: dict[str, str], after: dict[str, str]) -> int:
    """Print the scripts that differ, and return their count."""
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    tasks: dict[str, Sequence[SearchTask]] = {}
    by_label = {case.label: case for case in cases()}
    shown, respelled = 0, Counter[str]()
    for name in names:
        label, group = _label_of(name), int(name.rsplit(", ", 2)[1].removeprefix("group "))
        if label not in tasks:
            tasks = {label: by_label[label].tasks()}
        texts = [scripts.get(name) for scripts in (before, after)]
        loops = [None if text is None else loops_of(tasks[label][group], text) for text in texts]
        if loops[0] == loops[1]:
            respelled[after[name].split("\n", 1)[0]] += 1
            continue
        print(f"{name}: OTHER LOOPS")
        if shown < MOST_SHOWN:
            shown += 1
            for label, text in zip(("before", "after"), texts, strict=True):
                print(f"--- {label}\n{text}")
    for way, count in respelled.most_common():
        print(f"{count} spelled otherwise with equal loops: {way}")
    print(f"{len(names)} of {len(after)} scripts differ")
    return len(names)


def main() -> int:
    """Write or compare a corpus."""
    parser = argparse.ArgumentParser(description=__doc__)
    way = parser.add_mutually_exclusive_group(required=True)
    way.add_argument("--write", metavar="PATH", type=Path, help="write the corpus to a file")
    way.add_argument("--compare", metavar="PATH", type=Path, help="compare with a file that --write made")
    parser.add_argument(
        "programs", nargs="*", help="cases with wildcards, such as 'convolution/*, avx2'; all by default"
    )
    options = parser.parse_args()
    scripts = corpus(options.programs)
    if options.write is not None:
        options.write.write_text("".join(f"{SEPARATOR}{name}\n{text}" for name, text in scripts.items()))
        print(f"{len(scripts)} scripts")
        return 0
    cases_of = {case.label for case in _chosen(options.programs)}
    before = {name: text for name, text in read(options.compare).items() if _label_of(name) in cases_of}
    return 1 if compare(before, scripts) else 0


if __name__ == "__main__":
    sys.exit(main())
