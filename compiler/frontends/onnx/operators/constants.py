"""Tensors that shapes alone decide."""

from __future__ import annotations

import numpy as np
from onnx import helper

from compiler.frontends.onnx.table import Node, Refused, handles, shape_of
from compiler.frontends.onnx.types import DTYPE_OF, Array
from compiler.te.tensor import Tensor
from compiler.types.elements import DTYPES


@handles("EyeLike")
def eye_like(node: Node) -> Array:
    """Ones on a diagonal of the input's shape: known ahead."""
    x = node.value(0)
    rows, columns = shape_of(x)
    stated = node.attribute("dtype")
    if stated is not None and stated not in DTYPE_OF:
        raise Refused("its result is of a dtype that te lacks")
    dtype = DTYPES[x.dtype].array if isinstance(x, Tensor) else x.dtype
    if stated is not None:
        dtype = helper.tensor_dtype_to_np_dtype(stated)
    return np.eye(rows, columns, node.attribute("k", 0), dtype)
