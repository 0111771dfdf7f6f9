"""A loop function as an immutable tree, which analyses and lowerings read and schedule primitives rewrite.

body.py      scalar bodies as shared expressions
combiner.py  named and joint combiners
tree         buffers, accesses, blocks, loops, the program; finding and replacing nodes
names.py     names that nothing has yet
changed.py   the nests that a step changes
init.py      the init of a reduction: its place, its guard, its nest
limits.py    whether sizes and index expressions are 64-bit integers
read.py      from a loop function
write.py     to a loop function
"""
