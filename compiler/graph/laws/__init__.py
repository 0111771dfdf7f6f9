"""Laws: rewrites of graphs that keep every result, bit for bit, whichever NaN it is. Each is a function of a graph,
and gives the same object where it has nothing to do.

dead_nodes.py      what no result needs is not computed
extents.py         axes of extent 1
identities.py      copies
views.py           values that are elements of another one, elsewhere
concatenations.py  reads of one part of several that are joined
equal_nodes.py     values that are computed twice
"""
