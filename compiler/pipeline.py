"""The named pipelines, the only place where pass order is written, and how passes are parsed and run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from compiler.dialects.dominance import verify_module
from compiler.errors import InputError
from compiler.universe import PASSES, find_pass

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

PIPELINES: dict[str, str] = {
    "te-to-low": "te-to-loop,reorder-contiguous,loop-to-low,promote-buffers",
    "loop-to-cpu": "loop-to-low,promote-buffers,plan-buffers",
    "cpu": "te-to-loop,reorder-contiguous,loop-to-low,promote-buffers,plan-buffers",
}

Watch = Callable[["ModulePass", ModuleOp], None]


def parse_passes(text: str) -> list[ModulePass]:
    """The passes of `a{x=1 y=2},b`, named pipelines expanded.

    Raises InputError for a name that neither Strata nor xDSL has, and for options that a pass does not take.
    """
    return [item for spec in _specs(text) for item in _passes(spec)]


def parse_nested(text: str) -> list[ModulePass]:
    """The passes of mlir-opt's notation, `builtin.module(a,func.func(b{x=1}))`; all of them run on the module."""
    text = text.strip()
    head, opened, rest = text.partition("(")
    if head.strip() != "builtin.module" or not opened or not rest.endswith(")"):
        raise InputError(f"a pass pipeline is written 'builtin.module(...)', not '{text}'")
    found: list[ModulePass] = []
    for part in _parts(rest[:-1]):
        inner, opened, body = part.partition("(")
        if opened and "{" not in inner:
            if inner.strip() != "func.func" or not body.endswith(")"):
                raise InputError(f"'{part}' is not a pass; passes nest in builtin.module or func.func only")
            found += parse_nested(f"builtin.module({body}")
        else:
            found += parse_passes(part)
    return found


def _parts(text: str) -> Iterator[str]:
    depth, part = 0, ""
    for char in text:
        depth += (char in "({") - (char in ")}")
        if char == "," and depth == 0:
            yield part
            part = ""
        else:
            part += char
    if part or text:
        yield part


def _specs(text: str) -> list[str]:
    if text.count("{") != text.count("}"):
        raise InputError(f"unbalanced braces in the passes '{text}'")
    parts = [part.strip() for part in _parts(text)]
    if "" in parts:
        raise InputError(f"an empty name in the passes '{text}'")
    return parts


def _passes(spec: str) -> list[ModulePass]:
    if spec in PIPELINES:
        return parse_passes(PIPELINES[spec])
    from xdsl.utils.arg_spec import parse_spec
    from xdsl.utils.exceptions import ArgSpecParseError

    name, _, options = spec.partition("{")
    _no_duplicates(name, options)
    kind = find_pass(name.strip())
    if kind is None:
        close = get_close_matches(name, [*PASSES, *PIPELINES], 1)
        raise InputError(f"there is no pass '{name}'" + (f"; did you mean '{close[0]}'?" if close else ""))
    try:
        return [kind.from_spec(parse_spec(spec))]
    except ArgSpecParseError as error:
        raise InputError(f"the options of '{spec}' cannot be read ({_first_line(error)})") from error
    except (TypeError, ValueError, AttributeError) as error:
        raise InputError(f"the pass '{name}' does not take these options: {_first_line(error)}") from error


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[-1].strip() if str(error).strip() else type(error).__name__


def _no_duplicates(name: str, options: str) -> None:
    keys = [word.partition("=")[0] for word in options.rstrip("}").split() if "=" in word]
    for key in keys:
        if keys.count(key) > 1:
            raise InputError(f"the option '{key}' of the pass '{name}' is given twice")


def run(ctx: Context, module: ModuleOp, passes: Sequence[ModulePass], after: Watch | None = None) -> None:
    """Apply passes in order, verify the module after each, and show it to `after`."""
    for item in passes:
        item.apply(ctx, module)
        verify_module(module)
        if after is not None:
            after(item, module)
