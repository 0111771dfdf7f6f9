"""Laws: rewrites of graphs that keep every result, bit for bit, whichever NaN it is. Each is a function of a graph,
and gives the same object where it has nothing to do.

dead_nodes.py      what no result needs is not computed
extents.py         axes of extent 1
identities.py      copies
views.py           values that are elements of another one, elsewhere
concatenations.py  reads of one part of several that are joined
parts.py           computes of what is joined, of which each part is read apart
splits.py          axes that are read by quotients and remainders
computed_views.py  values of which only a view is read
permutations.py    intermediates that are made and read against their layout
reductions.py      reduce axes that are read as one, or backwards
images.py          convolutions: unit axes that are not named
literals.py        arithmetic with literals and signs
common_values.py   mathematical functions of a reduction and of another compute
equal_nodes.py     values that are computed twice
"""
