"""The choice of the schedule of each part of a program, by the rules or by its records, and its verdict.

mode.py      the `schedule` argument of `build`: "auto", "written", the path of a database, or a script
preferred.py the schedule that the rules prefer, its sizes chosen by the forest
recorded_machine.py  the name of the machine whose records a version of a library takes
estimate.py  a cheap estimate of time, to reject schedules that do not pay
forest.py    the shipped forest, as arrays: it compares candidates of one program
data/        that forest, and the records of its training; tools/train.py makes both
verdict.py   proof of a schedule or, if undecided, a run beside the program as written
"""
