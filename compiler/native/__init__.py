"""From a module of groups to one kernel: each different group is compiled once, main calls them.

unit.py        what machine code of a group depends on, and the machine code
compile.py     one unit: te, loops, its schedule, low, LLVM, object code
pool.py        units from the cache, or compiled, in several processes where that pays
worker.py      what such a process runs
occurrences.py the calls of main: those that run once, and the unit of each
slices.py      concatenations whose parts are written into their slices
constants.py   where constants stand, and what is run once to prepare them
texts.py       the whole program at a level
linked.py      a program as data that makes a kernel
assemble.py    `build_program`: main beside its units, as such data, and its kernel
"""
