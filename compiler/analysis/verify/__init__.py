"""Law 2: a scheduled program computes what its original does, proved by induction over execution order.

equations.py   what the original computes: each element of each buffer as an expression of others
forms.py       index arithmetic in bodies, as forms
content.py     what a read finds: finished, partial, constant or unknown values
spaces.py      the scheduled program in isl: instances, cells, order, and what blocks claim to compute
flow.py        what each read of the scheduled program finds: finished values, contributions so far, constants
tables.py      whether the elements that a gather may choose are finished
joint.py       whether the targets of a joint reduction stay in step
values.py      whether a body computes what the original's equation says
unflatten.py   programs with easier sets for the same instances in the same order
prove.py       `verify_schedule`: proved, refuted (with an instance), or undecided within the budget
"""
