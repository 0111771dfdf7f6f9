"""Schedules: a loop function and the script that is applied to it.

schedule.py    Schedule, with one method for each primitive; replay
recorder.py    the base of Schedule: a loop function and the script applied to it
primitive.py   `@primitive`: the declaration from which op, method, pass and page come
plugins.py     the planning functions of plugins' primitives
declarations.py  the faults of a declaration
parameters.py  the kinds of parameters
names.py       handles of blocks and loops by name
primitives/    one file for each primitive
dialect.py     the ops of scripts
state.py       the program and its handles: plan, judge, apply, record
plan.py        plans and refusals
region.py      the box of a buffer that an iteration touches
copies.py, placement.py, inlining.py, layouts.py   shared by several primitives
script.py      the script of a module, a text or a file
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
_FILES = {"python": ("as_python",), "schedule": ("Handle", "Schedule", "Size", "replay"), "show": ("outline",)}
__getattr__ = lazy_names(__name__, {name: file for file, names in _FILES.items() for name in names})
"""Lazy, since scripts are parsed without the proofs."""
