"""Functions of JAX as te functions: traced to StableHLO, parsed, converted."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import NDArray
from xdsl.utils.exceptions import ParseError, VerifyException

from compiler import universe
from compiler.dialects.functions import find_function
from compiler.dialects.modules import parsed
from compiler.dialects.parser import Parser
from compiler.frontends.jax.lines import source_line, user_line
from compiler.frontends.jax.tracing import JaxProgram, trace
from compiler.frontends.model import Imported
from compiler.lowering.stablehlo_to_te.function import convert
from compiler.lowering.stablehlo_to_te.table import HANDLERS
from compiler.support import spans
from compiler.support.errors import InputError, LoweringError

_USE = re.compile(r"loc\((#loc\d*)\)[ \t]*$", re.MULTILINE)
_FUNCTION = re.compile(r'func\.func private (@"[^"]*"|@[\w.$]+)')
SOURCE = "<jax>"
"""The name of the text that JAX prints, in locations."""


def import_traced(function: Callable[..., Any], arguments: Sequence[Any]) -> Imported:
    """Trace a function of JAX and convert it to te. Raises InputError, with the op and the line of the function, for an
    op without a te form, and for a function that JAX refuses."""
    program = trace(function, arguments, [name for name in HANDLERS if name.startswith("chlo.")])
    spans.remember(SOURCE, program.text)
    try:
        module = parsed(universe.context(), program.text, SOURCE)
        weights: dict[str, NDArray[Any]] = {}
        te = convert(module, find_function(module), program.name, program.inputs, program.elements, weights)
    except (ParseError, VerifyException, LoweringError) as error:
        raise _refused(program, error) from error
    return Imported(te, weights)


def _refused(program: JaxProgram, error: Exception) -> InputError:
    """Return the error of a program without a te form: the sentence, and the line of the user's function."""
    span, op = spans.of_error(error), spans.op_of(error)
    sentence = error.msg if isinstance(error, ParseError) else str(error)
    line = source_line(op) if op is not None else None
    if line is None and span is not None and span.source == SOURCE:
        line = _line_in_text(program.text, span.line)
    shown = line or (f"line {span.line} of its StableHLO" if span is not None else "its StableHLO")
    return InputError(f"{program.name} has no te form: {sentence.strip()} (at {shown})")


def _line_in_text(text: str, line: int) -> str | None:
    """Return the user's line of the op at a line of a text (counted from 1), or of a call of the function around it;
    None without one. It reads the text alone, since ops at fault may not parse."""
    lines, visited = text.split("\n"), set[int]()
    while line not in visited:
        visited.add(line)
        use = _USE.search(text, sum(len(before) + 1 for before in lines[: line - 1]))
        if use is not None:
            parser = Parser(universe.context(), text, SOURCE)
            parser._resume_from(use.start(1))
            found = user_line(parser._parse_location())
            if found is not None:
                return found
        function = next(filter(None, map(_FUNCTION.search, reversed(lines[:line]))), None)
        if function is not None:
            line = next((n for n, entry in enumerate(lines, 1) if f"call {function[1]}(" in entry), line)
    return None
