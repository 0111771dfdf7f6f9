"""Pipelines: find the module and the level of a caller's program, and run the passes that lower it. The order of passes
is defined here and by targets.

source.py   the verified module of a caller's program, and its level
models.py   models of other tools: `from_onnx`
loops.py    `lower`: to loops; `lower_for`: to the input of a target; `lower_to_kernels`: to a GPU's kernels
verify.py   `verify`: prove that one loop program computes the same as another
text.py     the parts of a pipeline's text, with their source locations
options.py  parse the options of a pass to its fields
passes.py   parse a pipeline to passes, expand named pipelines, run them
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.support.deferral import lazy_names

if TYPE_CHECKING:
    from compiler.pipeline.loops import lower, lower_to_kernels, without_bindings
    from compiler.pipeline.models import from_onnx, import_model, is_model, program_and_constants
    from compiler.pipeline.passes import (
        PIPELINES,
        PipelineStep,
        Watch,
        nested_steps,
        parse_passes,
        passes_from,
        run,
        steps,
    )
    from compiler.pipeline.source import check_words, level_of, module_of, parse, verified_module

__all__ = [
    "PIPELINES",
    "PipelineStep",
    "Watch",
    "check_words",
    "from_onnx",
    "import_model",
    "is_model",
    "level_of",
    "lower",
    "lower_to_kernels",
    "module_of",
    "nested_steps",
    "parse",
    "parse_passes",
    "passes_from",
    "program_and_constants",
    "run",
    "steps",
    "verified_module",
    "without_bindings",
]
_ROOMS = {
    "loops": ("lower", "lower_to_kernels", "without_bindings"),
    "models": ("from_onnx", "import_model", "is_model", "program_and_constants"),
    "passes": ("PIPELINES", "PipelineStep", "Watch", "nested_steps", "parse_passes", "passes_from", "run", "steps"),
    "source": ("check_words", "level_of", "module_of", "parse", "verified_module"),
}
__getattr__ = lazy_names(__name__, {name: file for file, names in _ROOMS.items() for name in names})
