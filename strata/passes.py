"""Text to IR, pipelines of passes, and the kernels of bound loops."""

from compiler.passes.lift_constants import lift_constants
from compiler.pipeline import PIPELINES, PipelineStep, lower_to_kernels, parse, parse_passes, run, steps

__all__ = ["PIPELINES", "PipelineStep", "lift_constants", "lower_to_kernels", "parse", "parse_passes", "run", "steps"]
