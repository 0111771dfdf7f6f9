"""Whole networks built for CUDA, without a GPU: seconds, launches, memory, spills, and results of the text on the host.

    python -m benchmarks.cuda_networks [NAME ...] [--arch sm_80] [--compile] [--run]

--compile compiles the text by NVRTC, which is slow for large networks, and counts spilled bytes. --run runs the text of
smaller networks of the same kinds on the host, through g++, and compares with the CPU's results.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

import compiler
from benchmarks.further_networks import deit_tiny, gpt2
from benchmarks.networks import bert, mobilenet_v2, resnet18, resnet50, unet, whisper
from benchmarks.whole import is_data, weights_of
from compiler import te
from compiler.driver.devices.unit import STREAMED
from compiler.targets.cuda import ARCHITECTURES, CudaKernel
from compiler.targets.cuda.emit import CudaSource
from compiler.targets.groups import RUN_ONCE

NETWORKS: Mapping[str, Callable[[], te.Function]] = {
    "resnet18": resnet18,
    "resnet50": resnet50,
    "mobilenet_v2": mobilenet_v2,
    "unet": unet,
    "deit-tiny": deit_tiny,
    "bert, 2 layers": lambda: bert(2),
    "gpt2, 2 layers": gpt2,
    "whisper": whisper,
}
SMALL: Mapping[str, Callable[[], te.Function]] = {
    "resnet18 of 32x32": lambda: resnet18(32, 10),
    "resnet50 of 32x32": lambda: resnet50(32, 10),
    "mobilenet_v2 of 32x32": lambda: mobilenet_v2(32, 10),
    "unet of 16x16": lambda: unet(16, 4, 2),
    "gpt2, 1 layer": lambda: gpt2(1, 16, 48),
}


def built(function: te.Function, arch: str) -> tuple[CudaKernel, float]:
    """The kernel of a network with random weights, and the seconds of its build."""
    weights, start = weights_of(function), time.perf_counter()
    kernel = compiler.build(function, "cuda", constants=weights, schedule="auto", arch=arch)
    return kernel, time.perf_counter() - start


def most_live_bytes(source: CudaSource, first: int) -> int:
    """The largest sum of bytes of the temporaries that are alive at one launch. first: the position of the first
    temporary among the arguments of launches."""
    uses: dict[int, list[int]] = {}
    for step, launch in enumerate(source.all_launches):
        for number in launch.arguments:
            if number >= first:
                uses.setdefault(number, []).append(step)
    live = [0] * len(source.all_launches)
    for number, steps in uses.items():
        for step in range(steps[0], steps[-1] + 1):
            live[step] += source.temporaries[number - first].size
    return max(live)


def has_refusal(verdict: str) -> bool:
    """Whether the verdict of a group has a reason for which the schedule that the rules prefer is not used."""
    return "; " in verdict.removeprefix(f"{RUN_ONCE}; ").replace(f"; {STREAMED}", "")


def row(name: str, function: te.Function, arch: str, compiles: bool) -> str:
    """A network as a row of the table; the spilled bytes only if `compiles`, since they need NVRTC."""
    kernel, seconds = built(function, arch)
    again = built(function, arch)[1]
    source, calls = kernel.source, sum(group.occurrences for group in kernel.groups)
    first = len(kernel.native_arguments) + len(source.prepared)
    alone = sum(prod(launch.grid) == 1 for launch in source.launches)
    refused = sum(has_refusal(group.verdict) for group in kernel.groups)
    arena, live = source.workspace_bytes / 2**20, most_live_bytes(source, first) / 2**20
    taken = sum(source.takes(name) for name in ARCHITECTURES)
    spilled = sum(r.spill_bytes for r in kernel.resources(arch).values()) if compiles else "-"
    launches = f"{len(source.launches)} ({len(source.launches) / calls:.2f})"
    cells = [name, f"{seconds:.1f} / {again:.2f}", f"{len(kernel.groups)} / {calls}", launches, len(source.preparation)]
    cells += [alone, refused, f"{arena:.1f} ({arena / live:.2f})", f"{taken} of {len(ARCHITECTURES)}", spilled]
    return f"| {' | '.join(map(str, cells))} |"


COLUMNS = (
    "network",
    "build, cached, s",
    "groups, calls",
    "launches (a call)",
    "once",
    "of one block",
    "not the first schedule",
    "arena, MiB (of what lives)",
    "architectures",
    "spilled",
)


def compared(name: str, function: te.Function, arch: str) -> str:
    """Return a sentence with the largest difference between a network's kernels, run on the host, and the CPU's result,
    relative to the largest element."""
    from tests.host_cuda import run_on_host

    kernel, _ = built(function, arch)
    random, weights = np.random.default_rng(1), weights_of(function)
    inputs: list[Any] = [random.standard_normal(t.shape).astype(np.float32) for t in function.inputs if is_data(t)]
    with tempfile.TemporaryDirectory() as folder:
        (result,) = run_on_host(kernel, inputs, Path(folder))
    expected = np.asarray(compiler.build(function, constants=weights, schedule="auto", threads=1)(*inputs))
    error = np.abs(result - expected).max() / np.abs(expected).max()
    return f"{name}: {len(kernel.launches)} launches on the host, max|y - CPU's| / max|y| = {error:.1e}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(NETWORKS)}")
    parser.add_argument("--arch", default="sm_80")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--run", action="store_true")
    options = parser.parse_args()
    if options.run:
        for name, make in SMALL.items():
            print(compared(name, make(), options.arch), flush=True)
        return
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    for name in options.names or NETWORKS:
        print(row(name, NETWORKS[name](), options.arch, options.compile), flush=True)


if __name__ == "__main__":
    main()
