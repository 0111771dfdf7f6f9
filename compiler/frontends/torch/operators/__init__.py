"""The te forms of operators, by family.

attention.py      scaled dot-product attention
contraction.py    matrix products
convolution.py    convolutions, transposed ones
creation.py       tensors of numbers, ranges, copies, conversions
distances.py      distances of rows, places among sorted numbers and bins
elements.py       what the families share: operators of elements
indexing.py       reads at indices that a tensor holds
normalisation.py  softmax, batch, layer and group norms
ordering.py       sorting, cumulative sums
pooling.py        maxima and means over windows
pointwise.py      arithmetic, mathematics, comparisons
reduction.py      sums, extremes, their places, variances
resize.py         images at another size, pads that repeat elements
scatter.py        writes at indices that a tensor holds
views.py          operators that move elements
"""

from compiler.frontends.torch.operators import (
    attention,
    contraction,
    convolution,
    creation,
    distances,
    indexing,
    normalisation,
    ordering,
    pointwise,
    pooling,
    reduction,
    resize,
    scatter,
    views,
)

FAMILIES = (
    pointwise,
    contraction,
    convolution,
    attention,
    normalisation,
    pooling,
    reduction,
    ordering,
    resize,
    indexing,
    scatter,
    distances,
    views,
    creation,
)
"""The files of the table."""
