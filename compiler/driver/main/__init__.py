"""A program of groups: main calls the units, each of which is compiled once.

occurrences.py the calls of main: those that run once, and the unit of each
slices.py      concatenations whose parts are written into their slices
constants.py   where constants stand, and what is run once to prepare them
texts.py       the whole program at a level
linked.py      a program as data that makes a kernel
assemble.py    `build_program`: main beside its units, as such data, and its kernel
"""
