"""Equal programs: families of spellings, whether they have one text, and their times.

family.py        `Family`, `Spelling`, and the laws that make spellings one
gradients.py     gradients of a convolution's weights
convolutions.py  convolutions, poolings
products.py      products of matrices
attention.py     attention, projections
rows.py          softmax, norms, reductions
elementwise.py   activations, literals, views
__main__.py      the table: hashes, times
"""

from benchmarks.equal_programs import attention, convolutions, elementwise, gradients, products, rows
from benchmarks.equal_programs.family import Family, Law, Pair, Spelling, pairs

FAMILIES: tuple[Family, ...] = tuple(
    family for module in (gradients, convolutions, products, attention, rows, elementwise) for family in module.FAMILIES
)
"""All families."""

__all__ = ["FAMILIES", "Family", "Law", "Pair", "Spelling", "pairs"]
