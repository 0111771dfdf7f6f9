"""A model from a file, or as it is given: checked, in an opset of 13 or later, its dimensions bound."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import onnx
from google.protobuf.message import DecodeError
from onnx import ModelProto, TypeProto, ValueInfoProto, checker, external_data_helper, version_converter

from compiler.frontends.onnx.bodies import domain_of
from compiler.frontends.onnx.legacy import set_apart, with_flat_maxima
from compiler.frontends.onnx.types import DTYPE_OF, type_name
from compiler.support.errors import InputError
from compiler.support.files import named

OLDEST = 13
"""The oldest opset that is read as it is; older models are converted to it."""


def loaded(given: object) -> ModelProto:
    """A checked model with its external data. Raises InputError for a file that is no model, and for an invalid
    model."""
    if isinstance(given, ModelProto):
        _check(given, given, "the model")
        return _converted(given, "the model")
    path = named(given)
    try:
        model = onnx.load(path, load_external_data=False)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except (DecodeError, ValueError) as error:
        raise InputError(f"{path} is not a model of ONNX: it cannot be parsed") from error
    _check(model, os.fspath(path), str(path))
    try:
        external_data_helper.load_external_data_for_model(model, os.fspath(path.parent))
    except (OSError, ValueError, checker.ValidationError) as error:
        raise InputError(f"{path}: its external data cannot be read: {_first(error)}") from error
    return _converted(model, str(path))


def _check(model: ModelProto, checked: ModelProto | str, what: str) -> None:
    """Raise InputError where ONNX's checker finds a fault."""
    if not model.HasField("graph") or not model.opset_import:
        raise InputError(f"{what} is not a model of ONNX: it has no graph, or states no opset")
    for stated in model.opset_import:
        newest = onnx.defs.onnx_opset_version()
        if domain_of(stated.domain) == "" and not 1 <= stated.version <= newest:
            raise InputError(
                f"{what} is of opset {stated.version}; the package onnx that is installed knows 1 to {newest}"
            )
    try:
        checker.check_model(checked)
    except (checker.ValidationError, ValueError, OSError, RuntimeError) as error:
        raise InputError(f"{what} is not a valid model: {_first(error)}") from error


def _first(error: BaseException) -> str:
    """The first line of ONNX's message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:300] if lines else type(error).__name__


def _converted(model: ModelProto, what: str) -> ModelProto:
    """The model in the oldest opset that is read as it is, or a newer one."""
    version = opsets_of(model).get("", OLDEST)
    if version >= OLDEST:
        return model
    try:
        return with_flat_maxima(version_converter.convert_version(set_apart(model, version), OLDEST))
    except (RuntimeError, ValueError) as error:
        raise InputError(
            f"{what} is of opset {version}, and ONNX cannot convert it to {OLDEST}, the oldest here: {_first(error)}"
        ) from error


def opsets_of(model: ModelProto) -> dict[str, int]:
    """The opset of each domain that a model imports."""
    return {domain_of(stated.domain): stated.version for stated in model.opset_import}


def inputs_of(model: ModelProto) -> list[ValueInfoProto]:
    """The inputs of a model without a stored value."""
    stored = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in stored]


def bind(model: ModelProto, shapes: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """The shapes of a model's inputs, by name.

    shapes: extents by the names of symbolic dimensions, `{"N": 1}`, or whole shapes by those of inputs.
    Raises InputError for a dimension that stays open, a name that the model has not, or an extent that is none.
    """
    inputs = inputs_of(model)
    _check_names(inputs, shapes)
    by_input: dict[str, tuple[int, ...]] = {}
    opened: dict[str, None] = {}
    extents = {name: value for name, value in shapes.items() if not isinstance(value, tuple | list)}
    for given in inputs:
        shape = _declared(given.name, given.type)
        if given.name in shapes and isinstance(shapes[given.name], tuple | list):
            shape = _stated(given.name, shape, shapes[given.name], extents)
        bound = [extents.get(size, size) if isinstance(size, str) else size for size in shape]
        opened |= {str(size): None for size in bound if isinstance(size, str)}
        by_input[given.name] = tuple(size for size in bound if isinstance(size, int))
    if opened:
        raise InputError(
            f"the dimensions {', '.join(opened)} are not bound: shapes={{'{next(iter(opened))}': 1}}, "
            f"or --shape {next(iter(opened))}=1"
        )
    return by_input


def _check_names(inputs: Sequence[Any], shapes: Mapping[str, Any]) -> None:
    """Raise InputError for names that the model lacks, and for invalid extents."""
    symbols = dict.fromkeys(
        str(size) for value in inputs for size in _declared(value.name, value.type) if isinstance(size, str)
    )
    for name, value in shapes.items():
        is_shape = isinstance(value, tuple | list)
        names = [value.name for value in inputs] if is_shape else list(symbols)
        if name not in names:
            what = "input" if is_shape else "symbolic dimension"
            raise InputError(f"the model has no {what} '{name}'; it has {', '.join(names) or 'none'}")
        sizes = list(value) if is_shape else [value]
        if any(isinstance(size, bool) or not isinstance(size, int) or size < 1 for size in sizes):
            raise InputError(f"the shape '{name}' is {value!r}: extents are integers of at least 1")


def _declared(name: str, type: TypeProto) -> list[int | str]:
    """The extents of an input, symbolic ones by name. Raises InputError for an input that is no tensor of a known
    rank."""
    if not type.HasField("tensor_type"):
        raise InputError(f"the input '{name}' is no tensor: sequences, optional and sparse ones have no te form")
    if type.tensor_type.elem_type not in DTYPE_OF:
        raise InputError(f"the input '{name}' is of {type_name(type.tensor_type.elem_type)}, a dtype that te lacks")
    if not type.tensor_type.HasField("shape"):
        raise InputError(f"the input '{name}' has no shape: shapes are static, or bound when the model is read")
    sizes: list[int | str] = []
    for position, size in enumerate(type.tensor_type.shape.dim):
        if size.HasField("dim_value"):
            if size.dim_value < 1:
                raise InputError(f"the input '{name}' has extent {size.dim_value} in dimension {position}")
            sizes.append(size.dim_value)
        else:
            sizes.append(size.dim_param or f"{name}.{position}")
    return sizes


def _stated(name: str, declared: list[int | str], stated: Sequence[int], extents: dict[str, Any]) -> list[int | str]:
    """A shape that a caller states for an input, which also binds the symbols there. Raises InputError."""
    if len(stated) != len(declared):
        raise InputError(f"the input '{name}' has {len(declared)} dimensions, not those of {tuple(stated)}")
    for size, wanted in zip(declared, stated, strict=True):
        if isinstance(size, int) and size != wanted:
            raise InputError(f"the input '{name}' has extent {size} where {wanted} is stated")
        if isinstance(size, str) and extents.setdefault(size, wanted) != wanted:
            raise InputError(f"the dimension {size} is stated as {extents[size]} and as {wanted}")
    return list(stated)
