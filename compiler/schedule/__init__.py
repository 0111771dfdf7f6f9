"""Schedules: a loop function and the script that is applied to it.

schedule.py    Schedule: the Python face, one method an op; replay
state.py       the program under a script: plan, judge, apply, record
calls.py       which primitive an op calls
plan.py        what primitives share: plans and refusals
region.py      which box of a buffer an iteration touches
sample.py      the open choices
show.py        a program as an indented tree
library/       composite schedules made of the primitives
primitives/    one function a primitive, with what it requires
"""

from compiler.schedule.schedule import Handle, Schedule, replay
from compiler.schedule.show import outline

__all__ = ["Handle", "Schedule", "outline", "replay"]
