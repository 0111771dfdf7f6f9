"""The driver: from any level to a callable kernel, to machine code as data, or to loops.

source.py     what is built: the verified module of whatever a caller gives, and its level
loops.py      `lower`: to loops, for a schedule; `lower_to_kernels`: to those that a GPU runs
models.py     models of other tools: `from_onnx`
constants.py  inputs that never change: arrays by their names, and what a build makes of them
artefact.py   `build_artefact`: to machine code as data
recipe.py     how a program is compiled, before it is
nests.py      of a program that calls no others, what depends on constants apart
programs.py   of a program of groups
kept.py       a kernel from the cache, or by its recipe
kernels.py    `build`: to a callable kernel, as written; `build_groups`: with schedules of groups;
              `build_planned`: by a plan
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.support.lazy import lazy_names

if TYPE_CHECKING:
    from compiler.driver.artefact import build_artefact
    from compiler.driver.constants import with_constants
    from compiler.driver.kernels import build, build_groups, build_planned, in_groups
    from compiler.driver.loops import lower, lower_to_kernels, unbound
    from compiler.driver.models import apart, from_onnx, imported, is_model
    from compiler.driver.programs import Plan
    from compiler.driver.source import check_words, level_of, module_of, parse, verified

__all__ = [
    "Plan",
    "apart",
    "build",
    "build_artefact",
    "build_groups",
    "build_planned",
    "check_words",
    "from_onnx",
    "imported",
    "in_groups",
    "is_model",
    "level_of",
    "lower",
    "lower_to_kernels",
    "module_of",
    "parse",
    "unbound",
    "verified",
    "with_constants",
]
__getattr__ = lazy_names(
    __name__,
    {
        "Plan": "programs",
        "apart": "models",
        "build": "kernels",
        "build_artefact": "artefact",
        "build_groups": "kernels",
        "build_planned": "kernels",
        "check_words": "source",
        "from_onnx": "models",
        "imported": "models",
        "in_groups": "kernels",
        "is_model": "models",
        "level_of": "source",
        "lower": "loops",
        "lower_to_kernels": "loops",
        "module_of": "source",
        "parse": "source",
        "unbound": "loops",
        "verified": "source",
        "with_constants": "constants",
    },
)
