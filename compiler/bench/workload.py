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
"""Runs a contender on the arrays it is bound to; returns the result."""


@dataclass(frozen=True)
class Input:
    """A float32 input, normally distributed around `mean` with standard deviation `spread`."""

    name: str
    shape: tuple[int, ...]
    spread: float = 1.0
    mean: float = 0.0

    def draw(self, random: np.random.Generator) -> Array:
        """New random elements."""
        normal = random.standard_normal(self.shape, dtype=np.float32)
        return normal * np.float32(self.spread) + np.float32(self.mean)


@dataclass(frozen=True)
class Workload:
    """A function of float32 arrays with one result.

    compute: the function in te, of one placeholder an input.
    reference: the function in float64, with the error that float32 may make.
    numpy: binds numpy's best formulation to inputs and an output; buffers it needs are made there, outside the time.
    torch: the same function of torch tensors, given the torch module; imported only by who measures it.
    flops: floating-point operations, an fma being two; what an elementary function needs is not counted.
    limit: what bounds a perfect implementation, and so which ceiling the result is put beside.
    onnx: the same as a model, given what adds a node to it and the names of the inputs; none where ONNX lacks it.
    family: what it is called in the table of workloads, which names its schedule; none for one that is in no table.
    constants: the inputs that never change, weights; only what is made of these may be prepared before the time.

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
        """The work of one run, in units of the ceiling: operations or bytes."""
        return self.flops if self.limit == "flops" else self.bytes

    def function(self) -> Function:
        """The te function."""
        from compiler import te

        inputs = [te.placeholder(i.shape, "f32", name=i.name) for i in self.inputs]
        return te.function(self.name, inputs, self.compute(*inputs))

    def draw(self, seed: int) -> list[Array]:
        """New random inputs."""
        random = np.random.default_rng(seed)
        return [i.draw(random) for i in self.inputs]

    def expected(self, inputs: Sequence[Array]) -> Bounded:
        """The reference result of inputs."""
        return self.reference(*(exact(array) for array in inputs))


def by_numpy(function: Callable[..., object], *buffers: tuple[int, ...]) -> Callable[[Sequence[Array], Array], Step]:
    """A numpy contender from a function `f(out, *buffers, *inputs)` that fills `out`; the buffers are allocated before
    the timing, with zeros."""

    def bind(inputs: Sequence[Array], out: Array) -> Step:
        arrays = (out, *(np.zeros(shape, np.float32) for shape in buffers), *inputs)

        def step() -> Array:
            function(*arrays)
            return out

        return step

    return bind
