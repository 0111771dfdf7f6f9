"""Models of ONNX as te functions.

types.py       dtypes
table.py       the table of operators: `handles`, and the node that a handler takes
operators/     the handlers, by family
refusals.py    why the other operators have none
legacy.py      operators of old opsets
loading.py     a model from a file: checked, its dimensions bound
evaluation.py  nodes whose inputs are known, evaluated by ONNX's reference evaluator
bodies.py      operators as functions of others: those of ONNX, and those of the model
walk.py        nodes in order, from values to values
importing.py   `from_onnx`
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.support.deferral import lazy_names

if TYPE_CHECKING:
    from compiler.frontends.onnx.importing import from_onnx as from_onnx

__getattr__ = lazy_names(__name__, {"from_onnx": "importing"})  # the table is there without the package onnx
