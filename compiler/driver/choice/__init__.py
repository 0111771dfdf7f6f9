"""Which schedule each part of a program gets, by the rules or by its records, and why it may.

mode.py      "auto", "written", the database of a path, or a script: what a caller asks for
preferred.py the preferred schedule by the rules, its sizes by the forest
estimate.py  a cheap estimate: whether a schedule is worth having
forest.py    the forest that ships, as arrays: it compares candidates of one program
data/        that forest, and the records that it was made of; tools/train.py makes both
verdict.py   a schedule that is proved, or was tried beside the program as it is written
"""
