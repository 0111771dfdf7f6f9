"""Models of ONNX on the command line: input shapes, expected results."""

from __future__ import annotations

import argparse
from argparse import ArgumentTypeError
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from compiler.support.errors import InputError

if TYPE_CHECKING:
    from compiler.frontends.model import Imported
    from compiler.targets.arguments import Array


Shapes: TypeAlias = "Sequence[tuple[str, int | tuple[int, ...]]]"
"""The bindings of the options --shape: each a name with an extent or a shape."""


def binding(text: str) -> tuple[str, int | tuple[int, ...]]:
    """Parse a name with the extent of a symbolic dimension, `N=1`, or the shape of an input, `x=1,3,224,224`, of at
    least two dimensions. Raises ArgumentTypeError for other text."""
    name, equals, value = text.rpartition("=")
    parts = value.split(",")
    if not equals or not name or not all(p.isascii() and p.isdecimal() and len(p) < 19 for p in parts):
        raise ArgumentTypeError(f"{text!r} is neither N=1 for a dimension nor x=1,3,224,224 for an input")
    return name, int(value) if len(parts) == 1 else tuple(map(int, parts))


def shape_argument(parser: argparse._ActionsContainer) -> None:
    """Add the option `--shape`, which binds a symbolic dimension or an input's shape of an ONNX model."""
    help = "of an ONNX model: the extent of a symbolic dimension; x=1,3,224,224 is the whole shape of an input"
    parser.add_argument("--shape", action="append", default=[], type=binding, metavar="N=1", help=help)


def model_of(name: str, shapes: Shapes) -> Imported | None:
    """Import the ONNX file `name` with extents and shapes; None for any other name. Raises InputError for a model that
    cannot be imported, a name that is bound twice, and shapes without an ONNX file."""
    from compiler.pipeline.models import from_onnx, is_model

    if not is_model(name):
        if shapes:
            raise InputError(f"{name} is no file.onnx: --shape is for models of ONNX")
        return None
    bound = dict(shapes)
    if len(bound) < len(shapes):
        raise InputError("--shape binds one name twice")
    return from_onnx(name, bound)


def expected(name: str, inputs: Sequence[Array]) -> list[Any]:
    """Compute the outputs of the ONNX file `name` by ONNX's reference evaluator; `inputs` are those of the graph in
    order, without initializers."""
    import onnx
    from onnx.reference import ReferenceEvaluator

    model = onnx.load(name)
    stored = {tensor.name for tensor in model.graph.initializer}
    names = [value.name for value in model.graph.input if value.name not in stored]
    return list(ReferenceEvaluator(model).run(None, dict(zip(names, inputs, strict=True))))
