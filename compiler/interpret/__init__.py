"""The oracles: numpy evaluators of te and loop functions, independent of every lowering.

conversions.py  conversions between scalar types
maps.py         affine maps and conditions as Python functions
scalar.py       scalar ops, bodies, named combiners
combination.py  joint combiners, and the test that a region is a combiner
modules.py      the module of a program to interpret
te.py           the evaluator of te functions
loop.py         the interpreter of loop functions
"""
