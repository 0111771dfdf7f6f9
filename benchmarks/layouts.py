"""`python -m benchmarks.layouts [PART ...]`: layers and networks with their images plain and channels last, in turns.

A layer has constant weights, a bias and a relu, and an image and a result in every pair of layouts; its ways are built
without a trial for one thread and timed warm. `--networks` times networks of `benchmarks.whole`, with the law
`channels-last` and without it.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import median

import numpy as np
from numpy.typing import NDArray

import compiler
from benchmarks.whole import NETWORKS
from compiler import te
from compiler.alternatives import GROUP_LAWS, PROGRAM_LAWS, Conditions, Law
from compiler.alternatives.layouts.layout import ImageLayout
from compiler.alternatives.program import preferred
from compiler.driver.building import build_scheduled, source_of
from compiler.driver.parts.forms import with_forms
from compiler.driver.parts.groups import GroupedProgram
from compiler.driver.parts.partition import Partition
from compiler.graph.grouped_module import group_program
from compiler.targets.cpu import Kernel
from compiler.te.expr import Expr
from compiler.te.index import Index
from compiler.types.machines import host

Array = NDArray[np.float32]
PLAIN, LAST = ImageLayout(False, 4), ImageLayout(True, 4)
ROUNDS = 11


@dataclass(frozen=True)
class Layer:
    """A convolution of a square image: filters of `taps` by `taps`, 0 filters for a depthwise one; with `transposed`
    there are as many taps as the stride, and that many results for each pixel."""

    channels: int
    filters: int
    size: int
    taps: int = 1
    stride: int = 1
    transposed: bool = False

    def __str__(self) -> str:
        kind = "transposed " if self.transposed else "" if self.filters else "depthwise "
        stride = f", stride {self.stride}" if self.stride > 1 else ""
        filters = f" to {self.filters}" if self.filters else ""
        return f"{kind}{self.taps}x{self.taps}{stride}, {self.channels}{filters}, {self.size}x{self.size}"

    @property
    def made(self) -> int:
        """The channels of the result."""
        return self.filters or self.channels

    @property
    def out(self) -> int:
        """The rows of the result."""
        return self.size * self.stride if self.transposed else -(-self.size // self.stride)

    def function(self, read: ImageLayout, written: ImageLayout) -> te.Function:
        """The layer as a te function of an image in the layout `read` with a result in the layout `written`."""
        pad, t, s = (self.taps - 1) // 2, self.taps, self.stride
        x = te.placeholder(read.arranged((1, self.channels, self.size, self.size)), name="X")
        w = te.placeholder((self.made, self.channels if self.filters else 1, t, t), name="W")
        b = te.placeholder((self.made,), name="b")
        border = [(p, p) for p in read.arranged((0, 0, pad, pad))]
        image = te.nn.pad(x, border) if pad and not self.transposed else x
        r, q = (te.reduce_axis(1 if self.transposed else t, name) for name in "rq")
        channel = te.reduce_axis(self.channels if self.filters else 1, "c")

        def tap(n: Index, k: Index, h: Index, v: Index) -> Expr:
            c = channel if self.filters else k
            if self.transposed:
                place = read.arranged((n, c, h // s - r, v // s - q))
                return image[place] * w[k, channel, h % s + r * s, v % s + q * s]
            return image[read.arranged((n, c, h * s + r, v * s + q))] * w[k, channel, r, q]

        def summed(*index: Index) -> Expr:
            return te.sum(tap(*plain(index)), axis=[channel, r, q])

        def plain(index: tuple[Index, ...]) -> tuple[Index, ...]:
            return (index[0], index[written.channels], *(index[d] for d in written.pixels))

        shape = written.arranged((1, self.made, self.out, self.out))
        y = te.compute(shape, summed, name="y")
        z = te.compute(shape, lambda *i: te.maximum(y[i] + b[i[written.channels]], 0.0), name="z")
        return te.function("layer", [x, w, b], z)

    @property
    def constants(self) -> dict[str, Array]:
        """Random weights, and a bias of zeros, by the names of the inputs."""
        random = np.random.default_rng(0)
        shape = (self.made, self.channels if self.filters else 1, self.taps, self.taps)
        w = random.standard_normal(shape, np.float32) / np.float32(8)
        return {"W": w.astype(np.float32), "b": np.zeros(self.made, np.float32)}


LAYERS = (
    Layer(64, 384, 14),
    Layer(384, 64, 14),
    Layer(192, 32, 28),
    Layer(144, 24, 56),
    Layer(960, 160, 7),
    Layer(256, 1024, 14),
    Layer(1024, 256, 14),
    Layer(64, 256, 17),
    Layer(3, 32, 224, 3, 2),
    Layer(128, 128, 56, 3, 2),
    Layer(64, 64, 56, 5),
    Layer(384, 0, 14, 3),
    Layer(144, 0, 56, 3),
    Layer(144, 0, 56, 3, 2),
    Layer(960, 0, 7, 3),
    Layer(240, 0, 28, 5),
    Layer(672, 0, 14, 5, 2),
    Layer(256, 128, 16, 2, 2, transposed=True),
    Layer(64, 32, 64, 2, 2, transposed=True),
)


def layer_times(layer: Layer) -> dict[str, float]:
    """The median seconds of a call for each pair of layouts, in turns. Raises AssertionError if results differ."""
    random = np.random.default_rng(1)
    image = random.standard_normal((1, layer.channels, layer.size, layer.size), np.float32)
    kernels, arrays, results = {}, {}, {}
    for (a, read), (b, written) in product((("plain", PLAIN), ("last", LAST)), repeat=2):
        key = f"{a} to {b}"
        kernels[key] = compiler.build(layer.function(read, written), threads=1, constants=layer.constants, error=0)
        arrays[key] = np.ascontiguousarray(image.transpose(read.arranged((0, 1, 2, 3))))
        result = np.asarray(kernels[key](arrays[key]))
        results[key] = result.transpose(0, 3, 1, 2) if written.is_last else result
    for result in results.values():
        np.testing.assert_allclose(result, results["plain to plain"], rtol=1e-3, atol=1e-3)
    rounds = [{key: kernel.time(arrays[key]).median for key, kernel in kernels.items()} for _ in range(ROUNDS)]
    return {key: median(each[key] for each in rounds) for key in kernels}


def compiled(function: te.Function, constants: Mapping[str, Array], laws: Sequence[Law]) -> Kernel:
    """Build a network in the form that the laws `laws` of whole programs prefer, without a trial."""
    conditions, names = Conditions(host(), "contract"), tuple(tensor.name for tensor in function.inputs)
    fixed = tuple(n for n, name in enumerate(names) if name in constants)
    cut = group_program(function.module, rewrite=preferred(conditions, fixed, laws))
    program = with_forms(GroupedProgram(cut.module, fixed, names, cut.names, cut.hashes), conditions, GROUP_LAWS)
    parts = Partition(program)
    sources = {part.name: source_of(part) for part in parts.parts(1, "contract")}
    return build_scheduled(parts, function, sources, 1, "contract", constants)


def network_times(name: str) -> list[float]:
    """The median seconds of a call of a network without the law channels-last and with it, in turns."""
    function = NETWORKS[name]()
    image, *weights = function.inputs
    random = np.random.default_rng(0)

    def weight(tensor: te.Tensor) -> Array:
        shape = tuple(tensor.shape)
        values = random.standard_normal(shape) * (2 / max(1.0, float(np.prod(shape[1:])))) ** 0.5
        return np.asarray(values if len(shape) > 1 else np.abs(values) / 8 + 0.5, np.float32)

    constants = {tensor.name: weight(tensor) for tensor in weights}
    x = random.standard_normal(tuple(image.shape), np.float32)
    laws = [[law for law in PROGRAM_LAWS if law.name != "channels-last"], PROGRAM_LAWS]
    kernels = [compiled(function, constants, chosen) for chosen in laws]
    rounds = [[kernel.time(x).median for kernel in kernels] for _ in range(ROUNDS)]
    return [median(times) for times in zip(*rounds, strict=True)]


def main() -> None:
    """Print a row for each layer or network."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help="of names of layers or networks")
    parser.add_argument("--networks", action="store_true")
    options = parser.parse_args()

    def wanted(name: str) -> bool:
        return not options.parts or any(part in name for part in options.parts)

    if options.networks:
        for name in filter(wanted, NETWORKS):
            without, with_law = (1e3 * seconds for seconds in network_times(name))
            print(f"{name:20} plain {without:.2f} ms, channels last {with_law:.2f} ms: {without / with_law:.2f}")
        return
    for layer in (each for each in LAYERS if wanted(str(each))):
        ms = {key: 1e6 * seconds for key, seconds in layer_times(layer).items()}
        print(f"{layer!s:44}", *(f"{key} {time:.0f} us" for key, time in ms.items()), flush=True)


if __name__ == "__main__":
    main()
