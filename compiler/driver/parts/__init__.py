"""A program divided into parts that are scheduled separately.

partition.py `Partition`: the parts, and the plan of a kernel by their schedules
groups.py    `Group`, and `GroupedProgram`: a whole program as the different groups that it calls
forms.py     `OfferedForms`: groups in other forms, which laws offer
single.py    `SingleGroup`: a te program of one group, and the mapping of its arguments and names to the group's
naming.py    the program's names for the buffers and axes of a record
"""
