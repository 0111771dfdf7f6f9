"""Workloads as ONNX models, and sessions of onnxruntime that run them; both packages are imported lazily.

onnxruntime runs its CPU provider: MLAS kernels, which pack initializers when a session is created.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from compiler.bench.error_bounds import Array
from compiler.bench.workload import Step, Workload
from compiler.support.errors import TargetError

OPSET, IR_VERSION = 17, 10
"""The first opset with LayerNormalization, and an IR version that onnxruntime reads since 1.18."""
LARGEST = 2 << 30
"""The maximum bytes of a model: the limit of protobuf's messages."""
RESULT = "result"


@dataclass
class Graph:
    """The nodes of a model under construction; a call adds a node and returns the name of its result."""

    onnx: ModuleType
    nodes: list[Any] = field(default_factory=list)

    def __call__(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with an operator, input names and attributes; return the name of its result."""
        return self._add(operator, inputs, f"t{len(self.nodes)}", attributes)

    def scalar(self, value: float) -> str:
        """Add a float32 constant; return its name."""
        return self("Constant", value_float=value)

    def end(self, value: str) -> None:
        """Set the result of the model to the value of a name."""
        self._add("Identity", (value,), RESULT, {})

    def _add(self, operator: str, inputs: Sequence[str], name: str, attributes: dict[str, Any]) -> str:
        self.nodes.append(self.onnx.helper.make_node(operator, list(inputs), [name], **attributes))
        return name


def bind(workload: Workload, threads: int, inputs: Sequence[Array], out: Array, packed: bool) -> Step:
    """Return a step that runs the workload's model on the inputs and writes `out`.

    packed: the constants are in the model, where the session packs them; otherwise all inputs are fed in each run.
    Raises TargetError without onnxruntime or onnx, for a workload without an ONNX form, and for packed constants of 2
    GiB or more.
    """
    runtime, onnx = import_package("onnxruntime"), import_package("onnx")
    initializers = {
        i.name: a for i, a in zip(workload.inputs, inputs, strict=True) if packed and i.name in workload.constants
    }
    given = {i.name: a for i, a in zip(workload.inputs, inputs, strict=True) if i.name not in initializers}
    session = runtime.InferenceSession(
        model(onnx, workload, initializers), _options(runtime, threads), providers=["CPUExecutionProvider"]
    )
    binding = session.io_binding()
    for name, array in given.items():
        binding.bind_input(name, "cpu", 0, np.float32, array.shape, array.ctypes.data)
    binding.bind_output(RESULT, "cpu", 0, np.float32, out.shape, out.ctypes.data)

    def step() -> Array:
        session.run_with_iobinding(binding)
        return out

    return step


def model(onnx: ModuleType, workload: Workload, initializers: dict[str, Array]) -> bytes:
    """The serialised ONNX model of a workload; the inputs in `initializers` become initialisers. Raises TargetError for
    a workload without an ONNX form, or with constants of 2 GiB or more."""
    if workload.onnx is None:
        raise TargetError(f"{workload.name} has no form in ONNX")
    if sum(array.nbytes for array in initializers.values()) >= LARGEST:
        raise TargetError(f"the constants of {workload.name} are larger than an ONNX model can be")
    graph = Graph(onnx)
    graph.end(workload.onnx(graph, *(i.name for i in workload.inputs)))
    helper, f32 = onnx.helper, onnx.TensorProto.FLOAT
    graph_proto = helper.make_graph(
        graph.nodes,
        workload.name,
        [helper.make_tensor_value_info(i.name, f32, i.shape) for i in workload.inputs if i.name not in initializers],
        [helper.make_tensor_value_info(RESULT, f32, workload.shape)],
        [onnx.numpy_helper.from_array(array, name) for name, array in initializers.items()],
    )
    proto = helper.make_model(graph_proto, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    onnx.checker.check_model(proto)
    text: bytes = proto.SerializeToString()
    return text


def _options(runtime: ModuleType, threads: int) -> Any:
    """Session options: all optimisations, one operator at a time, `threads` threads."""
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.execution_mode = runtime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = 3  # errors only
    return options


def import_package(name: str) -> ModuleType:
    """Import a package of contenders. Raises TargetError if it is not installed."""
    try:
        return import_module(name)
    except ImportError as error:
        raise TargetError(f"{name} is not installed: pip install 'strata-compiler[bench]'") from error
