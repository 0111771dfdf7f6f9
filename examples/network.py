"""Writes examples/network.onnx: a small residual network for images of 32x32, with weights drawn from a seed.

python -m examples.network
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, checker, helper, numpy_helper, save

PATH = Path(__file__).with_name("network.onnx")
OPSET, IR_VERSION, SEED = 17, 10, 20
CLASSES = 10


@dataclass
class Graph:
    """The nodes and weights so far; each method adds some and gives the name of their result."""

    random: np.random.Generator
    nodes: list[Any] = field(default_factory=list)
    weights: list[Any] = field(default_factory=list)

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """The result of an operator."""
        name = f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    def weight(self, *shape: int, scale: float = 1.0, mean: float = 0.0) -> str:
        """An initialiser with random elements."""
        name = f"weight_{len(self.weights)}"
        array = (self.random.standard_normal(shape) * scale + mean).astype(np.float32)
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def conv(self, x: str, filters: int, channels: int, size: int = 3, stride: int = 1) -> str:
        """A convolution and its norm."""
        scale = (2.0 / (channels * size * size)) ** 0.5
        pads, steps = [size // 2] * 4, [stride] * 2
        y = self.add("Conv", x, self.weight(filters, channels, size, size, scale=scale), pads=pads, strides=steps)
        spread = [self.weight(filters, scale=0.1, mean=mean) for mean in (1.0, 0.0, 0.0)]
        variance = f"weight_{len(self.weights)}"
        drawn = self.random.uniform(0.5, 1.5, filters).astype(np.float32)
        self.weights.append(numpy_helper.from_array(drawn, variance))
        return self.add("BatchNormalization", y, *spread, variance)

    def block(self, x: str, filters: int, channels: int) -> str:
        """A residual block; where the channels grow, at half the size."""
        stride = 1 if filters == channels else 2
        y = self.add("Relu", self.conv(x, filters, channels, stride=stride))
        y = self.conv(y, filters, filters)
        side = x if stride == 1 else self.conv(x, filters, channels, size=1, stride=2)
        return self.add("Relu", self.add("Add", y, side))


def network() -> ModelProto:
    """The model: an image [N, 3, 32, 32] to shares of ten classes."""
    graph = Graph(np.random.default_rng(SEED))
    x = graph.add("Relu", graph.conv("image", 24, 3))
    for filters, channels in ((24, 24), (48, 24), (48, 48)):
        x = graph.block(x, filters, channels)
    x = graph.add("Flatten", graph.add("GlobalAveragePool", x))
    x = graph.add("Gemm", x, graph.weight(CLASSES, 48, scale=0.2), graph.weight(CLASSES), transB=1)
    graph.nodes.append(helper.make_node("Softmax", [x], ["classes"], axis=1))
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 3, 32, 32])
    classes = helper.make_tensor_value_info("classes", TensorProto.FLOAT, ["N", CLASSES])
    made = helper.make_graph(graph.nodes, "network", [image], [classes], graph.weights)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    checker.check_model(model)
    return model


if __name__ == "__main__":
    save(network(), PATH)
