"""Graphs of core ATen operators as te functions.

table.py       the table of operators
operators/     their te forms, by family
dtypes.py      the dtypes that torch and te both have
tracing.py     which operators torch takes apart before they arrive, and which it keeps
conversion.py  from the nodes of a graph to te tensors
exported.py    `from_torch`: a module, by torch.export
report.py      what of a model was compiled, and what was not, and why
explained.py   `explain`: such a report of one call
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from compiler.errors import InputError

if TYPE_CHECKING:
    from compiler.frontends.torch.explained import explain
    from compiler.frontends.torch.exported import from_torch

__all__ = ["explain", "from_torch"]


def __getattr__(name: str) -> Any:
    if name in __all__ and find_spec("torch") is None:
        raise InputError(f"{name} needs the package torch: install strata-compiler[torch]")
    if name == "explain":
        from compiler.frontends.torch import explained

        return explained.explain
    if name == "from_torch":
        from compiler.frontends.torch import exported

        return exported.from_torch
    raise AttributeError(f"module 'compiler.frontends.torch' has no attribute '{name}'")
