"""`trace`: a function of JAX as StableHLO text, with its large constants beside the text."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.export
import numpy as np
from jax.extend.mlir import ir
from numpy.typing import NDArray

from compiler.support.errors import InputError
from compiler.types.dtypes import DTYPES, Dtype

LARGE = 100
"""The most elements of a constant that the text has; MLIR prints more of them as hexadecimal digits."""
_ELIDED = "dense_resource<__elided__>"
_CHLO = re.compile(r"\bchlo\.\w+")
_HEX = re.compile(r'dense<"0x([0-9A-Fa-f]+)">')


@dataclass(frozen=True)
class JaxProgram:
    """A traced function.

    name: of the function. text: StableHLO, whose large constants are `dense_resource<elements_N>`. elements: their
    arrays by these names. inputs: a name for each leaf of the arguments.
    """

    name: str
    text: str
    elements: dict[str, NDArray[Any]] = field(repr=False)
    inputs: tuple[str, ...]


def trace(function: Callable[..., Any], arguments: Sequence[Any], functions: Collection[str]) -> JaxProgram:
    """Trace a function for arguments that are arrays, objects with a shape and a dtype, or trees of these. functions:
    the ops of CHLO that the text may contain, such as `chlo.erf`; a program with other ones is exported, which
    decomposes them. Raises InputError for a function or arguments that JAX refuses, and for a large constant of a dtype
    that te lacks."""
    name = getattr(function, "__name__", type(function).__name__)
    name = name if name.isidentifier() else "f"
    jitted = jax.jit(function, keep_unused=True)
    try:
        module = jitted.trace(*arguments).lower(lowering_platforms=("cpu",)).compiler_ir("stablehlo")
    except Exception as error:  # JAX or the function may raise any type
        message = str(error).strip().split("\n")[0] or type(error).__name__
        raise InputError(f"JAX refuses {name}: {message}") from error
    inputs = _input_names(function, arguments)
    if not {*_CHLO.findall(str(module.operation.get_asm(large_elements_limit=LARGE)))} <= {*functions}:
        exported = jax.export.export(jitted, platforms=["cpu"])(*arguments)  # takes apart ops of CHLO
        return JaxProgram(name, str(exported.mlir_module()), {}, inputs)
    constants = _large_constants(module)
    text = module.operation.get_asm(large_elements_limit=LARGE, enable_debug_info=True)
    parts = text.split(_ELIDED)
    if len(parts) != len(constants) + 1:
        raise InputError(f"{name} has a constant of a dtype that te lacks")
    names = [f"elements_{n}" for n in range(len(constants))]
    numbered = "".join(f"{part}dense_resource<{name}>" for part, name in zip(parts, names, strict=False))
    return JaxProgram(name, numbered + parts[-1], dict(zip(names, constants, strict=True)), inputs)


def _large_constants(module: Any) -> list[NDArray[Any]]:
    """Return the arrays of the constants whose elements the text elides, in their order in the text, without those of
    dtypes that te lacks."""
    constants: list[Any] = []

    def visit(op: Any) -> Any:
        if op.name == "stablehlo.constant":
            constants.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return [_array(op, value) for op in constants if (value := _value(op)) is not None]


def _value(op: Any) -> Any:
    """Return the elements of a constant that the text elides; None for a constant that it prints, and for elements that
    te lacks."""
    if _dtype(op) is None:
        return None
    value = op.attributes["value"]
    return None if value.is_splat or math.prod(value.type.shape) <= LARGE else value


def _dtype(op: Any) -> Dtype | None:
    """Return the te dtype of a constant, None if te lacks it; unsigned integers are `ui8` in MLIR, `u8` in te."""
    return DTYPES.get(str(ir.ShapedType(op.results[0].type).element_type).replace("ui", "u"))


def _array(op: Any, value: Any) -> NDArray[Any]:
    """Return the elements of a constant, from its attribute `value`; those of bf16 from its text, since MLIR's bindings
    lack that dtype."""
    row = _dtype(op)
    if row is None or row.name != "bf16":
        return np.array(value)
    digits = _HEX.search(op.get_asm())
    assert digits is not None
    return np.frombuffer(bytes.fromhex(digits[1]), row.array).reshape(ir.ShapedType(op.results[0].type).shape)


def _input_names(function: Callable[..., Any], arguments: Sequence[Any]) -> tuple[str, ...]:
    """Return a name for each leaf of the arguments: the parameter's name and the leaf's path, such as params_w of
    `params['w']`; argument n without a parameter of its own is `xn`."""
    try:
        parameters = [*inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):
        parameters = []
    plain = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    names = [*plain, *(f"x{n}" for n in range(len(plain), len(arguments)))]
    leaves, _ = jax.tree_util.tree_flatten_with_path(tuple(arguments))
    spelled = [f"{names[path[0].idx]}{jax.tree_util.keystr(path[1:])}" for path, _ in leaves]
    return tuple(re.sub(r"\W+", "_", name).strip("_") or "x" for name in spelled)
