"""Models of other tools: ONNX files by name, functions of JAX, and the results of front ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from os import PathLike, fspath
from typing import Any

from compiler.frontends.model import Imported
from compiler.support.errors import InputError

SUFFIX = ".onnx"


def is_model(x: object) -> bool:
    """Whether an object is the path of an ONNX file, by its suffix .onnx."""
    if not isinstance(x, str | PathLike):
        return False
    name = fspath(x)
    return isinstance(name, str) and "\n" not in name and name.endswith(SUFFIX)


def from_onnx(model: object, shapes: Mapping[str, Any] | None = None) -> Imported:
    """Convert an ONNX model, a ModelProto or the path of a file, to a te function with the arrays of its weights.

    The function's inputs are those of the model, in order, then the weights, whose arrays are in `constants`. `shapes`
    are extents of symbolic dimensions by name, such as {"N": 1}, or full shapes by the names of inputs. Raises
    InputError for operators without a te form (see docs/onnx.md), a file that is no valid model, `shapes` that the
    model lacks or that do not fit it, and if the package onnx is not installed.

    >>> import onnx
    >>> graph = onnx.parser.parse_graph("g (float[N, 3] x) => (float[N, 3] y) { y = Relu(x) }")
    >>> from_onnx(onnx.helper.make_model(graph), shapes={"N": 2}).function
    <Function g(x: f32[2, 3]) -> y: f32[2, 3]>
    """
    if find_spec("onnx") is None:
        raise InputError("models of ONNX need the package onnx: pip install 'strata-compiler[onnx]'")
    from compiler.frontends.onnx import from_onnx as read

    return read(model, shapes)


def from_jax(function: Callable[..., Any], arguments: Sequence[Any]) -> Imported:
    """Import a function of JAX, for example arguments, as a te function with the arrays that it closes over.

    arguments: a list or tuple with an entry for each parameter: an array, a `jax.ShapeDtypeStruct`, or a tree of them;
    a single array is one argument. The function's inputs are the leaves in order, then the large arrays it closes over,
    whose values are in `constants`; small ones are embedded. Trees of results are flattened in order.

    Raises InputError for a function that JAX refuses, for ops without a te form, which are named with their line, and
    if the package jax is not installed.

    >>> import jax.numpy as jnp
    >>> from_jax(lambda x: jnp.tanh(x) + 1, [jnp.ones((2, 3))]).function
    <Function f(x: f32[2, 3]) -> add: f32[2, 3]>
    """
    if find_spec("jax") is None:
        raise InputError("from_jax needs the package jax: pip install 'strata-compiler[jax]'")
    if not callable(function):
        raise InputError(f"from_jax takes a function of JAX, not a {type(function).__name__}")
    if not isinstance(arguments, list | tuple):
        if not hasattr(arguments, "shape"):
            raise InputError(f"the arguments of a function are a list of arrays, not a {type(arguments).__name__}")
        arguments = (arguments,)
    from compiler.pipeline.stablehlo import import_traced  # loads jax

    return import_traced(function, arguments)


def import_model(x: object) -> object:
    """Convert the path of an ONNX file to an Imported; return anything else unchanged."""
    return from_onnx(x) if is_model(x) else x


def program_and_constants(x: object, constants: Mapping[str, Any] | None) -> tuple[object, Mapping[str, Any] | None]:
    """Return a program and its constants by name: for a model its te function and its constants joined with
    `constants`, for any other program `x` and `constants` themselves. Raises InputError for a name in both."""
    program = import_model(x)
    if not isinstance(program, Imported):
        return program, constants
    for name in constants or {}:
        if name in program.constants:
            raise InputError(f"'{name}' is a constant of the model: its elements are known")
    return program.function, {**program.constants, **(constants or {})}
