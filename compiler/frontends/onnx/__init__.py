"""Models of ONNX as te functions.

types.py       dtypes
table.py       the table of operators: `handles`, and `Node`, the argument of handlers
operators/     the handlers, by family
refusals.py    the reasons for which other operators have no handler
legacy.py      operators of old opsets
loading.py     a model from a file: checked, its dimensions bound
evaluation.py  constant folding by ONNX's reference evaluator
bodies.py      function bodies of operators: from ONNX's schemas and from the model
walk.py        conversion of the nodes in order
importing.py   `from_onnx`
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.support.deferral import lazy_names

if TYPE_CHECKING:
    from compiler.frontends.onnx.importing import from_onnx as from_onnx

__getattr__ = lazy_names(__name__, {"from_onnx": "importing"})  # the table is there without the package onnx
