"""A loop function as an immutable tree: what analyses read and what schedule primitives rewrite.

body.py    scalar bodies as shared expressions
combiner.py  named and joint combiners
tree.py    buffers, accesses, blocks, loops, the program; finding and replacing nodes
read.py    from a loop function
write.py   to a loop function
init.py    the init of a reduction: where it stands, as a block and a nest
shrink.py  a program with shorter reductions, for checks
limits.py  whether sizes and indices are 64-bit integers
"""
