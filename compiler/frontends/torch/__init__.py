"""Import graphs of core ATen operators as te functions.

table.py        the table of operators
operators/      their te forms, by family
dtypes.py       the dtypes common to torch and te
devices.py      the devices of a graph's nodes
tracing.py      decompositions of operators during tracing
conversion.py   conversion of a graph's nodes to te tensors
export.py       `from_torch`: import a module by torch.export
report.py       `Report`: the compiled and uncompiled parts of a model
explanation.py  `explain`: a report of one call
"""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from compiler.support.deferral import lazy_names
from compiler.support.errors import InputError

if TYPE_CHECKING:
    from compiler.frontends.torch.explanation import explain
    from compiler.frontends.torch.export import from_torch

__all__ = ["explain", "from_torch"]


_load = lazy_names(__name__, {"explain": "explanation", "from_torch": "export"})


def __getattr__(name: str) -> Any:
    return partial(_missing, name) if name in __all__ and find_spec("torch") is None else _load(name)


def _missing(name: str, *args: object, **options: object) -> Any:
    """Raise InputError; this function replaces those of the package if torch is not installed."""
    raise InputError(f"{name} needs the package torch: pip install 'strata-compiler[torch]'")
