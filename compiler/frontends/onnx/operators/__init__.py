"""The handlers of ONNX's operators: `HANDLERS` has all of them.

constants.py       tensors that shapes alone decide
contraction.py     matrix products, Einsum
convolution.py     convolutions, and their windows
elementwise.py     arithmetic, activations, comparisons, casts
indexing.py        reads at indices, selections
normalisation.py   norms, softmax
pooling.py         pooling
quantised.py       quantised tensors, products of them
reduction.py       reductions, running sums, the greatest and the least
shape.py           operators that move elements
"""

from importlib import import_module

from compiler.frontends.onnx.table import HANDLERS as HANDLERS

FAMILIES = (
    "constants",
    "contraction",
    "convolution",
    "elementwise",
    "indexing",
    "normalisation",
    "pooling",
    "quantised",
    "reduction",
    "shape",
)
for family in FAMILIES:
    import_module(f"compiler.frontends.onnx.operators.{family}")
