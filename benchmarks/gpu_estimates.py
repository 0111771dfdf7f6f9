"""The estimate of kernels' times beside GPGPU-Sim's cycles: `python -m benchmarks.gpu_estimates [--seed N]`.

Draws 40 kernels of f32 without shuffles, of 10^6 to 10^7 instructions of threads: products, odd products, convolutions,
depthwise ones, columns, transposes, pointwise and gathers, under the default schedule and others, which are bad or
merely different. Half of them, by the seed, belong to the fit, the others were never looked at while anything was
fitted. Prints a row for each kernel, and for both halves the rank correlation (Spearman) and the worst factor. The
machine is the V100 as the simulator has it (`SIMULATED`). Needs `python -m tools.gpgpu_sim build`, once.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

import compiler
from compiler import recipes, te
from compiler.pipeline.loops import lower_to_kernels
from compiler.recipes import ThreadTiles
from compiler.recipes.rules import GPU_RULES
from compiler.schedule import Schedule
from compiler.space.derivation import preferred
from compiler.space.gpu_features import LAUNCH
from compiler.space.gpu_features import estimate as roofline
from compiler.support.errors import StrataError
from compiler.targets.cuda import CudaKernel
from compiler.targets.cuda.machines import representative_gpu
from compiler.targets.timing import KernelTime, kernel_times
from compiler.types.machines import Gpu
from tools import gpgpu_sim

SEED = 20261126
KERNELS = 40
LEAST, MOST = 1_000_000, 10_000_000
"""The instructions of threads of a kernel."""
CYCLES = 12_000
"""The most cycles of a kernel: a thousand take the simulator half a second."""
SIMULATED = replace(representative_gpu("sm_70"), name="GPGPU-Sim's QV100", clock=1.132e9, l2_rate=1.53, fetch_cycles=0)
"""The machine of the configuration SM7_QV100: its clock, a perfect cache of instructions, and the bandwidth of its L2,
15 bytes a cycle for a multiprocessor, as copies of 20480 to 327680 floats take it."""


@dataclass(frozen=True)
class Drawn:
    """A kernel: its family, extents and schedule in words, the scheduled program, and of each launch
    the simulator's cycles and instructions of threads."""

    family: str
    words: str
    schedule: Schedule
    simulated: list[dict[str, Any]]

    @property
    def cycles(self) -> int:
        """The simulator's cycles of all launches."""
        return sum(row["cycles"] for row in self.simulated)

    @property
    def instructions(self) -> int:
        """The simulator's instructions of threads."""
        return sum(row["instructions"] for row in self.simulated)


def product(draws: random.Random) -> te.Function:
    """A product of matrices whose extents are products of 2, 3 and 5, of 250 to 450 thousand multiplications."""
    return _product("product", draws, (64, 96, 128, 160), (16, 24, 32))


def odd_product(draws: random.Random) -> te.Function:
    """A product of matrices whose extents are primes, so that no tile divides them."""
    return _product("odd", draws, (67, 83, 101, 127, 149), (17, 23, 29, 37))


def _product(name: str, draws: random.Random, sides: Sequence[int], depths: Sequence[int]) -> te.Function:
    m, n, k = 1, 1, 1
    while not 250_000 < m * n * k < 450_000:
        m, n, k = draws.choice(sides), draws.choice(sides), draws.choice(depths)
    a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    return te.function(name, [a, b], te.nn.matmul(a, b, name="C"))


