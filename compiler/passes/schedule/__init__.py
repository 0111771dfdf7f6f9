"""Passes that apply schedule primitives: they choose blocks and loops by name.

face.py        what they share: the pass, names of loops
declared.py    the passes of the primitives, made of their declarations
composites.py  tile, bind-threads, fuse, and vectorize with a width
script.py      apply-schedule: a whole script
"""

from compiler.passes.schedule import composites, declared
from compiler.passes.schedule.face import SchedulingPass

PASSES: dict[str, type[SchedulingPass]] = declared.PASSES | composites.PASSES
"""Every pass that applies primitives, by name."""
