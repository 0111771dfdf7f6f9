"""Functions of JAX as te functions: traced to StableHLO, parsed, converted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import NDArray
from xdsl.utils.exceptions import ParseError, VerifyException

from compiler import universe
from compiler.dialects.functions import find_function
from compiler.dialects.modules import parsed
from compiler.frontends.jax.lines import source_line
from compiler.frontends.jax.tracing import JaxProgram, trace
from compiler.frontends.model import Imported
from compiler.lowering.stablehlo_to_te.function import convert
from compiler.lowering.stablehlo_to_te.table import HANDLERS
from compiler.support import spans
from compiler.support.errors import InputError, LoweringError

SOURCE = "<jax>"
"""The name of the text that JAX prints, in locations."""


def import_traced(function: Callable[..., Any], arguments: Sequence[Any]) -> Imported:
    """Trace a function of JAX and convert it to te. Raises InputError, with the op and the line of the function, for an
    op without a te form."""
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
    span = spans.of_error(error)
    sentence = error.msg if isinstance(error, ParseError) else str(error)
    line = None if span is None else source_line(program.text, span.line)
    shown = line or (f"line {span.line} of its StableHLO" if span is not None else "its StableHLO")
    return InputError(f"{program.name} has no te form: {sentence.strip()} (at {shown})")
