"""Proof that a scheduled program computes what its original does, by induction over execution order.

equations.py   the original as equations: each element of each buffer as an expression of others
forms.py       expressions that may be equal
content.py     the values that a read finds: finished, partial, constant or unknown
spaces.py      the scheduled program in isl: instances, cells, order, and the claims of blocks
flow.py        dataflow: the values that each read of the scheduled program finds
tables.py      gathers: proof that the elements that they may choose are finished
joint.py       joint reductions: proof that their targets stay in step
values.py      comparison of a body with the equation of the original
unflatten.py   rewrites that keep instances and order and make sets easier for isl
prove.py       `verify_schedule`: proved, refuted with an instance, or undecided within the budget
"""
