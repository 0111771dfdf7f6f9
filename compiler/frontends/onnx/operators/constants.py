"""Tensors that depend on shapes only."""

from __future__ import annotations

import numpy as np
from onnx import helper

from compiler.frontends.onnx.table import Array, Node, Refused, handles, shape_of
from compiler.frontends.onnx.types import DTYPE_OF
from compiler.te.tensor import Tensor
from compiler.types.dtypes import DTYPES


@handles("EyeLike")
def eye_like(node: Node) -> Array:
    """A constant matrix of the input's shape, 1 where column - row is `k`, else 0; by default of the input's dtype.
    Raises Refused for a dtype that te lacks."""
    x = node.value(0)
    rows, columns = shape_of(x)
    target_type = node.attribute("dtype")
    if target_type is not None and target_type not in DTYPE_OF:
        raise Refused("its result is of a dtype that te lacks")
    dtype = DTYPES[x.dtype].array if isinstance(x, Tensor) else x.dtype
    if target_type is not None:
        dtype = helper.tensor_dtype_to_np_dtype(target_type)
    return np.eye(rows, columns, node.attribute("k", 0), dtype)
