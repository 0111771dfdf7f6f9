"""A program as the parts that have schedules of their own.

cut.py    `Cut`: the parts, and the plan of a kernel by their schedules
groups.py a whole program as the different groups that it calls
single.py a te program of one group: canonical, as written, and from one to the other
naming.py the names that a program has for the parts of what a record is of
"""
