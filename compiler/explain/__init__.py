"""The generated code of a program, and its cost: for people only, no rule, feature or search reads it.

builds.py      the program at the levels that are explained, and builds of it with marks
nests.py       the loops of the low level as a tree, with the blocks and the work of the loop program
code.py        the innermost loops of the machine code, counted and estimated
profile.py     seconds by loop, from a build that reads the clock around the outer ones
temporaries.py the arena and its buffers
explanation.py all of it
text.py        as tables; data.py as JSON
"""
