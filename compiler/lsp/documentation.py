"""The documentation of ops, types, passes and options, as Markdown."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator, Sequence

from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation, OpDef

from compiler import universe
from compiler.dialects.sched import SchedOp
from compiler.opt import listing
from compiler.opt.command_line import arguments
from compiler.schedule.primitive import DECLARED
from compiler.support.errors import InputError


def op_documentation(kind: type[Operation]) -> str:
    """The documentation of an op: its docstring, its operands, results and attributes; of a primitive also the IR
    before and after, what it requires, and an example."""
    name = kind.name
    primitive = DECLARED.get(name.removeprefix("sched.")) if issubclass(kind, SchedOp) else None
    text = inspect.getdoc(kind if primitive is None else primitive.plan) or ""
    parts = [f"**{name}**", _markdown(text)]
    if primitive is not None:
        parts.append(f"Syntax ``{name} {primitive.syntax}``\n\n```mlir\n{primitive.example}\n```")
        if primitive.shell:
            parts.append(f"Pass `strata-opt -p '{primitive.shell}'`")
    parts += _members(kind)
    return "\n\n".join(part for part in parts if part)


def op_summary(kind: type[Operation]) -> str:
    """The first sentence of the documentation of an op; empty without one."""
    primitive = DECLARED.get(kind.name.removeprefix("sched.")) if issubclass(kind, SchedOp) else None
    if primitive is not None:
        return universe.first_sentence(primitive.summary)
    docstring = kind.__dict__.get("__doc__") or ""
    return universe.first_sentence(docstring)


def definition_of(kind: type[Operation]) -> OpDef | None:
    """The declaration of an op's operands, results and attributes; None for an op without one."""
    return kind.get_irdl_definition() if issubclass(kind, IRDLOperation) else None


def attribute_names(kind: type[Operation]) -> list[str]:
    """The names of the attributes and properties of an op, without those that the parser computes."""
    declared = definition_of(kind)
    if declared is None:
        return []
    names = [*declared.properties, *declared.attributes]
    return [name for name in names if not name.endswith(("SegmentSizes", "_segment_sizes"))]


def _members(kind: type[Operation]) -> Iterator[str]:
    declared = definition_of(kind)
    if declared is None:
        return
    rows = {
        "Operands": [name for name, _ in declared.operands],
        "Results": [name for name, _ in declared.results],
        "Attributes": attribute_names(kind),
        "Regions": [name for name, _ in declared.regions],
    }
    lines = [f"- {what}: {', '.join(f'`{name}`' for name in names)}" for what, names in rows.items() if names]
    if lines:
        yield "\n".join(lines)


def pass_documentation(name: str) -> str:
    """The documentation of a pass or a named pipeline with its options; empty for an unknown name."""
    try:
        lines = list(listing.pass_help(name))
    except InputError:
        return ""
    head, *below = [line.removeprefix("--") for line in lines]
    body = "\n".join(below)
    text, _, options = body.partition("\noptions:\n")
    shown = "".join(f"\n- `{line.strip()}`" for line in options.splitlines() if line.strip())
    return f"**{head}**\n\n{_markdown(text)}" + (f"\n\nOptions{shown}" if shown else "")


def pass_options(name: str) -> dict[str, str]:
    """Map each option of a pass to its type and default, as text; empty for an unknown pass."""
    documentation = pass_documentation(name)
    rows = re.findall(r"^- `([\w-]+)=(.*)`$", documentation, re.MULTILINE)
    return {option: text.strip() for option, text in rows}


def option_documentation(word: str) -> str:
    """The help of an option of strata-opt, with one dash or two; empty for an unknown option."""
    name = f"--{word.lstrip('-').removeprefix('mlir-')}"
    action = arguments()._option_string_actions.get(name)
    return "" if action is None or not action.help else f"**{name}**\n\n{action.help.replace('%%', '%')}"


def type_documentation(name: str) -> str:
    """The documentation of a type `!sched.loop`; empty for an unknown type and one without a docstring."""
    kind = universe.context().get_optional_type(name.removeprefix("!")) if "." in name else None
    text = "" if kind is None else kind.__dict__.get("__doc__") or ""
    return f"**{name}**\n\n{_markdown(inspect.cleandoc(text))}" if text else ""


def _markdown(text: str) -> str:
    """A docstring as Markdown: indented IR becomes fenced, examples in Python are left out."""
    paragraphs = [_fenced(part) for part in _paragraphs(text) if not part.lstrip().startswith(">>>")]
    return "\n\n".join(paragraphs)


def _paragraphs(text: str) -> Sequence[str]:
    """The paragraphs of a docstring; a fenced part is one, whatever blank lines it has."""
    parts: list[str] = []
    for number, part in enumerate(re.split(r"^```", text, flags=re.MULTILINE)):
        if number % 2:
            parts.append(f"```{part}```")
        else:
            parts += [p.strip("\n") for p in re.split(r"\n\s*\n", part) if p.strip()]
    return parts


def _fenced(part: str) -> str:
    lines = part.splitlines()
    if part.startswith("```") or not any(line.startswith(" ") for line in lines):
        return part
    if all(line.startswith(" ") or line.strip() in ("->", "-->") for line in lines):
        return "\n".join(["```mlir", *textwrap.dedent(part).splitlines(), "```"])
    return part
