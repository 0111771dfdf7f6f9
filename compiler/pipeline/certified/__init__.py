"""`check_certificate`: prove a library anew from its certificate's texts, and compare the hashes.

check.py      `check_certificate`: the findings on a library
schedules.py  whether the loops of a group compute its te function
division.py   whether the groups of a program, put together, compute the program as given
calls.py      whether main's calls, in their order and memory, compute the program in groups
units.py      the groups as native functions, and what they compute
values.py     the values that a te program computes
memory.py     the values that regions of memory hold, by bytes
interface.py  whether the library's arrays are the program's, by names, dtypes and shapes
texts.py      the modules of a certificate's texts
"""

from compiler.pipeline.certified.check import Finding, beside, check_certificate
from compiler.pipeline.certified.schedules import verdict_of

__all__ = ["Finding", "beside", "check_certificate", "verdict_of"]
