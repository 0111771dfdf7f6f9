"""The handlers of ONNX's operators: `HANDLERS` has all of them.

attention.py       attention
classical.py       scaling and thresholds of ai.onnx.ml, small determinants
constants.py       tensors that shapes alone decide
contraction.py     matrix products, Einsum
convolution.py     convolutions, and their windows
elementwise.py     arithmetic, activations, comparisons, casts
fourier.py         Fourier transforms
indexing.py        reads at indices, selections
normalisation.py   norms, softmax
pooling.py         pooling
quantised.py       quantised tensors, products of them
recurrent.py       RNN, GRU and LSTM, unrolled
reduction.py       reductions, running sums, the greatest and the least
resizing.py        tensors at another size
shape.py           operators that move elements
"""

from importlib import import_module
from pkgutil import iter_modules

from compiler.frontends.onnx.table import HANDLERS as HANDLERS

for family in iter_modules(__path__):
    import_module(f"{__name__}.{family.name}")