def convolution(draws: random.Random) -> te.Function:
    """A padded convolution of 3x3 or 1x1 of one square image."""
    c, o, h, taps = 1, 1, 1, 1
    while not 150_000 < c * o * h * h * taps**2 < 450_000:
        taps = draws.choice((1, 3, 3))
        c, o, h = draws.choice((2, 3, 4)) * (9 - 3 * taps + 1), draws.choice((24, 32, 48)), draws.choice((12, 14, 16))
    x, w = te.placeholder((1, c, h, h), name="X"), te.placeholder((o, c, taps, taps), name="W")
    return te.function("conv", [x, w], te.nn.conv2d(x, w, padding=taps // 2, name="C"))


def depthwise(draws: random.Random) -> te.Function:
    """A padded depthwise convolution of 3x3 of one square image."""
    c, h = draws.choice((48, 64, 96)), draws.choice((20, 24, 28))
    x, w = te.placeholder((1, c, h, h), name="X"), te.placeholder((c, 1, 3, 3), name="W")
    return te.function("depthwise", [x, w], te.nn.conv2d(x, w, padding=1, groups=c, name="C"))


def columns(draws: random.Random) -> te.Function:
    """The sum of each column of a matrix."""
    m, n = draws.choice((80, 96, 128)), draws.choice((8000, 8192, 9000))
    x, r = te.placeholder((m, n), name="X"), te.reduce_axis(m, "r")
    return te.function("columns", [x], te.compute((n,), lambda j: te.sum(x[r, j], axis=r), name="C"))


def transpose(draws: random.Random) -> te.Function:
    """The transpose of a matrix."""
    m, n = draws.choice((256, 300, 384, 512)), draws.choice((384, 500, 512))
    x = te.placeholder((m, n), name="X")
    return te.function("transpose", [x], te.compute((n, m), lambda i, j: x[j, i], name="C"))


def pointwise(draws: random.Random) -> te.Function:
    """exp, tanh or the square of each element of a matrix plus a row."""
    m, n = draws.choice((128, 200, 255)), draws.choice((500, 512, 768))
    x, y = te.placeholder((m, n), name="X"), te.placeholder((n,), name="Y")
    apply = draws.choice((te.exp, te.tanh, lambda v: v * v))
    return te.function("pointwise", [x, y], te.compute((m, n), lambda i, j: apply(x[i, j] + y[j]), name="C"))


def gather(draws: random.Random) -> te.Function:
    """The rows of a table at a vector of indices."""
    rows, width, count = draws.choice((100, 1000)), draws.choice((96, 128, 192)), draws.choice((512, 700, 1024))
    table, index = te.placeholder((rows, width), name="W"), te.placeholder((count,), "i32", name="I")
    return te.function("gather", [table, index], te.nn.embedding(index, table, name="C"))


FAMILIES: dict[str, Callable[[random.Random], te.Function]] = {
    f.__name__: f for f in (product, odd_product, convolution, depthwise, columns, transpose, pointwise, gather)
}


def scheduled(function: te.Function, draws: random.Random) -> tuple[str, Schedule]:
    """Draw a schedule of a function, and return it in words and applied: the default one, random tiles on threads, or
    one result, or vector of results, a thread."""
    kind = draws.choice(("default", "tiles", "tiles", "spread"))
    s = Schedule(compiler.lower(function))
    if kind == "default":
        return kind, preferred(s, GPU_RULES, SIMULATED).draft.schedule
    block = s.get_block("C")
    loops = s.program.blocks[s.label(block)].axes
    spatial = [axis for axis in loops if not axis.is_reduce]
    if kind == "tiles" and len(spatial) < len(loops) and len(spatial) > 1:
        cuts = [(draws.choice((1, 1, 2)), draws.choice((4, 8, 16)), draws.choice((1, 1, 2, 4))) for _ in spatial[-2:]]
        tiles = [(1, 1, 1)] * (len(spatial) - 2) + cuts
        panels = [draws.choice((4, 8, 16)) if axis.size > 8 else axis.size for axis in loops if axis.is_reduce]
        twice, padded = draws.random() < 0.25, draws.random() < 0.25
        recipes.tile_on_threads(s, block, None, ThreadTiles(tiles, panels, twice=twice, padded=padded))
        return f"tiles {cuts} panels {panels}{' twice' * twice}{' padded' * padded}", s
    threads, vector = draws.choice((32, 64, 128, 256)), draws.choice((1, 1, 1, 4))
    if len(spatial) < len(loops):  # sums in registers
        out = s.cache_write(block, "local")
        s.reverse_compute_at(out, recipes.spread(s, block, threads))
        return f"spread {threads}", s
    recipes.spread(s, block, threads, vector)
    return f"spread {threads} x {vector}", s


def drawn(seed: int, count: int = KERNELS) -> Iterator[Drawn]:
    """Yield `count` kernels, from the families in turn; draws that cannot be built, have a shuffle, or have fewer than
    LEAST or more than MOST instructions of threads are skipped."""
    draws, found = random.Random(seed), 0
    while found < count:
        family = list(FAMILIES)[found % len(FAMILIES)]
        function = FAMILIES[family](draws)
        shape = " ".join("x".join(map(str, t.shape)) for t in function.inputs)
        try:
            words, schedule = scheduled(function, draws)
            kernel = built(schedule)
        except StrataError:
            continue
        if "shfl" not in kernel.text:
            one = Drawn(family, f"{shape}, {words}", schedule, simulated(kernel))
            if LEAST <= one.instructions <= MOST:
                found += 1
                yield one


def built(schedule: Schedule) -> CudaKernel:
    """Build a scheduled program for sm_70."""
    kernel = compiler.build(schedule, "cuda", arch="sm_70")
    assert isinstance(kernel, CudaKernel)
    return kernel


def simulated(kernel: CudaKernel) -> list[dict[str, Any]]:
    """Return the simulator's figures of each launch on random inputs, from a file if the kernel has been simulated
    before; empty if it takes more than CYCLES cycles."""
    key = hashlib.sha256((kernel.text + repr(kernel.launches)).encode()).hexdigest()[:24]
    path = gpgpu_sim.FOLDER / "cycles" / f"{key}.json"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        random_ = np.random.default_rng(0)
        inputs = [
            random_.standard_normal(a.shape, np.float32)
            if a.dtype == np.float32
            else random_.integers(0, 100, a.shape, a.dtype)
            for a in kernel.arguments[: len(kernel.arguments) - kernel.outputs]
        ]
        _, rows = gpgpu_sim.simulate(kernel, inputs, CYCLES)
        path.write_text(json.dumps([asdict(row) for row in rows]))
    return json.loads(path.read_text())  # type: ignore[no-any-return]


def estimated(schedule: Schedule, gpu: Gpu = SIMULATED) -> list[KernelTime]:
    """The estimates of a schedule's kernels; instructions in the order of PTX, which the simulator runs."""
    module, host, _ = lower_to_kernels(schedule.module.clone())
    return kernel_times(module, gpu, host.sym_name.data, in_order=True)


def ranks(values: Sequence[float]) -> np.ndarray[Any, Any]:
    """Return the rank of each value, from 0; equal values have the mean of their ranks."""
    order = np.asarray(values)
    return np.array([(order < v).sum() + ((order == v).sum() - 1) / 2 for v in order])


def spearman(a: Sequence[float], b: Sequence[float]) -> float:
    """Return Spearman's rank correlation of two sequences."""
    return float(np.corrcoef(ranks(a), ranks(b))[0, 1])


def summary(name: str, rows: Sequence[tuple[float, float, float]]) -> str:
    """Format, for the estimates and for the roofline, the rank correlation with the simulator's cycles and the worst
    factor between them. rows: the cycles of the simulator, of the estimate and of the roofline."""
    cycles, new, old = (list(column) for column in zip(*rows, strict=True))
    worst = [max(max(e / c, c / e) for c, e in zip(cycles, estimates, strict=True)) for estimates in (new, old)]
    return (
        f"{name}: {len(rows)} kernels, rank correlation {spearman(cycles, new):.2f}, worst factor {worst[0]:.2f}; "
        f"roofline {spearman(cycles, old):.2f}, {worst[1]:.1f}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row for each kernel of the chosen half, and a summary of each half."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--half", choices=("fit", "test", "both"), default="both", help="which rows are printed")
    parser.add_argument("--count", type=int, default=KERNELS, help="of kernels (default 40)")
    options = parser.parse_args(arguments)
    fitted = set(random.Random(options.seed).sample(range(KERNELS), KERNELS // 2))
    rows: dict[str, list[tuple[float, float, float]]] = {"fit": [], "test": []}
    print("| n | half | kernel | instructions | cycles | estimate | factor | bound | roofline |")
    print("|---:|---|---|---:|---:|---:|---:|---|---:|")
    for n, one in enumerate(drawn(options.seed, options.count)):
        half, times = "fit" if n in fitted else "test", estimated(one.schedule)
        cycles = sum(time.cycles for time in times)
        old = (roofline(one.schedule.program, SIMULATED) - len(times) * LAUNCH) * SIMULATED.clock
        rows[half].append((one.cycles, cycles, old))
        if options.half in (half, "both"):
            bound = max(times, key=lambda time: time.cycles).bound
            cells = [n, half, f"{one.family} {one.words}", one.instructions, one.cycles, f"{cycles:.0f}"]
            cells += [f"{cycles / one.cycles:.2f}", bound, f"{old:.0f}"]
            print(f"| {' | '.join(map(str, cells))} |", flush=True)
    for half, found in rows.items():
        if len(found) > 1 and options.half in (half, "both"):
            print(summary(half, found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
