"""te functions as immutable data: what canonicalisation and grouping read and rewrite.

tree.py            values, computes, calls; a graph is a function
read.py            from a te function
write.py           to a te function
rename.py          nodes that read, and that give, other values
laws/              rewrites that keep every result
simplification.py  all laws, until none applies
hashing.py         digests of what is computed, not of names
normal_form.py     the normal form of a compute
order.py           the order of what has none, by structure
provenance.py      what a user calls the parts of a canonical graph
concatenation.py   functions that only put their inputs one behind the other in memory
spelling.py        canonical programs and scripts under the user's names
canonical.py       canonical text and hash of a te function
grouping/          which computes make one function
guarded.py         functions whose calls are skipped while a guard holds
whole.py           canonical and grouped: what the build takes
main.py            a function that calls others: read from te or loops, written as loops or at the low level
"""
