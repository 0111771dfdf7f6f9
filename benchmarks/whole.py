"""`python -m benchmarks.whole [NAME ...]`: whole networks, built without a trial, beside onnxruntime and OpenVINO.

Batch 1, float32, random weights that are constant in every contender, in turns; results are compared. A network is
written once: what writes its te function writes its ONNX model too. Contenders that are not installed are left out and
named. `--schedule` and `--error` are those of `compiler.build`. With the path of a database the kernel of its records
takes turns with that of no trial, and `--tune SECONDS` tunes each network so long before. `--groups` times the groups
of a network inside it instead, on one thread, beside their bounds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from statistics import median
from types import ModuleType
from typing import Any

import numpy as np

import compiler
from benchmarks.encoder import Call, onnxruntime_call, openvino_call
from benchmarks.further_networks import FURTHER
from benchmarks.networks import (
    Network,
    bert,
    efficientnet_b0,
    mobilenet_v2,
    resnet50,
    unet,
    video,
    whisper,
)
from benchmarks.whole_groups import print_groups
from compiler import te
from compiler.autotune import SearchTask, TuningOptions
from compiler.bench.error_bounds import Array
from compiler.bench.onnx_model import IR_VERSION, OPSET, Graph
from compiler.targets.cpu.ceilings import Arithmetic
from compiler.te.tensor import Tensor

ROUNDS = 9
NETWORKS: dict[str, Callable[..., te.Function]] = {
    "resnet50": resnet50,
    "mobilenet_v2": mobilenet_v2,
    "efficientnet_b0": efficientnet_b0,
    "bert layer": lambda make=None: bert(1, make=make),
    "whisper": whisper,
    "unet": unet,
    "video": video,
    **FURTHER,
}


@dataclass(frozen=True)
class Paired:
    """A value of a network in both forms: the te tensor, and the name that it has in the ONNX model."""

    tensor: Tensor
    name: str

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the te tensor."""
        return tuple(self.tensor.shape)


