"""Functions at the loop and low level: buffers as arguments, the last `outputs` of them results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    TensorType,
    UnitAttr,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from compiler.support.errors import InputError

if TYPE_CHECKING:
    from compiler.dialects.dense import DenseAttr

SLOT_ALIGNMENT = 64
"""The alignment in bytes of the workspace, of each slot in it, and of arguments that the attribute `aligned` lists."""


def functions(module: ModuleOp) -> list[FuncOp]:
    """Return all functions of a module, in order.

    >>> A = te.placeholder((4,), name="A")
    >>> f = te.function("f", [A], te.nn.exp(A))
    >>> [function.sym_name.data for function in strata.dialects.functions(f.module)]
    ['f']
    """
    return [op for op in module.ops if isinstance(op, FuncOp)]


def find_function(module: ModuleOp, name: str | None = None) -> FuncOp:
    """Find a function by name or, without one, the only function or the only public one.

    Private functions are groups, which other functions of the module call. Raises InputError if no function or several
    fit.

    >>> A = te.placeholder((4,), name="A")
    >>> strata.dialects.find_function(te.function("f", [A], te.nn.exp(A)).module).sym_name.data
    'f'
    """
    named = [f for f in functions(module) if name is None or f.sym_name.data == name]
    if name is None and len(named) > 1:
        named = [f for f in named if not is_private(f)] or named
    if len(named) == 1:
        return named[0]
    names = ", ".join(f.sym_name.data for f in functions(module))
    if not named:
        hint = f" (it has {names})" if names else ""
        if not names and any(op.name == "transform.named_sequence" for op in module.walk()):
            hint = ": it is a script, for --script or --schedule, or schedule= of a build"
        raise InputError(f"the module has no function {f'@{name}' if name else 'at all'}{hint}")
    raise InputError(f"the module has several functions ({names}); name the one to use")


def is_private(function: FuncOp) -> bool:
    """Whether a function is private: only functions of its module can call it."""
    return function.sym_visibility is not None and function.sym_visibility.data == "private"


def has_tensors(function: FuncOp) -> bool:
    """Whether an argument or a result of a function is a tensor."""
    types = [*function.function_type.inputs, *function.function_type.outputs]
    return any(isinstance(type, TensorType) for type in types)


def outputs(function: FuncOp) -> int:
    """The number of trailing arguments that are results, from the attribute `outputs`; 0 without it. Raises InputError
    if it is no number of arguments."""
    attribute = function.attributes.get("outputs")
    if attribute is None:
        return 0
    if not isinstance(attribute, IntegerAttr) or not 0 <= attribute.value.data <= len(function.function_type.inputs):
        raise InputError(f"the attribute 'outputs' of @{function.sym_name.data} is not a count of its arguments")
    return int(attribute.value.data)


def positions(function: FuncOp, attribute: str) -> set[int]:
    """Return the positions of the arguments that an attribute of a function lists; empty without the attribute.
    `unsigned` lists the arguments of unsigned integers, `aligned` the arguments aligned to 64 bytes, `constants` the
    arguments that are the same in all calls. Raises InputError for entries that are no positions of arguments."""
    listing = function.attributes.get(attribute)
    listed = listing.get_values() if isinstance(listing, DenseArrayBase) else () if listing is None else (-1,)
    if not all(isinstance(n, int) and 0 <= n < len(function.function_type.inputs) for n in listed):
        raise InputError(f"the attribute '{attribute}' of @{function.sym_name.data} does not list its arguments")
    return {int(n) for n in listed}


def constant_values(function: FuncOp) -> dict[int, DenseAttr]:
    """Return the known elements of constant arguments, by the position of the argument. The attribute `constant_values`
    has one entry for each position in `constants`: the elements, or `unit` if callers pass them. Raises InputError for
    entries that do not fit the arguments."""
    stated = function.attributes.get("constant_values")
    if stated is None:
        return {}
    from compiler.dialects.dense import DenseAttr  # loads numpy, which few functions need

    listed, name = sorted(positions(function, "constants")), function.sym_name.data
    if not isinstance(stated, ArrayAttr) or len(stated) != len(listed):
        raise InputError(f"the attribute 'constant_values' of @{name} has not one value for each of its constants")
    elements: dict[int, DenseAttr] = {}
    for n, value in zip(listed, stated, strict=True):
        if isinstance(value, UnitAttr):
            continue
        type = function.args[n].type
        if not isinstance(value, DenseAttr) or _content(value.type) != _content(type):
            raise InputError(f"the attribute 'constant_values' of @{name} has {value} for argument {n} of type {type}")
        elements[n] = value
    return elements


def state_constants(function: FuncOp, values: Mapping[int, DenseAttr | None]) -> None:
    """Replace the attributes of constant arguments; `values` maps each position to its elements, None if unknown.
    Without values the attributes are removed."""
    for name in ("constants", "constant_values"):
        function.attributes.pop(name, None)
    listed = sorted(values)
    if listed:
        function.attributes["constants"] = DenseArrayBase.from_list(i64, listed)
    if any(values.values()):
        function.attributes["constant_values"] = ArrayAttr(values[n] or UnitAttr() for n in listed)


def _content(type: Attribute) -> tuple[object, ...]:
    """The element type and the shape of a tensor or buffer; empty for other types."""
    return (type.element_type, *type.get_shape()) if isinstance(type, TensorType | MemRefType) else ()
