"""Passes that apply schedule primitives to blocks and loops by name.

scheduling_pass.py  `SchedulingPass`, their base class
declared.py         the passes of the primitives, generated from their declarations
composites.py       tile, bind-threads, fuse, and vectorize with a width
script.py           apply-schedule: a script
"""

from compiler.passes.schedule import composites, declared
from compiler.passes.schedule.scheduling_pass import SchedulingPass

PASSES: dict[str, type[SchedulingPass]] = declared.PASSES | composites.PASSES
"""Every pass that applies primitives, by name."""