class Operators:
    """Call an operator of te.nn on paired values, and add its ONNX form, written by the method `_NAME`, to the
    model."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.arrays: dict[str, Array] = {}

    def __getattr__(self, operator: str) -> Callable[..., Paired]:
        def both(*given: Any, **options: Any) -> Paired:
            tensors = [self._each(value, lambda paired: paired.tensor) for value in given]
            named = {name: self._each(value, lambda paired: paired.tensor) for name, value in options.items()}
            tensor = getattr(te.nn, operator)(*tensors, **named)
            write = getattr(self, f"_{operator}")
            names = [self._each(value, lambda paired: paired.name) for value in given]
            own = {name: self._each(value, lambda paired: paired.name) for name, value in options.items()}
            return Paired(tensor, write(tensor, *names, **own))

        return both

    def _each(self, value: Any, of: Callable[[Paired], Any]) -> Any:
        if isinstance(value, list | tuple):
            return type(value)(self._each(member, of) for member in value)
        return of(value) if isinstance(value, Paired) else value

    def held(self, values: object, dtype: type = np.int64) -> str:
        """Add a constant to the model, and return its name."""
        name = f"held{len(self.arrays)}"
        self.arrays[name] = np.array(values, dtype)
        return name

    def _number(self, value: object) -> str:
        return value if isinstance(value, str) else self.graph.scalar(float(value))  # type: ignore[arg-type]

    def _add(self, tensor: Tensor, x: str, y: object) -> str:
        return self.graph("Add", x, self._number(y))

    def _mul(self, tensor: Tensor, x: str, y: object) -> str:
        return self.graph("Mul", x, self._number(y))

    def _matmul(self, tensor: Tensor, x: str, y: str) -> str:
        return self.graph("MatMul", x, y)

    def _relu(self, tensor: Tensor, x: str) -> str:
        return self.graph("Relu", x)

    def _sigmoid(self, tensor: Tensor, x: str) -> str:
        return self.graph("Sigmoid", x)

    def _tanh(self, tensor: Tensor, x: str) -> str:
        return self.graph("Tanh", x)

    def _hardswish(self, tensor: Tensor, x: str) -> str:
        return self.graph("HardSwish", x)

    def _hardsigmoid(self, tensor: Tensor, x: str) -> str:
        return self.graph("HardSigmoid", x, alpha=1 / 6, beta=0.5)

    def _silu(self, tensor: Tensor, x: str) -> str:
        return self.graph("Mul", x, self.graph("Sigmoid", x))

    def _gelu(self, tensor: Tensor, x: str) -> str:
        grown = self.graph("Erf", self.graph("Div", x, self.graph.scalar(2**0.5)))
        return self.graph("Mul", self.graph("Mul", x, self.graph("Add", grown, self._number(1))), self._number(0.5))

    def _clamp(self, tensor: Tensor, x: str, low: float, high: float) -> str:
        return self.graph("Clip", x, self._number(low), self._number(high))

    def _reshape(self, tensor: Tensor, x: str, shape: object) -> str:
        return self.graph("Reshape", x, self.held(shape))

    def _flatten(self, tensor: Tensor, x: str, start: int) -> str:
        return self.graph("Flatten", x, axis=start)

    def _transpose(self, tensor: Tensor, x: str, perm: object) -> str:
        return self.graph("Transpose", x, perm=perm)

    def _concat(self, tensor: Tensor, parts: list[str], axis: int) -> str:
        return self.graph("Concat", *parts, axis=axis)

    def _slice(self, tensor: Tensor, x: str, starts: object, stops: object) -> str:
        return self.graph("Slice", x, self.held(starts), self.held(stops))

    def _depth_to_space(self, tensor: Tensor, x: str, block: int, order: str) -> str:
        return self.graph("DepthToSpace", x, blocksize=block, mode=order)

    def _resize_nearest(self, tensor: Tensor, x: str, size: object) -> str:
        modes = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        return self.graph("Resize", x, "", "", self.held(tensor.shape), **modes)

    def _layer_norm(self, tensor: Tensor, x: str, gamma: str, beta: str) -> str:
        return self.graph("LayerNormalization", x, gamma, beta, axis=-1, epsilon=1e-5)

    def _attention(self, tensor: Tensor, q: str, k: str, v: str, causal: bool = False) -> str:
        scores = self.graph("MatMul", q, self.graph("Transpose", k, perm=[0, 2, 1]))
        scores = self.graph("Mul", scores, self._number(tensor.shape[-1] ** -0.5))
        if causal:
            later = np.triu(np.full((tensor.shape[-2],) * 2, np.finfo(np.float32).min), 1)
            scores = self.graph("Add", scores, self.held(later, np.float32))
        return self.graph("MatMul", self.graph("Softmax", scores, axis=-1), v)

    def _mean(self, tensor: Tensor, x: str, axes: tuple[int, ...]) -> str:
        return self.graph("ReduceMean", x, axes=list(axes), keepdims=0)

    def _global_avg_pool(self, tensor: Tensor, x: str) -> str:
        return self.graph("GlobalAveragePool", x)

    def _avg_pool2d(self, tensor: Tensor, x: str, kernel: int, stride: int) -> str:
        return self.graph("AveragePool", x, kernel_shape=[kernel] * 2, strides=[stride] * 2)

    def _max_pool2d(self, tensor: Tensor, x: str, kernel: int, stride: int, padding: int = 0) -> str:
        return self._pooled(x, 2, kernel, stride, padding)

    def _max_pool3d(self, tensor: Tensor, x: str, kernel: int, stride: int, padding: int = 0) -> str:
        return self._pooled(x, 3, kernel, stride, padding)

    def _pooled(self, x: str, rank: int, kernel: int, stride: int, padding: int) -> str:
        sizes = {"kernel_shape": [kernel] * rank, "strides": [stride] * rank, "pads": [padding] * 2 * rank}
        return self.graph("MaxPool", x, **sizes)

    def _conv1d(self, tensor: Tensor, x: str, w: str, bias: str | None = None, **options: Any) -> str:
        return self._convolved(1, [x, w, bias], **options)

    def _conv2d(self, tensor: Tensor, x: str, w: str, bias: str | None = None, **options: Any) -> str:
        return self._convolved(2, [x, w, bias], **options)

    def _conv3d(self, tensor: Tensor, x: str, w: str, bias: str | None = None, **options: Any) -> str:
        return self._convolved(3, [x, w, bias], **options)

    def _depthwise_conv2d(self, tensor: Tensor, x: str, w: str, stride: Any = 1, padding: Any = 0) -> str:
        return self._convolved(2, [x, w], stride, padding, groups=tensor.shape[1])

    def _conv2d_transpose(self, tensor: Tensor, x: str, w: str, stride: int = 1) -> str:
        return self.graph("ConvTranspose", x, w, strides=[stride] * 2)

    def _convolved(
        self,
        rank: int,
        inputs: list[str | None],
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> str:
        sizes = ([v] * rank if isinstance(v, int) else list(v) for v in (stride, padding, dilation))
        strides, pads, dilations = sizes
        given = {"strides": strides, "pads": pads * (2 * rank // len(pads)), "dilations": dilations, "group": groups}
        return self.graph("Conv", *(name for name in inputs if name), **given)


class OnnxNetwork(Network):
    """A network that is written as a te function and as an ONNX model at once."""

    def __init__(self, name: str, onnx: ModuleType) -> None:
        super().__init__(name)
        self.graph = Graph(onnx)
        self.nn = Operators(self.graph)

    def input(self, name: str, *shape: int, dtype: str = "f32") -> Any:
        """Add an input to both forms, and return it paired."""
        return Paired(super().input(name, *shape, dtype=dtype), name)

    def function(self, output: Any) -> te.Function:
        """Set the output of both forms, and return the te function."""
        self.graph.end(output.name)
        return super().function(output.tensor)

    def model(self, onnx: ModuleType, arrays: Mapping[str, Array]) -> bytes:
        """The serialized model, weights its initializers."""
        helper, f32 = onnx.helper, onnx.TensorProto.FLOAT
        initializers = [
            onnx.numpy_helper.from_array(array, name) for name, array in {**arrays, **self.nn.arrays}.items()
        ]
        inputs = [tensor for tensor in self.inputs if is_data(tensor)]
        given = [helper.make_tensor_value_info(tensor.name, f32, list(tensor.shape)) for tensor in inputs]
        outputs = [helper.make_tensor_value_info("result", f32, None)]
        graph_proto = helper.make_graph(self.graph.nodes, self.name, given, outputs, initializers)
        made = helper.make_model(graph_proto, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
        text: bytes = made.SerializeToString()
        return text


def is_data(tensor: Tensor) -> bool:
    """Whether an input is given at each call: its name begins with X. The others are weights."""
    return tensor.name.startswith("X")


def peers(network: OnnxNetwork, onnx: ModuleType, arrays: Mapping[str, Array], threads: int) -> dict[str, Call]:
    """The runtimes that are installed, each as a call of a network whose weights are `arrays`."""
    makers = {"onnxruntime": onnxruntime_call, "openvino": openvino_call}
    return {
        peer: make(network.model(onnx, arrays), threads) for peer, make in makers.items() if installed(peer) is not None
    }


def weights_of(function: te.Function) -> dict[str, Array]:
    """Draw normal weights for the inputs that are no data, divided by the root of the number of products that a result
    sums up, so that activations stay near 1."""
    random, weights = np.random.default_rng(0), {}
    for tensor in function.inputs:
        if not is_data(tensor):
            shape = tuple(tensor.shape)
            summed = np.prod(shape[1:]) if len(shape) > 2 else shape[0] if len(shape) == 2 else 100
            weights[tensor.name] = (random.standard_normal(shape) / np.sqrt(summed)).astype(np.float32)
    return weights


def measured(name: str, schedule: str, threads: int, error: float | None, seconds: float | None) -> None:
    """Build a network in every form, take turns, print."""
    onnx = installed("onnx")
    written = [OnnxNetwork(name.replace(" ", "_"), onnx)] if onnx else []
    function = NETWORKS[name](make=lambda _: written[0]) if written else NETWORKS[name]()
    arrays = weights_of(function)
    shape = next(tuple(tensor.shape) for tensor in function.inputs if tensor.name == "X")
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    if seconds is not None:
        task = SearchTask(function, threads=threads, constants=list(arrays), error=error)
        task.tune(TuningOptions(trials=None, seconds=seconds, database=schedule, show=True))
    kernels: dict[str, Call] = {}
    for what, given in {"strata": schedule, **({"no trial": "auto"} if schedule != "auto" else {})}.items():
        start = time.perf_counter()
        kernels[what] = compiler.build(function, threads=threads, constants=arrays, schedule=given, error=error)
        print(f"{name}: {what} built in {time.perf_counter() - start:.2f} s")
    _turns(kernels | (peers(written[0], onnx, arrays, threads) if onnx else {}), x, threads)


def _turns(calls: dict[str, Call], x: Array, threads: int) -> None:
    expected = [np.array(call(x)) for call in calls.values()][-1]
    times: dict[str, list[float]] = {name: [] for name in calls}
    ceiling, rates = Arithmetic(threads), list[float]()
    for _ in range(ROUNDS):
        rates.append(ceiling.probe(0.02).rate)
        for name, call in calls.items():
            call(x)
            start = time.perf_counter()
            output = call(x)
            times[name].append(1e3 * (time.perf_counter() - start))
            np.testing.assert_allclose(output, expected, rtol=2e-2, atol=2e-2 * float(np.abs(expected).max()))
    ours = median(times["strata"])
    for name, every in times.items():
        shown = f"{median(every):8.2f} ms ({min(every):.2f} to {max(every):.2f})"
        print(f"  {name:12} {shown}  ours / it {ours / median(every):.2f}", flush=True)


@cache
def installed(name: str) -> ModuleType | None:
    """Import a package; None, after one message, if it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        print(f"{name} is not installed")
        return None


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", default=list(NETWORKS))
    parser.add_argument("--schedule", default="auto")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--error", type=float)
    parser.add_argument("--tune", type=float, metavar="SECONDS", help="tune each network into the database before")
    parser.add_argument("--groups", action="store_true", help="time groups inside the network, beside their bounds")
    options = parser.parse_args()
    for name in options.networks:
        if options.groups:
            function = NETWORKS[name]()
            print_groups(name, function, weights_of(function), options.schedule, options.error)
            continue
        measured(name, options.schedule, options.threads, options.error, options.tune)


if __name__ == "__main__":
    main()
