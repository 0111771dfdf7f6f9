"""The te forms of torch's operators, by family.

attention.py      scaled dot-product attention
contraction.py    matrix products
convolution.py    convolutions, transposed ones
creation.py       filled tensors, ranges, copies
distances.py      distances of rows, binary search, histograms
elements.py       elementwise operators and helpers of all families
indexing.py       reads at data-dependent indices
normalisation.py  softmax, batch, layer and group norms
ordering.py       sorting, cumulative sums
pooling.py        max and average pooling
pointwise.py      arithmetic, mathematics, comparisons
reduction.py      sums, extremes, argmax, variances
resize.py         resize of images, reflection and replication padding
scatter.py        writes at data-dependent indices
views.py          views, slices, concatenation
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
"""The modules that register operators."""
