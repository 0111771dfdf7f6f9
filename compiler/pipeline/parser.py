"""Parse the text of a pipeline to passes, with named pipelines expanded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compiler import universe
from compiler.pipeline.options import build_pass
from compiler.pipeline.passes import PIPELINES
from compiler.pipeline.text import Substring, elements
from compiler.support import plugins
from compiler.support.errors import InputError
from compiler.support.spans import Span
from compiler.support.text import unknown

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

    from compiler.schedule.primitive import Primitive

MODULE, FUNCTION, ANY = "builtin.module", "func.func", "any"
"""The ops in which passes nest; a pass under `any` may run on every op."""
FOREIGN_ON_FUNCTIONS = ("constant-fold-interp", "dce", "lift-arith-to-linalg")
"""xDSL's passes that rewrite each function by itself."""
_ANCHOR = re.compile(r"([\w.]+)\s*\((.*)\)", re.DOTALL)


@dataclass(frozen=True)
class PipelineStep:
    """A pass, and its text in the pipeline.

    >>> (step,) = strata.passes.steps("canonicalize")
    >>> step.module_pass.name, str(step.text)
    ('canonicalize', 'canonicalize')
    """

    module_pass: ModulePass
    text: Substring

    def option(self, name: str) -> Span | None:
        """The source location of an option and its value in the text; None if the text does not have it, or has it as a
        flag without a value."""
        match = re.search(rf"\b{name}=(\"[^\"]*\"|[^\s}}]*)", str(self.text))
        return None if match is None else self.text.group(match, 0).span


def parse_passes(text: str) -> list[ModulePass]:
    """Parse `a{x=1 y=2},b` to passes, with named pipelines expanded.

    Raises InputError for an unknown pass, invalid options, empty elements and unbalanced brackets.

    >>> [item.name for item in strata.passes.parse_passes("te-to-loop,canonicalize")]
    ['te-to-loop', 'canonicalize']
    """
    return [step.module_pass for step in steps(text)]


def steps(text: str) -> list[PipelineStep]:
    """Parse a pipeline to passes, with named pipelines expanded, each with its part of the text, for a pass of a named
    pipeline the pipeline's name. Raises InputError for an unknown pass, invalid options, empty elements and unbalanced
    brackets.

    >>> [str(step.text) for step in strata.passes.steps("te-to-loop,canonicalize")]
    ['te-to-loop', 'canonicalize']
    """
    return [step for part in elements(Substring.of(text)) for step in _steps(part)]


def nested_steps(text: str) -> list[PipelineStep]:
    """Parse `builtin.module(a,func.func(b{x=1}))`, mlir-opt's syntax, to passes; all run on the module.

    Raises InputError for a text that is not written like this, an unknown pass and invalid options, and for a pass
    under func.func that does not rewrite each function by itself, as its attribute `anchor` states.
    """
    stripped = Substring.of(text).stripped
    anchor = _ANCHOR.fullmatch(str(stripped))
    if anchor is None or anchor[1] not in (MODULE, ANY):
        raise stripped.refusal(f"a pass pipeline is written 'builtin.module(...)', not '{text}'")
    return list(_nested(stripped.group(anchor, 2), anchor[1]))


def example_fault(primitive: Primitive) -> str:
    """Check the example (`shell`) of a primitive's pass: return a sentence about its fault; empty if there is none."""
    from compiler.passes.schedule.declared import make_pass

    if not primitive.shell:
        return ""
    name, options = _name_and_options(Substring.of(primitive.shell))
    if not plugins.NAME.fullmatch(str(name)):
        return f"its pass is named '{name}'; its example is such as '{primitive.name.replace('_', '-')}{{block=C}}'"
    try:
        build_pass(make_pass(primitive), name, options)
    except InputError as error:
        return f"its example '{primitive.shell}' is refused: {error}"
    return ""


def _nested(nested: Substring, scope: str) -> Iterator[PipelineStep]:
    """Yield the passes of the elements inside an anchor, the op `scope`. Raises InputError for an invalid element, and
    under func.func for a pass that does not rewrite each function by itself."""
    for element in elements(nested):
        anchor = _ANCHOR.fullmatch(str(element))
        if anchor is None:
            for step in _steps(element):
                if scope == FUNCTION and _anchor(step.module_pass) != FUNCTION:
                    sentence = f"the pass '{step.module_pass.name}' runs on a module, and stands under func.func here"
                    raise element.refusal(sentence)
                yield step
        elif anchor[1] in (MODULE, FUNCTION, ANY):
            if scope == FUNCTION and anchor[1] == MODULE:
                raise element.group(anchor, 1).refusal("a function has no modules: builtin.module under func.func")
            yield from _nested(element.group(anchor, 2), FUNCTION if scope == FUNCTION else anchor[1])
        else:
            raise element.group(anchor, 1).refusal(
                f"'{element}' is not a pass; passes nest in builtin.module and func.func only"
            )


def _anchor(module_pass: ModulePass) -> str:
    """The op that a pass rewrites by itself: builtin.module, unless the pass states another."""
    foreign = FUNCTION if module_pass.name in FOREIGN_ON_FUNCTIONS else MODULE
    return str(getattr(module_pass, "anchor", foreign))


def _steps(element: Substring) -> list[PipelineStep]:
    """Parse a named pipeline, or one pass with its options. Raises InputError for an unknown name."""
    if str(element) in PIPELINES:
        return [PipelineStep(parsed, element) for parsed in parse_passes(PIPELINES[str(element)])]
    name, options = _name_and_options(element)
    if str(name) in PIPELINES:
        raise element.refusal(f"'{name}' is a pipeline, which takes no options")
    kind = universe.find_pass(str(name))
    if kind is None:
        raise name.refusal(unknown("pass", str(name), universe.pass_names()))
    return [PipelineStep(build_pass(kind, name, options), element)]


def _name_and_options(element: Substring) -> tuple[Substring, Substring]:
    """Split `name{options}` into the name and the text between the braces, which may be empty. Raises InputError for
    text after the braces."""
    text = str(element)
    opened = text.find("{")
    if opened < 0:
        return element, element[len(text) :]
    close = text.rindex("}")
    name, options, after = element[:opened].stripped, element[opened + 1 : close], element[close + 1 :]
    if str(after):
        sentence = f"the options '{options}' of the pass '{name}' cannot be read: there is more after the '}}'"
        raise after.stripped.refusal(sentence)
    return name, options
