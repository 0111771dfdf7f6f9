"""Nodes whose inputs are known: ONNX's reference evaluator computes them while the model is read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import NodeProto
from onnx.reference import ReferenceEvaluator

from compiler.frontends.onnx.table import Refused
from compiler.frontends.onnx.types import Array

MOST = 1 << 31
"""The most bytes that a value known ahead may have."""
_GROWING = {"ConstantOfShape": 0, "Expand": 1}
"""Operators whose result has the shape that an input states, and the position of that input."""


def evaluated(node: NodeProto, values: Sequence[Array | None], opsets: Mapping[str, int]) -> list[Any]:
    """The results of a node whose inputs are known. Raises Refused where they do not fit, or would be too large."""
    _check_size(node, values)
    feeds = {name: value for name, value in zip(node.input, values, strict=True) if name and value is not None}
    try:
        with np.errstate(all="ignore"):
            evaluator = ReferenceEvaluator(node, opsets=dict(opsets))
            outputs = evaluator.run(None, feeds)
    except MemoryError as error:
        raise Refused("its result does not fit into memory") from error
    except Exception as error:  # whatever the evaluator of ONNX makes of inputs that do not fit
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise Refused(f"ONNX's evaluator does not take its inputs: {said[0][:200]}") from error
    return [value if isinstance(value, list | tuple) else np.asarray(value) for value in outputs]


def _check_size(node: NodeProto, values: Sequence[Array | None]) -> None:
    shape: list[int] = []
    if node.op_type in _GROWING and len(values) > _GROWING[node.op_type]:
        stated = values[_GROWING[node.op_type]]
        shape = [] if stated is None else [int(n) for n in stated.reshape(-1)]
    elif node.op_type == "Tile" and all(value is not None for value in values):
        first, repeats = values[0], values[1]
        assert first is not None and repeats is not None
        shape = [*first.shape, *(int(n) for n in repeats.reshape(-1))]
    elif node.op_type == "Range" and all(value is not None for value in values):
        start, stop, step = (float(value.reshape(())) for value in values if value is not None)
        shape = [max(0, math.ceil((stop - start) / step))] if step else []
    if 8 * math.prod(abs(n) for n in shape) > MOST:
        raise Refused(f"its result, of shape {shape}, is too large to be computed ahead")
