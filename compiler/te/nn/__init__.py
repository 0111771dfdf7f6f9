"""Named operators: plain functions that build te computes.

contraction.py   matmul, batch_matmul, dense, conv2d
pooling.py       max_pool2d, avg_pool2d
elementwise.py   activations and arithmetic with numpy's broadcasting
reduction.py     sum, max, min, mean, prod, softmax, layer_norm
shape.py         transpose, pad
"""

from compiler.te.nn.contraction import batch_matmul, conv2d, dense, matmul
from compiler.te.nn.elementwise import (
    add,
    div,
    exp,
    gelu,
    log,
    maximum,
    minimum,
    mul,
    neg,
    pow,
    relu,
    sigmoid,
    silu,
    sqrt,
    sub,
    tanh,
)
from compiler.te.nn.pooling import avg_pool2d, max_pool2d
from compiler.te.nn.reduction import layer_norm, max, mean, min, prod, softmax, sum
from compiler.te.nn.shape import pad, transpose

__all__ = [
    "add",
    "avg_pool2d",
    "batch_matmul",
    "conv2d",
    "dense",
    "div",
    "exp",
    "gelu",
    "layer_norm",
    "log",
    "matmul",
    "max",
    "max_pool2d",
    "maximum",
    "mean",
    "min",
    "minimum",
    "mul",
    "neg",
    "pad",
    "pow",
    "prod",
    "relu",
    "sigmoid",
    "silu",
    "softmax",
    "sqrt",
    "sub",
    "sum",
    "tanh",
    "transpose",
]
