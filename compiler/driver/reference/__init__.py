"""What a program must compute: inputs at random, and what the program as it is written gives for them.

subject.py    what is measured: a program, its policy, its threads; its work and the least time that it takes
cases.py        inputs and expected results
retype.py     a program in another float dtype
tolerance.py  whether results are right
"""
