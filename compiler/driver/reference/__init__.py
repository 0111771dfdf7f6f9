"""The reference of a program: random inputs, and the results of the program as written.

subject.py    Subject: a program, its policy, its threads; its work and a lower bound of its time
cases.py      random inputs and their expected results
retype.py     a program in another float dtype
tolerance.py  the comparison of results
"""
