"""A program of groups: main calls the units, each of which is compiled once.

occurrences.py the calls of main: those that run once, and the unit of each; outputs that overwrite inputs
slices.py      concatenations whose parts are written into their slices
constants.py   the layout of constants, and the calls that prepare them once
texts.py       the texts of the whole program by level
assemble.py    `assembled`: compile main and its units to such data; `build_program`: its kernel
"""
