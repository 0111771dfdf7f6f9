"""Passes that are thin faces of the schedule primitives: they choose blocks and loops by name.

face.py        what they share: the pass, names of loops
loops.py       tile, split, partition, fuse-loops, reorder, merge, distribute, unroll, vectorize, parallelize, ...
placement.py   compute-at, fuse, inline, ...
staging.py     cache-read, cache-write, stage, pack, layouts, pipelining
reduction.py   decompose-reduction, rfactor
script.py      apply-schedule: a whole script
"""
