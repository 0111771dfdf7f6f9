"""`python -m benchmarks.winograd [CxK@HxW ...]`: convolutions of 3 by 3 taps as written and by Winograd's forms.

Each layer has a bias and a relu, and constant weights; contenders run in turns on one thread, warm. With `--errors` it
measures errors instead: the largest over the largest result, against float64, over five distributions, beside the
probable bounds that the laws state. `chosen` is the form that `strata.build` takes.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from compiler import te
from compiler.alternatives import GROUP_LAWS, Conditions
from compiler.alternatives.transforms import F2, F4, Transform
from compiler.alternatives.winograd import rounding
from compiler.dialects.functions import functions
from compiler.driver.building import build_scheduled, source_of
from compiler.driver.parts.forms import with_forms
from compiler.driver.parts.groups import grouped_program
from compiler.driver.parts.partition import Partition, partition
from compiler.targets.cpu import Kernel
from compiler.types.machines import host

Array = NDArray[np.float32]

LAYERS = (
    "64x64@56x56",
    "128x128@28x28",
    "256x256@14x14",
    "512x512@7x7",
    "32x32@128x128",
    "64x32@128x128",
    "64x64@64x64",
    "128x128@32x32",
    "48x96@40x52",
    "96x24@33x65",
    "160x160@17x17",
    "16x16@112x112",
)
LAWS: Mapping[str, Transform | None] = {"written": None, "winograd-2x2": F2, "winograd-4x4": F4}
ROUNDS = 15
DISTRIBUTIONS: Mapping[str, Callable[[np.random.Generator, tuple[int, ...]], NDArray[np.float64]]] = {
    "normal": lambda random, shape: random.standard_normal(shape),
    "relu": lambda random, shape: np.maximum(random.standard_normal(shape), 0),
    "uniform": lambda random, shape: random.random(shape),
    "heavy": lambda random, shape: random.standard_t(2, shape),
    "sparse": lambda random, shape: random.standard_normal(shape) * (random.random(shape) < 0.05),
}


@dataclass(frozen=True)
class Layer:
    """A 3x3 convolution of `channels` to `filters`, of an image of rows by columns, padded by one."""

    channels: int
    filters: int
    rows: int
    columns: int

    @property
    def function(self) -> te.Function:
        """The layer as a te function, with a bias and a relu."""
        x = te.placeholder((1, self.channels, self.rows, self.columns), name="X")
        w = te.placeholder((self.filters, self.channels, 3, 3), name="W")
        b = te.placeholder((self.filters, 1, 1), name="b")
        return te.function("layer", [x, w, b], te.nn.relu(te.nn.add(te.nn.conv2d(x, w, padding=1), b)))

    def constants(self, random: np.random.Generator) -> dict[str, Array]:
        """Random weights, and a bias of zero."""
        w = random.standard_normal((self.filters, self.channels, 3, 3)) * (2 / (9 * self.channels)) ** 0.5
        return {"W": w.astype(np.float32), "b": np.zeros((self.filters, 1, 1), np.float32)}

    def exact(self, x: Array, w: Array) -> NDArray[np.float64]:
        """The layer in float64."""
        padded = np.pad(x[0].astype(np.float64), ((0, 0), (1, 1), (1, 1)))
        taps = [(r, s) for r in range(3) for s in range(3)]
        tap = "kc,chw->khw"
        views = {(r, s): padded[:, r : r + self.rows, s : s + self.columns] for r, s in taps}
        sums = (np.einsum(tap, w[:, :, r, s].astype(np.float64), views[r, s], optimize=True) for r, s in taps)
        total: NDArray[np.float64] = sum(sums)
        return np.maximum(total, 0)[None]


def kernel(layer: Layer, constants: Mapping[str, Array], law: str) -> Kernel:
    """Build the layer in the form of a law, even if it does not pay; as written if the law has none."""
    whole = grouped_program(layer.function, tuple(constants), single=True)
    assert whole is not None
    laws = [each.always for each in GROUP_LAWS if each.name == law]
    program = Partition(with_forms(whole, Conditions(host(), "contract"), laws))
    sources = {part.name: source_of(part) for part in program.parts(1, "contract")}
    return build_scheduled(program, layer.function, sources, 1, "contract", constants)


def chosen(layer: Layer, error: float | None) -> str:
    """The law whose form `build` takes."""
    parts = partition(layer.function, ("W", "b"), conditions=Conditions(host(), "contract", error=error))
    laws = (
        [] if parts.grouped is None else [str(f.attributes.get("te.law", "")) for f in functions(parts.grouped.module)]
    )
    return next((law.strip('"') for law in laws if law), "written")


def times(layer: Layer, random: np.random.Generator) -> dict[str, float]:
    """Map each law of LAWS to the median milliseconds of a call, measured in turns."""
    constants = layer.constants(random)
    x = np.maximum(random.standard_normal((1, layer.channels, layer.rows, layer.columns)), 0).astype(np.float32)
    calls, samples = {}, dict[str, list[float]]()
    for law in LAWS:
        made = kernel(layer, constants, law)
        out = np.empty((1, layer.filters, layer.rows, layer.columns), np.float32)
        calls[law] = made.bound(x, out=[out], threads=1)
        calls[law]()
    for _ in range(ROUNDS):
        for law, call in calls.items():
            start = perf_counter()
            call()
            samples.setdefault(law, []).append(perf_counter() - start)
    return {law: 1e3 * median(each) for law, each in samples.items()}


def errors(layer: Layer, random: np.random.Generator) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield each distribution of the image with the errors by laws, relative to the largest result."""
    constants = layer.constants(random)
    kernels = {law: kernel(layer, constants, law) for law in LAWS}
    for name, draw in DISTRIBUTIONS.items():
        x = draw(random, (1, layer.channels, layer.rows, layer.columns)).astype(np.float32)
        exact = layer.exact(x, constants["W"])
        yield name, {law: float(abs(made(x) - exact).max() / abs(exact).max()) for law, made in kernels.items()}


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("layers", nargs="*", default=LAYERS, help="channels x filters @ rows x columns")
    parser.add_argument("--errors", action="store_true", help="measure errors")
    options = parser.parse_args()
    random = np.random.default_rng(0)
    for text in options.layers:
        layer = Layer(*map(int, text.replace("@", "x").split("x")))
        if options.errors:
            bounds = {law: rounding(layer.channels, transform).probable for law, transform in LAWS.items()}
            for name, measured in [*errors(layer, random), ("bound", bounds)]:
                print(f"{text:16} {name:8}", *(f"{law} {error:.1e}" for law, error in measured.items()), flush=True)
            continue
        ms = times(layer, random)
        gains = (f"{law} {time:.3f} ms {ms['written'] / time:.2f}x" for law, time in ms.items())
        print(f"{text:16}", *gains, f"chosen {chosen(layer, None)}, by error=3e-5 {chosen(layer, 3e-5)}", flush=True)


if __name__ == "__main__":
    main()
