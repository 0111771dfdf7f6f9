"""Laws: rewrites of graphs that preserve every result, bit for bit up to the payloads of NaN. Each is a function of a
graph, and returns the same object if it does not apply.

dead_nodes.py      nodes that no result needs
extents.py         axes of extent 1
identities.py      copies
views.py           reads of views: permutations, reshapes, slices
concatenations.py  reads inside one part of a concatenation
parts.py           computes of a concatenation whose parts are read separately
splits.py          axes that are read by quotients and remainders
computed_views.py  values that are read through one view only
permutations.py    intermediates that are written and read against their layout
reductions.py      reduce axes that are read as one, or backwards
images.py          convolutions: unit axes that no index has
literals.py        arithmetic with literals and signs
common_values.py   mathematical functions that a reduction and another compute share
equal_nodes.py     values that are computed twice
"""
