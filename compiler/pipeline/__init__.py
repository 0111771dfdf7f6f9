"""Pipelines: the named ones, the only place where pass order is written, and how passes are parsed and run.

text.py     the parts of a pipeline's text, each with its place
options.py  the options of a pass, from their text to the fields of the pass
passes.py   the passes of a text, named pipelines expanded, and how they run
"""

from compiler.pipeline.passes import PIPELINES, Step, Watch, nested_steps, parse_passes, passes_from, run, steps

__all__ = ["PIPELINES", "Step", "Watch", "nested_steps", "parse_passes", "passes_from", "run", "steps"]
