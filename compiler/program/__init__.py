"""A loop function as an immutable tree, which analyses and lowerings read and schedule primitives rewrite.

body.py      scalar bodies as shared expressions
combiner.py  named and joint combiners
tree         buffers, accesses, blocks, loops, the program; finding and replacing nodes
names.py     text spelled as names, and unique names
changed.py   the difference between two programs: the changed nests
init.py      the init of a reduction: its depth, its guard, its nest
index_values.py  index arithmetic in bodies, as forms
limits.py    checks that sizes and index expressions fit 64 bits
read.py      translation from a loop function
write.py     translation to a loop function
"""
