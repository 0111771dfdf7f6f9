"""Pipelines: what a caller gives, its level, and the passes from it: pass order is written here, and by targets.

source.py   the verified module of whatever a caller gives, and its level
models.py   models of other tools: `from_onnx`
loops.py    `lower`: to loops, for a schedule; `lower_for`: to what a target takes; `lower_to_kernels`: to a GPU's
text.py     the parts of a pipeline's text, each with its place
options.py  the options of a pass, from their text to the fields of the pass
passes.py   the passes of a text, named pipelines expanded, and how they run
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.support.deferral import lazy_names

if TYPE_CHECKING:
    from compiler.pipeline.loops import lower, lower_to_kernels, unbound
    from compiler.pipeline.models import apart, from_onnx, imported, is_model
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
    from compiler.pipeline.source import check_words, level_of, module_of, parse, verified

__all__ = [
    "PIPELINES",
    "PipelineStep",
    "Watch",
    "apart",
    "check_words",
    "from_onnx",
    "imported",
    "is_model",
    "level_of",
    "lower",
    "lower_to_kernels",
    "module_of",
    "nested_steps",
    "parse",
    "parse_passes",
    "passes_from",
    "run",
    "steps",
    "unbound",
    "verified",
]
_ROOMS = {
    "loops": ("lower", "lower_to_kernels", "unbound"),
    "models": ("apart", "from_onnx", "imported", "is_model"),
    "passes": ("PIPELINES", "PipelineStep", "Watch", "nested_steps", "parse_passes", "passes_from", "run", "steps"),
    "source": ("check_words", "level_of", "module_of", "parse", "verified"),
}
__getattr__ = lazy_names(__name__, {name: file for file, names in _ROOMS.items() for name in names})
