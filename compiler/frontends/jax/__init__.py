"""Functions of JAX as StableHLO text, which the pass convert-stablehlo-to-te reads.

tracing.py  `trace`: the text of a function, the names of its inputs, the arrays of its large constants
lines.py    the lines of the user's program in the text's locations
"""
