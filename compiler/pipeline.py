"""The named pipelines, the only place where pass order is written, and how passes are parsed and run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, get_type_hints

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from compiler.dialects.dominance import verify_module
from compiler.errors import InputError
from compiler.printable import unknown
from compiler.universe import find_pass, pass_names

if TYPE_CHECKING:
    from xdsl.passes import ModulePass
    from xdsl.utils.arg_spec import ArgSpec, ParameterListType

_LOW_TO_CPU = "transpose-scatters,extend-floats,expand-math,plan-buffers"

PIPELINES: dict[str, str] = {
    "te-to-low": "check-combiners,te-to-loop,reorder-contiguous,loop-to-low,promote-buffers",
    "low-to-cpu": f"check-bounds,{_LOW_TO_CPU}",
    "loop-to-cpu": f"check-combiners,loop-to-low,promote-buffers,{_LOW_TO_CPU}",
    "cpu": f"check-combiners,te-to-loop,reorder-contiguous,loop-to-low,promote-buffers,{_LOW_TO_CPU}",
}

_FROM = {"te": "cpu", "loop": "loop-to-cpu", "low": "low-to-cpu"}

Watch = Callable[["ModulePass", ModuleOp], None]

_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[^",(){}]+|.', re.DOTALL)
_OPTION = re.compile(r'([\w-]+)(?:=(?:"(?:\\.|[^"\\])*"|[^\s"])*)?')
_DOTTED = re.compile(r'"(?:\\.|[^"\\])*"|(?<=[=,])(?=[\w-]*[./])(?![-.\d]*[,}\s]|[\d.]+$)[\w./-]+')
_ANCHOR = re.compile(r"\s*([\w.]+)\s*\((.*)\)\s*", re.DOTALL)


def parse_passes(text: str) -> list[ModulePass]:
    """The passes of `a{x=1 y=2},b`, named pipelines expanded.

    Raises InputError for a name that neither Strata nor xDSL has, and for options that a pass does not take.
    """
    return [item for part in _parts(text) for item in _passes(part)]


def passes_from(level: str, policy: str) -> list[ModulePass]:
    """The passes from a level (te, loop or low) to what native code is emitted from, under a floating-point policy."""
    return [_under(policy, item) for item in parse_passes(_FROM[level])]


def _under(policy: str, item: ModulePass) -> ModulePass:
    """A pass under a floating-point policy, if it has that option."""
    stated = any(field.name == "policy" for field in fields(item))
    return replace(item, policy=policy) if stated else item  # type: ignore[call-arg]


def parse_nested(text: str) -> list[ModulePass]:
    """The passes of `builtin.module(a,func.func(b{x=1}))`, as mlir-opt writes it; all run on the module."""
    anchor = _ANCHOR.fullmatch(text)
    if anchor is None or anchor[1] not in ("builtin.module", "any"):
        raise InputError(f"a pass pipeline is written 'builtin.module(...)', not '{text}'")
    return list(_nested(anchor[2]))


def _nested(text: str) -> Iterator[ModulePass]:
    for part in _parts(text):
        anchor = _ANCHOR.fullmatch(part)
        if anchor is None:
            yield from _passes(part)
        elif anchor[1] in ("func.func", "builtin.module", "any"):
            yield from _nested(anchor[2])
        else:
            raise InputError(f"'{part}' is not a pass; passes nest in builtin.module and func.func only")


def _parts(text: str) -> list[str]:
    """What stands between the commas that are inside no brackets and no quotes."""
    if not text.strip():
        return []
    parts, open_brackets = [""], ""
    for token in _TOKEN.findall(text):
        if token == "," and not open_brackets:
            parts.append("")
            continue
        if token in "({":
            open_brackets += token
        elif token in ")}":
            if not open_brackets.endswith({")": "(", "}": "{"}[token]):
                raise InputError(f"unbalanced braces or brackets at a '{token}' in the passes '{text}'")
            open_brackets = open_brackets[:-1]
        parts[-1] += token
    if open_brackets:
        raise InputError(f"unbalanced braces or brackets: a '{open_brackets[-1]}' is not closed in the passes '{text}'")
    if not all(part.strip() for part in parts):
        raise InputError(f"an empty name in the passes '{text}'")
    return [part.strip() for part in parts]


def _passes(text: str) -> list[ModulePass]:
    if text in PIPELINES:
        return parse_passes(PIPELINES[text])
    name, opened, options = (part.strip() for part in text.partition("{"))
    if name in PIPELINES:
        raise InputError(f"'{name}' is a pipeline, which takes no options")
    kind = find_pass(name)
    if kind is None:
        raise InputError(unknown("pass", name, [*PIPELINES, *pass_names()]))
    spec = _spec(name, opened + options, kind)
    try:
        return [kind.from_spec(spec)]
    except (TypeError, ValueError) as error:
        raise InputError(f"the pass '{name}' does not take these options: {error}") from error


def _spec(name: str, options: str, kind: type[ModulePass]) -> ArgSpec:
    """The options in xDSL's form, each checked against the field of the pass that takes it."""
    from xdsl.utils.arg_spec import ArgSpec, parse_spec
    from xdsl.utils.exceptions import ArgSpecParseError

    inner = options.removeprefix("{").removesuffix("}").strip()
    inner = _DOTTED.sub(
        lambda found: found[0] if found[0].startswith('"') else f'"{found[0]}"', inner
    )  # C.m.0, a/b.mlir
    keys = [match[1] for match in _OPTION.finditer(inner)]
    for key in keys:
        if keys.count(key) > 1:
            raise InputError(f"the option '{key}' of the pass '{name}' is given twice")
    if options and not options.endswith("}"):
        raise InputError(f"the options '{inner}' of the pass '{name}' cannot be read: there is more after the '}}'")
    try:
        given = parse_spec(f"{name}{{{inner}}}").normalize_parameter_names().parameters
    except ArgSpecParseError as error:
        said = str(error).strip().splitlines()[-1].strip()
        raise InputError(f"the options '{inner}' of the pass '{name}' cannot be read: {said}") from error
    return ArgSpec(name, {key: _value(kind, key, value) for key, value in given.items()})


def _value(kind: type[ModulePass], key: str, value: ParameterListType) -> ParameterListType:
    """The value of an option; a bare flag is true."""
    from xdsl.utils.hints import isa, type_repr

    hints = get_type_hints(kind)
    known = [field.name for field in fields(kind) if field.init]
    if key not in known:
        raise InputError(f"the pass '{kind.name}' does not take these options: {unknown('option', key, known)}")
    hint = hints[key]
    if not value and hint is bool:
        return (True,)
    fits = isa(value, hint) or (len(value) == 1 and isa(value[0], hint)) or (not value and isa(None, hint))
    if not fits:
        shown = ",".join(str(item) for item in value)
        fault = f"which '{shown}' is not" if value else "and has no value"
        raise InputError(
            f"the pass '{kind.name}' does not take these options: '{key}' is of type {type_repr(hint)}, {fault}"
        )
    return value


def run(
    ctx: Context, module: ModuleOp, passes: Sequence[ModulePass], after: Watch | None = None, each: bool = True
) -> None:
    """Apply passes in order, verify the module after each (or only at the end), and show it to `after`.

    Raises what the passes do, and InputError for a program that is nested too deeply for them.
    """
    try:
        for number, item in enumerate(passes, 1):
            item.apply(ctx, module)
            if each or number == len(passes):
                verify_module(module)
            if after is not None:
                after(item, module)
    except RecursionError as error:
        raise InputError("the program is nested too deeply") from error
