"""Text to IR, pipelines of passes, and the kernels of bound loops."""

from compiler.passes.lift_constants import lift_constants
from compiler.pipeline.loops import lower_to_kernels
from compiler.pipeline.parser import PipelineStep, parse_passes, steps
from compiler.pipeline.passes import PIPELINES, run
from compiler.pipeline.source import parse

__all__ = ["PIPELINES", "PipelineStep", "lift_constants", "lower_to_kernels", "parse", "parse_passes", "run", "steps"]
