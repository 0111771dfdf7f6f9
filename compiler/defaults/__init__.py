"""`build`: which schedule each part of a program gets, by the rules or by its records, and why it may.

ways.py     "auto", "written", or the database of a path: what a caller asks for
plain.py    a cheap estimate: whether a schedule is worth having
choice.py   the preferred schedule of a program by the rules, its sizes by the forest
forest.py   the forest that ships, as arrays: it compares candidates of one program
data/       that forest, and the records that it was made of; tools/train.py makes both
groups.py   a whole program as the different groups that it calls
single.py   a te program of one group: canonical, as written, and from one to the other
naming.py   the names that a program has for the parts of what a record is of
cut.py      a program as the parts that have schedules of their own
judged.py   a schedule that is proved, or was tried beside the program as it is written
building.py `build`: the public one
"""

from compiler.defaults.building import build

__all__ = ["build"]
