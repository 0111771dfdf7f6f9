"""The listings of strata-opt: passes with their options, dialects, and the words that a shell completes."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Iterator
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, get_type_hints

from compiler import universe
from compiler.support import plugins
from compiler.support.errors import InputError
from compiler.support.text import counted, unknown

if TYPE_CHECKING:
    from xdsl.passes import ModulePass


def passes() -> Iterator[str]:
    """Yield the lines of --list-passes: our passes with their options, pipelines, and the parts of plugins."""
    from compiler.pipeline.passes import PIPELINES

    yield "passes:"
    for name, sentence in universe.our_passes().items():
        yield _line(name, sentence)
        kind = universe.find_pass(name)
        yield from (f"      {option}" for option in (() if kind is None else _options(kind)))
    yield "pipelines:"
    yield from (_line(name, f"= {text}") for name, text in PIPELINES.items())
    for registry in plugins.registries():
        yield f"plugin {registry.plugin}:"
        for part in registry.parts:
            yield _line(part.name, _described(part))
            yield from (f"      {option}" for option in (_options(part.value) if part.kind == "pass" else ()))
    yield f"--list-foreign-passes lists {counted(len(universe.foreign_passes()), 'pass', 'es')} of xDSL"


def foreign_passes() -> Iterator[str]:
    """Yield the lines of --list-foreign-passes: the names of xDSL's passes."""
    yield "xDSL's passes:"
    yield from (f"  {name}" for name in sorted(universe.foreign_passes()))


def pass_help(name: str) -> Iterator[str]:
    """Yield the lines of --help PASS: the docstring of a pass and its options, or the passes of a pipeline. Raises
    InputError for an unknown name."""
    from compiler.pipeline.passes import PIPELINES

    if name in PIPELINES:
        yield f"{name} = {PIPELINES[name]}"
        return
    kind = universe.find_pass(name)
    if kind is None:
        raise InputError(unknown("pass", name, universe.pass_names()))
    yield f"--{name}"
    yield from inspect.cleandoc(kind.__doc__ or "").splitlines()
    options = list(_options(kind))
    yield from ["", "options:", *(f"  {option}" for option in options)] if options else ["", "It has no options."]


def _options(kind: type[ModulePass]) -> Iterator[str]:
    """Yield `name=type` of each option of a pass, with its default."""
    from xdsl.utils.hints import type_repr

    hints = get_type_hints(kind)
    for field in fields(kind):
        if field.init:
            default = "" if field.default is MISSING else f"  (default: {_shown(field.default)})"
            yield f"{field.name.replace('_', '-')}={type_repr(hints[field.name])}{default}"


def _shown(default: object) -> str:
    return "none" if default in (None, ()) else str(default).lower() if isinstance(default, bool) else str(default)


def _line(name: str, text: str) -> str:
    return f"  {name:24} {text}".rstrip()


def _described(part: plugins.Part) -> str:
    """Describe a plugin's part in one line: a pass by the first sentence of its docstring, others by their kind."""
    return (part.kind == "pass" and universe.first_sentence(part.value.__doc__ or "")) or part.kind


def dialects() -> str:
    """Return the line of --show-dialects, as mlir-opt prints it: our dialects, xDSL's and those of plugins, sorted."""
    names = {*universe.own_dialects(), *universe.UPSTREAM, *plugins.parts("dialect")}
    return f"Available Dialects: {', '.join(sorted(names))}"


def completion(shell: str, parser: argparse.ArgumentParser) -> str:
    """Return a script for bash, zsh or fish that completes the options and passes of strata-opt, and files."""
    options = sorted(name for name in parser._option_string_actions if name.startswith("--"))
    words = [*options, *(f"--{name}" for name in sorted(universe.pass_names()))]
    if shell == "fish":
        return "".join(f"complete -c strata-opt -l {word[2:]}\n" for word in words)
    start = "autoload -U bashcompinit; bashcompinit\n" if shell == "zsh" else ""
    return f"{start}complete -o default -W '{' '.join(words)}' strata-opt\n"
