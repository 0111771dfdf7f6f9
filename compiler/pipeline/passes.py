"""The passes of a text, named pipelines expanded, and how they run."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from compiler import universe
from compiler.dialects.dominance import verify_module
from compiler.pipeline.options import made
from compiler.pipeline.text import Substring, elements
from compiler.support.errors import InputError
from compiler.support.text import unknown

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

_LOW_TO_CPU = "transpose-scatters,extend-floats,expand-math,plan-buffers"

PIPELINES: dict[str, str] = {
    "te-to-low": "check-combiners,te-to-loop,reorder-contiguous,loop-to-low,promote-buffers",
    "low-to-cpu": f"check-bounds,{_LOW_TO_CPU}",
    "loop-to-cpu": f"check-combiners,loop-to-low,promote-buffers,{_LOW_TO_CPU}",
    "cpu": f"check-combiners,te-to-loop,reorder-contiguous,loop-to-low,promote-buffers,{_LOW_TO_CPU}",
}

_FROM = {"te": "cpu", "loop": "loop-to-cpu", "low": "low-to-cpu"}

Watch = Callable[["ModulePass", ModuleOp], None]

VERIFY_EACH = "STRATA_VERIFY_EACH"
"""The environment variable that, set to 1, has modules verified behind each pass."""
_ANCHOR = re.compile(r"([\w.]+)\s*\((.*)\)", re.DOTALL)


@dataclass(frozen=True)
class PipelineStep:
    """A pass, and what states it in the text of a pipeline."""

    item: ModulePass
    stated: Substring


def parse_passes(text: str) -> list[ModulePass]:
    """The passes of `a{x=1 y=2},b`, named pipelines expanded.

    Raises InputError for a name that neither Strata nor xDSL has, and for options that a pass does not take.
    """
    return [step.item for step in steps(text)]


def steps(text: str) -> list[PipelineStep]:
    """The passes of a text as `parse_passes` gives them, with their places."""
    return [step for part in elements(Substring.of(text)) for step in _steps(part)]


@cache
def passes_from(level: str, policy: str) -> tuple[ModulePass, ...]:
    """The passes from a level (te, loop or low) to the code that emission takes, under a floating-point policy."""
    return tuple(under(policy, parse_passes(_FROM[level])))


def under(policy: str, passes: Sequence[ModulePass]) -> list[ModulePass]:
    """Passes under a floating-point policy, those that have that option."""
    has_policy = [any(field.name == "policy" for field in fields(unset)) for unset in passes]
    return [replace(p, policy=policy) if has else p for p, has in zip(passes, has_policy, strict=True)]  # type: ignore[call-arg]


def to_code(module: ModuleOp, level: str, policy: str) -> None:
    """Lower a module from a level to the code that emission takes, in place."""
    run(_context(), module, passes_from(level, policy))


@cache
def _context() -> Context:
    """The context of passes that parse nothing."""
    return universe.context()


def nested_steps(text: str) -> list[PipelineStep]:
    """The passes of `builtin.module(a,func.func(b{x=1}))`, as mlir-opt writes it; all run on the module."""
    stripped = Substring.of(text).stripped
    anchor = _ANCHOR.fullmatch(str(stripped))
    if anchor is None or anchor[1] not in ("builtin.module", "any"):
        raise stripped.refused(f"a pass pipeline is written 'builtin.module(...)', not '{text}'")
    return list(_nested(stripped.group(anchor, 2)))


def _nested(nested: Substring) -> Iterator[PipelineStep]:
    for part in elements(nested):
        anchor = _ANCHOR.fullmatch(str(part))
        if anchor is None:
            yield from _steps(part)
        elif anchor[1] in ("func.func", "builtin.module", "any"):
            yield from _nested(part.group(anchor, 2))
        else:
            raise part.group(anchor, 1).refused(
                f"'{part}' is not a pass; passes nest in builtin.module and func.func only"
            )


def _steps(part: Substring) -> list[PipelineStep]:
    if str(part) in PIPELINES:
        return [PipelineStep(parsed, part) for parsed in parse_passes(PIPELINES[str(part)])]
    name, options = _name_and_options(part)
    if str(name) in PIPELINES:
        raise part.refused(f"'{name}' is a pipeline, which takes no options")
    kind = universe.find_pass(str(name))
    if kind is None:
        raise name.refused(unknown("pass", str(name), universe.pass_names()))
    return [PipelineStep(made(kind, name, options), part)]


def _name_and_options(part: Substring) -> tuple[Substring, Substring]:
    """A pass's name, and the text between its braces."""
    text = str(part)
    opened = text.find("{")
    if opened < 0:
        return part, part[len(text) :]
    name, options, after = part[:opened].stripped, part[opened + 1 : text.rindex("}")], part[text.rindex("}") + 1 :]
    if str(after):
        sentence = f"the options '{options}' of the pass '{name}' cannot be read: there is more after the '}}'"
        raise after.stripped.refused(sentence)
    return name, options


def verifies_each() -> bool:
    """Whether the environment says that what the compiler makes is verified too."""
    return os.environ.get(VERIFY_EACH) == "1"


def run(
    ctx: Context, module: ModuleOp, passes: Sequence[ModulePass], after: Watch | None = None, each: bool = False
) -> None:
    """Apply passes in order, and show the module to `after` behind each.

    The module is verified behind each pass where `each` says so or the environment variable STRATA_VERIFY_EACH is 1, as
    in the tests; a build trusts its passes. Raises what the passes do, and InputError for a program that is nested too
    deeply for them.
    """
    verify_each = each or verifies_each()
    try:
        for applied in passes:
            applied.apply(ctx, module)
            if verify_each:
                verify_module(module)
            if after is not None:
                after(applied, module)
    except RecursionError as error:
        raise InputError("the program is nested too deeply") from error
