"""te functions as immutable data, which canonicalisation and grouping read and rewrite.

tree.py            values, computes, calls; a graph is a function
read.py            from a te function
write.py           to a te function
rename.py          nodes with renamed operands or results
laws/              rewrites that preserve every result, bit for bit
simplification.py  all laws, until none applies
hashing.py         digests of computations, independent of names
normal_form.py     the normal form of a compute
order.py           canonical order of inputs, results and nodes, by structure
locations.py       locations of nodes through laws
provenance.py      the user's names of the parts of a canonical graph
concatenation.py   functions that only lay out their inputs one after another in memory
user_names.py      canonical programs and scripts under the user's names
canonical.py       canonical text and hash of a te function
grouping/          partition of a function into groups
guarded.py         functions whose calls are skipped while a guard is set
grouped_module.py  canonicalise and group a program, the first stage of a build
main.py            a function that calls others: read from te or loops, written as loops or at the low level
"""
