"""Shrink an ONNX model: nodes, outputs and weights are removed as long as it is valid and the test holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from compiler.reduce.delta import shortened
from compiler.support.errors import InputError


def reduce_model(model: Any, holds: Callable[[Any], bool]) -> Any:
    """Return a smaller model for which `holds` is true. model: an `onnx.ModelProto`, which is not changed. `holds` is
    called with models that pass the checker of onnx.

    A tensor whose node is removed becomes an input; the outputs are those that remain and tensors that no node reads;
    weights that no node reads are removed. Raises InputError if `holds` is false for `model`.
    """
    import onnx

    inferred = onnx.shape_inference.infer_shapes(model)
    types = {value.name: value for value in (*inferred.graph.value_info, *inferred.graph.output, *inferred.graph.input)}

    def extracted(kept: Sequence[int]) -> Any:
        """Return the model of the nodes at positions `kept`: tensors that they read and do not compute are its inputs;
        outputs of the model that they compute, and tensors that none of them reads, its outputs."""
        graph = model.graph
        nodes = [graph.node[number] for number in kept]
        computed = {name for node in nodes for name in node.output}
        used = [name for node in nodes for name in _reads(node) if name]
        weights = [tensor for tensor in graph.initializer if tensor.name in used]
        stated = {tensor.name for tensor in weights} | computed
        inputs = [types[name] for name in dict.fromkeys(used) if name not in stated and name in types]
        wanted = {value.name for value in graph.output}
        results = [name for node in nodes for name in node.output if name in types]
        outputs = [types[name] for name in results if name in wanted or name not in used]
        small = onnx.helper.make_graph(nodes, graph.name, inputs, outputs, weights)
        return onnx.helper.make_model(
            small,
            opset_imports=model.opset_import,
            ir_version=model.ir_version,
            functions=model.functions,
        )

    def is_held(kept: list[int]) -> bool:
        if not kept:
            return False
        small = extracted(kept)
        try:
            onnx.checker.check_model(small)
        except onnx.checker.ValidationError:
            return False
        return holds(small)

    count = len(model.graph.node)
    if not is_held(list(range(count))):
        raise InputError("the test does not hold for the model")
    return extracted(shortened(range(count), is_held))


def _reads(node: Any) -> list[str]:
    """The names of the tensors that a node reads, also in the graphs of its attributes."""
    inner = [graph for attribute in node.attribute for graph in (attribute.g, *attribute.graphs)]
    return [*node.input, *(name for graph in inner for each in graph.node for name in _reads(each))]
