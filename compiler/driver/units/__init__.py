"""One group: te, loops, its schedule, low, LLVM, object code.

unit.py    UnitKey: the dependencies of a group's machine code; Unit: the machine code
compile.py lower and compile one unit
llvm.py    LlvmProcess: LLVM's part of units, in another process
pool.py    Team: units from the cache or compiled, in several processes if that pays
"""
