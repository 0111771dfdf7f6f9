"""Blocks of one image whose branches are concatenated, with and without slices, in turns:
`python -m benchmarks.concatenations`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import median

import numpy as np
from xdsl.dialects.builtin import ModuleOp

import compiler
from compiler import te
from compiler.bench.schedules import matmul
from compiler.dialects.calls import callees
from compiler.dialects.functions import find_function
from compiler.driver import module_in_groups
from compiler.driver.main.assemble import build_program
from compiler.driver.units.unit import BuildSettings, Scheduled
from compiler.graph.grouping.facts import Kind, kind_of
from compiler.graph.read import read
from compiler.graph.tree import Compute
from compiler.schedule import Schedule
from compiler.targets.cpu import Kernel
from compiler.types.machines import host

ROUNDS = 40
nn = te.nn


def inception() -> te.Function:
    """Four 1x1 convolutions of one image, concatenated, and four of the result, as in GoogLeNet's block 3a; each is a
    matrix product of filters by 784 pixels."""
    x = te.placeholder((192, 784), name="X")
    weights = [te.placeholder((n, 192), name=f"W{n}{i}") for i, n in enumerate((64, 128, 32, 32))]
    heads = [te.placeholder((n, 256), name=f"V{n}{i}") for i, n in enumerate((128, 128, 32, 64))]
    joined = nn.concat([nn.matmul(w, x) for w in weights])
    pixels = [nn.matmul(v, joined) for v in heads]
    return te.function("inception", [x, *weights, *heads], [nn.concat(pixels)])


def dense(layers: int = 12, growth: int = 32) -> te.Function:
    """A block of DenseNet as matrix products: each of `layers` 1x1 convolutions reads, on 784 pixels, all earlier
    channels, and appends `growth`."""
    x = joined = te.placeholder((64, 784), name="X")
    weights = []
    for n in range(layers):
        weights.append(te.placeholder((growth, joined.shape[0]), name=f"W{n}"))
        joined = nn.concat([joined, nn.matmul(weights[-1], joined)])
    return te.function("dense", [x, *weights], [joined])


def schedules(module: ModuleOp) -> Iterator[tuple[str, Scheduled]]:
    """Yield, for each group of a module that is a single contraction, its name and the script that packs and tiles
    it."""
    for group in callees(find_function(module)):
        nodes = [node for node in read(group).nodes if isinstance(node, Compute)]
        if [kind_of(node.block) for node in nodes] == [Kind.CONTRACTION]:
            s = Schedule(compiler.lower(ModuleOp([group.clone()])))
            matmul(s, host(), 1)
            yield group.sym_name.data, Scheduled(str(s.script))


def kernels(f: te.Function) -> list[Kernel]:
    """Build a function twice, with the same scripts: products write into slices of the concatenation, then into
    temporaries that are copied."""
    module = module_in_groups(f)
    sources = dict(schedules(module))
    return [build_program(module, sources, BuildSettings("contract", 1, 0.0, slices=on)) for on in (True, False)]


def main() -> None:
    """Print for each block the times of a call, the share of the time that slices save, and the arenas."""
    for f in (inception(), dense()):
        several = kernels(f)
        rng = np.random.default_rng(0)
        inputs = [rng.uniform(-1, 1, t.shape).astype(np.float32) for t in f.inputs]
        out = np.empty(f.outputs[0].shape, np.float32)
        times: list[list[float]] = [[], []]
        for _ in range(ROUNDS):
            for kernel, samples in zip(several, times, strict=True):
                start = time.process_time()
                for _ in range(5):
                    kernel(*inputs, out=out)
                samples.append((time.process_time() - start) / 5)
        written, copied = map(median, times)
        saved = median(1 - a / b for a, b in zip(*times, strict=True))
        print(f"{f.name}: {1e6 * written:.0f} us in slices, {1e6 * copied:.0f} us with copies, {saved:.0%} less")
        arenas = [
            f"{kernel.arena_bytes >> 10} KiB ({kernel.temporaries_bytes >> 10} temporaries)" for kernel in several
        ]
        print(f"  arena {arenas[0]}, was {arenas[1]}; {len(several[0].groups)} groups, were {len(several[1].groups)}")
        np.testing.assert_array_equal(several[0](*inputs), several[1](*inputs))


if __name__ == "__main__":
    main()
