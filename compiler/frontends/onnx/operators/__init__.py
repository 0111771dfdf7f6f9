"""The handlers of ONNX's operators: `HANDLERS` has all of them.

attention.py       attention
classical.py       scaling and thresholds of ai.onnx.ml, small determinants
constants.py       tensors that depend on shapes only
contraction.py     matrix products, Einsum
convolution.py     convolutions, and the windows of convolutions and pooling
elementwise.py     arithmetic, activations, comparisons, casts
fourier.py         Fourier transforms
indexing.py        gathers, TopK, OneHot
normalisation.py   norms, softmax
pooling.py         pooling
quantised.py       quantisation, products of quantised tensors
recurrent.py       RNN, GRU and LSTM, unrolled
reduction.py       reductions, scans, ArgMax and ArgMin
resizing.py        Resize, Upsample, GridSample
shape.py           Reshape, Concat, Slice and other moves of elements
"""

from importlib import import_module
from pkgutil import iter_modules

from compiler.frontends.onnx.table import HANDLERS as HANDLERS

for family in iter_modules(__path__):
    import_module(f"{__name__}.{family.name}")
