"""Load a model: checked, converted to opset 13 or later, its dimensions bound."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import onnx
from google.protobuf.message import DecodeError
from onnx import ModelProto, TypeProto, ValueInfoProto, checker, external_data_helper, version_converter

from compiler.frontends.onnx.bodies import domain_of
from compiler.frontends.onnx.legacy import flatten_hardmax, to_legacy_domain
from compiler.frontends.onnx.types import DTYPE_OF, type_name
from compiler.support.errors import InputError
from compiler.support.files import to_path

OLDEST = 13
"""The oldest supported opset; older models are converted to it."""


def load(source: object) -> ModelProto:
    """Load and check a model, a ModelProto or a path, and convert older ones to opset OLDEST. Raises InputError for a
    file that cannot be read, an invalid model, and one that ONNX cannot convert."""
    if isinstance(source, ModelProto):
        _check(source, source, "the model")
        return _convert(source, "the model")
    path = to_path(source)
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
    return _convert(model, str(path))


def _check(model: ModelProto, checked: ModelProto | str, what: str) -> None:
    """Raise InputError for a model without graph or known opset, or if ONNX's checker rejects it. `checked`: the model,
    or its path if it may have external data. `what`: the model in messages."""
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
    """Return the first line of an error's message, or the name of its type if that is empty."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:300] if lines else type(error).__name__


def _convert(model: ModelProto, what: str) -> ModelProto:
    """Convert a model to opset OLDEST if it is older; else return it. Raises InputError, whose message begins with
    `what`, if ONNX cannot convert it."""
    version = opsets_of(model).get("", OLDEST)
    if version >= OLDEST:
        return model
    try:
        return flatten_hardmax(version_converter.convert_version(to_legacy_domain(model, version), OLDEST))
    except (RuntimeError, ValueError) as error:
        raise InputError(
            f"{what} is of opset {version}, and ONNX cannot convert it to {OLDEST}, the oldest here: {_first(error)}"
        ) from error


def opsets_of(model: ModelProto) -> dict[str, int]:
    """Map each domain that a model imports to its opset; ONNX's own domain is ""."""
    return {domain_of(stated.domain): stated.version for stated in model.opset_import}


def inputs_of(model: ModelProto) -> list[ValueInfoProto]:
    """The inputs of a model that have no initialiser, in order."""
    stored = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in stored]


def bind(model: ModelProto, shapes: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Return the static shape of each input of a model by name, with symbolic dimensions replaced by extents.

    shapes: extents by the names of symbolic dimensions, `{"N": 1}`, or full shapes by the names of inputs. Raises
    InputError for an unbound dimension, an unknown name, an invalid extent or rank, and an input that is no tensor of
    static rank and a dtype of te.
    """
    inputs = inputs_of(model)
    _check_names(inputs, shapes)
    by_input: dict[str, tuple[int, ...]] = {}
    unbound: dict[str, None] = {}
    extents = {name: value for name, value in shapes.items() if not isinstance(value, tuple | list)}
    for value_info in inputs:
        shape = _declared_shape(value_info.name, value_info.type)
        if value_info.name in shapes and isinstance(shapes[value_info.name], tuple | list):
            shape = _bind_shape(value_info.name, shape, shapes[value_info.name], extents)
        bound = [extents.get(size, size) if isinstance(size, str) else size for size in shape]
        unbound |= {str(size): None for size in bound if isinstance(size, str)}
        by_input[value_info.name] = tuple(size for size in bound if isinstance(size, int))
    if unbound:
        raise InputError(
            f"the dimensions {', '.join(unbound)} are not bound: shapes={{'{next(iter(unbound))}': 1}}, "
            f"or --shape {next(iter(unbound))}=1"
        )
    return by_input


def _check_names(inputs: Sequence[Any], shapes: Mapping[str, Any]) -> None:
    """Check a caller's shapes. Raises InputError for unknown inputs or dimensions, and for extents that are no integers
    of at least 1."""
    symbols = dict.fromkeys(
        str(size) for value in inputs for size in _declared_shape(value.name, value.type) if isinstance(size, str)
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


def _declared_shape(name: str, type: TypeProto) -> list[int | str]:
    """Return an input's extents; a symbolic one is its name, or `input.position` without one. Raises InputError unless
    it is a tensor of static rank and of a dtype of te, with extents of at least 1."""
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


def _bind_shape(
    name: str, declared: list[int | str], stated: Sequence[int], symbols: dict[str, Any]
) -> list[int | str]:
    """Check a caller's shape, `stated`, against the declared one, add its extents to `symbols`, and return it. Raises
    InputError for another rank or extent, and for two extents of a symbol."""
    if len(stated) != len(declared):
        raise InputError(f"the input '{name}' has {len(declared)} dimensions, not those of {tuple(stated)}")
    for size, extent in zip(declared, stated, strict=True):
        if isinstance(size, int) and size != extent:
            raise InputError(f"the input '{name}' has extent {size} where {extent} is stated")
        if isinstance(size, str) and symbols.setdefault(size, extent) != extent:
            raise InputError(f"the dimension {size} is stated as {symbols[size]} and as {extent}")
    return list(stated)
