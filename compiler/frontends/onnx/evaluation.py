"""Constant folding: ONNX's reference evaluator computes nodes with constant inputs during import."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import NodeProto
from onnx.reference import ReferenceEvaluator

from compiler.frontends.onnx.table import Array, Refused

MAX_BYTES = 1 << 31
"""The largest value that is folded, in bytes at 8 per element."""
_GROWING = {"ConstantOfShape": 0, "Expand": 1}
"""Map each operator with an input that holds the result's shape to the position of that input."""


def evaluate(node: NodeProto, values: Sequence[Array | None], opsets: Mapping[str, int]) -> list[Any]:
    """Evaluate a node for constant inputs, None if omitted, with the opsets by domain; return its outputs, each an
    array, or a list if a sequence. Raises Refused for invalid inputs, and for results that are too large."""
    _check_size(node, values)
    feeds = {name: value for name, value in zip(node.input, values, strict=True) if name and value is not None}
    try:
        with np.errstate(all="ignore"):
            evaluator = ReferenceEvaluator(node, opsets=dict(opsets))
            outputs = evaluator.run(None, feeds)
    except MemoryError as error:
        raise Refused("its result does not fit into memory") from error
    except Exception as error:  # ONNX's evaluator raises any type for invalid inputs
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise Refused(f"ONNX's evaluator does not take its inputs: {lines[0][:200]}") from error
    return [value if isinstance(value, list | tuple) else np.asarray(value) for value in outputs]


def _check_size(node: NodeProto, inputs: Sequence[Array | None]) -> None:
    shape: list[int] = []
    if node.op_type in _GROWING and len(inputs) > _GROWING[node.op_type]:
        shape_input = inputs[_GROWING[node.op_type]]
        shape = [] if shape_input is None else [int(n) for n in shape_input.reshape(-1)]
    elif node.op_type == "Tile" and all(value is not None for value in inputs):
        first, repeats = inputs[0], inputs[1]
        assert first is not None and repeats is not None
        shape = [*first.shape, *(int(n) for n in repeats.reshape(-1))]
    elif node.op_type == "Range" and all(value is not None for value in inputs):
        start, stop, step = (float(value.reshape(())) for value in inputs if value is not None)
        shape = [max(0, math.ceil((stop - start) / step))] if step else []
    if 8 * math.prod(abs(n) for n in shape) > MAX_BYTES:
        raise Refused(f"its result, of shape {shape}, is too large to be computed ahead")
