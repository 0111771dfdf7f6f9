"""Programs for targets that join the kernels of functions, such as GPUs: one kernel program a group, and their join.

function.py  the kernel of a function, under the first schedule that the target takes
unit.py      a group: its schedule, its preparation, its kernels
program.py   a program: its parts, its main, its constants, its cache
"""
