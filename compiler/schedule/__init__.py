"""Schedules: a loop function and the script that is applied to it.

schedule.py    Schedule: the Python face, one method a primitive; replay
recorder.py    the loop function and its script so far: what Schedule is beside its primitives
primitive.py   `@primitive`: the declaration from which op, method, pass and page come
parameters.py  the kinds of parameters
names.py       blocks and loops by name
primitives/    one file a primitive
dialect.py     the ops of scripts
state.py       the program under a script: plan, judge, apply, record
plan.py        what primitives share: plans and refusals
region.py      which box of a buffer an iteration touches
copies.py, placement.py, inlining.py, layouts.py   what several primitives do
script.py      the one script of a module, a text or a file
include.py     the steps of a recipe as one op
python.py      a script as Python
show.py        a program as an indented tree
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.support.deferral import lazy_names

if TYPE_CHECKING:
    from compiler.schedule.python import as_python
    from compiler.schedule.schedule import Handle, Schedule, Size, replay
    from compiler.schedule.show import outline

__all__ = ["Handle", "Schedule", "Size", "as_python", "outline", "replay"]
__getattr__ = lazy_names(
    __name__,
    {
        "Handle": "schedule",
        "Schedule": "schedule",
        "Size": "schedule",
        "as_python": "python",
        "outline": "show",
        "replay": "schedule",
    },
)  # scripts are parsed without the proofs
