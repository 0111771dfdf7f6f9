"""One group: te, loops, its schedule, low, LLVM, object code.

unit.py    what machine code of a group depends on, and the machine code
compile.py one unit
llvm.py    LLVM's part of units, in a process beside this one
pool.py    units from the cache, or compiled, in several processes where that pays
"""
