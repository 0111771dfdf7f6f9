"""A low-level function as a C file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from compiler.dialects.dense import DenseAttr
from compiler.dialects.functions import constant_values
from compiler.dialects.upstream.memref import GlobalOp
from compiler.program.names import fresh
from compiler.targets.arguments import Argument
from compiler.targets.c.constants import WIDTH, declaration
from compiler.targets.c.language import C
from compiler.targets.c.names import is_reserved, symbol
from compiler.targets.c.writer import CWriter
from compiler.targets.clike.language import may_contract

HEADERS = ("math", "stdbool", "stdint", "stdlib", "string")
_CONTRACTED = (arith.AddfOp, arith.SubfOp, arith.MulfOp)


@dataclass(frozen=True)
class CSource:
    """A C file. text: its contents; symbol: the name of its function; contracts: whether compilers may contract a
    product and a sum to an fma."""

    text: str
    symbol: str
    contracts: bool


def emit(module: ModuleOp, function: FuncOp, arguments: Sequence[Argument], outputs: int) -> CSource:
    """Write a function as C, with the constants of its module; `arguments` describe all its arguments, constants
    included, and the last `outputs` are results. Raises LoweringError for an op that C lacks."""
    language, name = C(), symbol(function.sym_name.data)
    names, arrays = dict[str | int, str](), list[str]()
    for key, stem, value, type_ in _constants(language, module, function):
        names[key] = _unused_name(stem, {name, *names.values()})
        arrays.append(declaration(language, names[key], value, type_))
    writer = CWriter(function, language, names)
    body = writer.body()
    given_arguments = [argument for number, argument in enumerate(arguments) if number not in names]
    declarations = [parameter.declaration for parameter in writer.parameters]
    contracts = all(map(_is_contracted, function.walk()))
    parts = [
        _comment(name, [p.name for p in writer.parameters], given_arguments, outputs, contracts),
        "\n".join(f"#include <{header}.h>" for header in HEADERS),
        *language.helpers.definitions(),
        *arrays,
        "\n".join(filter(None, (f"{_head(name, declarations)} {{", body, "}"))),
    ]
    return CSource("\n\n".join(parts) + "\n", name, contracts)


def _head(name: str, parameters: Sequence[str]) -> str:
    """Return the declarator of the function `name` with its parameter declarations, on one line, or with a line for
    each."""
    line = f"void {name}({', '.join(parameters) or 'void'})"
    return line if len(line) <= WIDTH else f"void {name}(\n    " + ",\n    ".join(parameters) + ")"


def _constants(
    language: C, module: ModuleOp, function: FuncOp
) -> Iterator[tuple[str | int, str, DenseAttr, MemRefType]]:
    """Yield the constants of a program: key (name of a global or position of an argument), preferred name, elements and
    type; globals first. Raises LoweringError for a global that is no constant with a value, and for any other op beside
    the function."""
    for op in module.ops:
        if isinstance(op, GlobalOp):
            if op.constant is None or not isinstance(op.initial_value, DenseAttr):
                raise language.lacks(f"the memref.global @{op.sym_name.data}, which is no constant with a value,")
            assert isinstance(op.type, MemRefType)
            yield op.sym_name.data, op.sym_name.data, op.initial_value, op.type
        elif op is not function:
            raise language.lacks(f"'{op.name}' beside the function @{function.sym_name.data}")
    for number, value in constant_values(function).items():
        type_ = function.args[number].type
        assert isinstance(type_, MemRefType)
        yield number, function.args[number].name_hint or f"constant{number}", value, type_


def _unused_name(stem: str, taken: set[str]) -> str:
    """Return a C identifier like `stem` that is not in `taken`, with the prefix `constant_` if it is reserved or begins
    with a digit or `_`."""
    identifier = re.sub(r"\W", "_", stem, flags=re.ASCII)
    identifier = (
        f"constant_{identifier}"
        if identifier[:1].isdigit() or identifier[:1] == "_" or is_reserved(identifier)
        else identifier
    )
    return fresh(identifier, taken, "_")


def _comment(name: str, names: Sequence[str], arguments: Sequence[Argument], outputs: int, contracts: bool) -> str:
    width = max(map(len, names), default=0)
    first_output = len(arguments) - outputs
    lines = [f"/* {name}: arrays in row-major order, none of which overlaps one that is written."]
    for number, (spelling, argument) in enumerate(zip(names, arguments, strict=True)):
        shape = " x ".join(map(str, argument.shape)) or "one number"
        lines.append(
            f" *   {spelling:{width}}  {argument.dtype} {shape}, {'input' if number < first_output else 'output'}"
        )
    fp_contract = "fast" if contracts else "off"
    lines.append(f" * gcc or clang: -std=c11 -O3 -march=native -fopenmp -ffp-contract={fp_contract} -lm */")
    return "\n".join(lines)


def _is_contracted(op: Operation) -> bool:
    """Return whether an op is no float sum, difference or product, which compilers contract to fma, or its flags allow
    that."""
    return not isinstance(op, _CONTRACTED) or may_contract(op)
