"""Operators of the domain ai.onnx.ml, and determinants of small matrices."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, permutations
from math import floor, prod

import numpy as np

from compiler.frontends.onnx.table import Node, Refused, handles
from compiler.te import nn
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr
from compiler.te.index import Index
from compiler.te.nn.common import astype
from compiler.te.tensor import Tensor
from compiler.types.dtypes import DTYPES, is_float

ML = "ai.onnx.ml"
MOST_ROWS = 4
"""The most rows of a matrix whose determinant is written out: 24 products."""


@handles("Binarizer", domain=ML)
def binarizer(node: Node) -> Tensor:
    """1 where x > threshold, else 0, in x's dtype."""
    x, threshold = node.tensor(0), float(node.attribute("threshold", 0.0))
    limit: float | int = threshold
    if not is_float(x.dtype):  # x > 2.5 is x > 2 for integers
        bounds = np.iinfo(DTYPES[x.dtype].array)
        if threshold < bounds.min:
            return compute(x.shape, lambda *i: e.const(1, x.dtype), name=node.name)
        limit = floor(min(threshold, bounds.max))

    def element(*i: Index) -> Expr:
        return e.select(x[i] > e.const(limit, x.dtype), e.const(1, x.dtype), e.const(0, x.dtype))

    return compute(x.shape, element, name=node.name)


@handles("Scaler", domain=ML)
def scaler(node: Node) -> Tensor:
    """(x - offset) * scale along the last axis, as f32."""
    offset, scale = (np.asarray(node.attribute(*d), np.float32) for d in (("offset", [0.0]), ("scale", [1.0])))
    x = astype(node.tensor(0), "f32", f"{node.name}.f32")
    return nn.mul(nn.sub(x, node.as_tensor(offset)), node.as_tensor(scale), name=node.name)


@handles("Det")
def determinant(node: Node) -> Tensor:
    """Determinants of the matrices in the last two dimensions, by Leibniz's formula. Raises Refused above MOST_ROWS."""
    x = node.tensor(0)
    rows = x.shape[-1]
    if rows > MOST_ROWS:
        raise Refused(f"determinants are written out for up to {MOST_ROWS} rows, not {rows}")
    return compute(x.shape[:-2], _leibniz(x, rows), name=node.name)


def _leibniz(x: Tensor, rows: int) -> Callable[..., Expr]:
    """Return the function from a batch index to the sum of signed products of one element of each row and column."""

    def element(*i: Index) -> Expr:
        total: Expr = e.const(0.0, x.dtype)
        for columns in permutations(range(rows)):
            product = prod((x[(*i, r, c)] for r, c in enumerate(columns)), start=e.const(1.0, x.dtype))
            odd = sum(a > b for a, b in combinations(columns, 2)) % 2
            total = total - product if odd else total + product
        return total

    return element
