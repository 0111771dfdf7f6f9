"""Graphs of core ATen operators as te functions.

table.py        the table of operators
operators/      their te forms, by family
dtypes.py       the dtypes that torch and te both have
tracing.py      which operators torch takes apart before they arrive, and which it keeps
conversion.py   from the nodes of a graph to te tensors
export.py       `from_torch`: a module, by torch.export
report.py       what of a model was compiled, and what was not, and why
explanation.py  `explain`: such a report of one call
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
    """A stand-in for a function without torch: it can be imported, and raises when it is called."""
    raise InputError(f"{name} needs the package torch: pip install 'strata-compiler[torch]'")
