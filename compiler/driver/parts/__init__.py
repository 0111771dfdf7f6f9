"""A program as the parts that have schedules of their own.

partition.py `Partition`: the parts, and the plan of a kernel by their schedules
groups.py    `Group`, and a whole program as the different groups that it calls
forms.py     groups in other forms, which laws offer
single.py    a te program of one group, and how its arguments and names differ from the group's
naming.py    the names that a program has for the parts of what a record is of
"""
