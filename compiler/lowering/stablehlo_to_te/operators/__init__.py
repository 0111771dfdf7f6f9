"""The handlers of StableHLO's ops, by family.

elementwise.py  functions of elements, constants, iota
shapes.py       broadcasts, permutations, slices, padding, concatenation
contraction.py  dot_general, convolution
reductions.py   reduce, reduce_window
indexing.py     gather, dynamic slices
scatters.py     scatter
sorting.py      sort, top_k
control.py      calls, composites, loops, branches
"""

from compiler.lowering.stablehlo_to_te.operators import (
    contraction,
    control,
    elementwise,
    indexing,
    reductions,
    scatters,
    shapes,
    sorting,
)

FAMILIES = (contraction, control, elementwise, indexing, reductions, scatters, shapes, sorting)
"""The modules of handlers; importing them fills the table."""
