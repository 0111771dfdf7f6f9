"""`Workload`: a function to measure, defined for the compiler, the reference and the contenders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from compiler.bench.error_bounds import Array, Bounded, exact

if TYPE_CHECKING:
    from compiler.te import Function, Tensor

Step = Callable[[], Array]
"""Function that runs a contender on the arrays that it is bound to, and returns the result."""


@dataclass(frozen=True)
class Input:
    """A float32 input, normally distributed around `mean` with standard deviation `spread`."""

    name: str
    shape: tuple[int, ...]
    spread: float = 1.0
    mean: float = 0.0

    def draw(self, random: np.random.Generator) -> Array:
        """Draw a float32 array of the shape."""
        normal = random.standard_normal(self.shape, dtype=np.float32)
        return normal * np.float32(self.spread) + np.float32(self.mean)


@dataclass(frozen=True)
class Workload:
    """A function of float32 arrays with one result, of `shape`; `what` describes it for people.

    compute: the function in te, of one placeholder an input.
    reference: the function in float64, with bounds on the error of float32.
    numpy: binds numpy's best formulation to inputs and an output; its buffers are allocated there, before the timing.
    torch: the function of torch tensors; its first argument is the torch module.
    flops: floating-point operations; an fma counts as two, the operations inside elementary functions do not count.
    limit: what limits a perfect implementation, arithmetic (`flops`) or memory (`bytes`); it selects the ceiling.
    onnx: adds the function to an ONNX `Graph`, given the inputs' names; None if ONNX lacks an operator.
    family: the name in the table of families, which selects its schedule; empty for a workload in no table.
    constants: the inputs that never change, such as weights; values that depend only on them may be computed before.

    >>> workload = strata.bench.workloads.find("matmul:4x8x2")
    >>> workload.name, workload.shape, workload.flops, workload.bytes
    ('matmul_4x8x2', (4, 2), 128, 224)
    """

    name: str
    what: str
    inputs: tuple[Input, ...]
    shape: tuple[int, ...]
    compute: Callable[..., Tensor]
    reference: Callable[..., Bounded]
    numpy: Callable[[Sequence[Array], Array], Step]
    torch: Callable[..., Any]
    flops: int
    limit: Literal["flops", "bytes"] = "flops"
    onnx: Callable[..., str] | None = None
    family: str = ""
    constants: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        """The bytes of inputs and result, each counted once."""
        return 4 * (sum(prod(i.shape) for i in self.inputs) + prod(self.shape))

    @property
    def work(self) -> int:
        """The work of one run, in the units of `limit`: operations or bytes."""
        return self.flops if self.limit == "flops" else self.bytes

    def function(self) -> Function:
        """The workload as a te function with a placeholder for each input."""
        from compiler import te

        inputs = [te.placeholder(i.shape, "f32", name=i.name) for i in self.inputs]
        return te.function(self.name, inputs, self.compute(*inputs))

    def draw(self, seed: int) -> list[Array]:
        """Draw random arrays for the inputs, in order; the same for the same seed."""
        random = np.random.default_rng(seed)
        return [i.draw(random) for i in self.inputs]

    def expected(self, inputs: Sequence[Array]) -> Bounded:
        """Compute the reference result of inputs in float64, with error bounds."""
        return self.reference(*(exact(array) for array in inputs))


def by_numpy(function: Callable[..., object], *buffers: tuple[int, ...]) -> Callable[[Sequence[Array], Array], Step]:
    """Return the binding of numpy for a function `f(out, *buffers, *inputs)` that fills `out`; `buffers` are shapes of
    temporaries, which are allocated once, before the timing, with zeros."""

    def bind(inputs: Sequence[Array], out: Array) -> Step:
        arrays = (out, *(np.zeros(shape, np.float32) for shape in buffers), *inputs)

        def step() -> Array:
            function(*arrays)
            return out

        return step

    return bind
