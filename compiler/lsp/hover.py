"""Hover: what stands at an offset, as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from compiler import universe
from compiler.dialects import loop
from compiler.dialects.sched import SchedOp
from compiler.lsp import documentation as docs
from compiler.lsp import values
from compiler.lsp.analysis import Analysis
from compiler.lsp.index import DefinedName, NameUse, OpEntry
from compiler.lsp.navigation import LABELLED, symbol_definition
from compiler.lsp.runs import run_line_at
from compiler.lsp.snapshot import Snapshot
from compiler.lsp.text import TextRange, Token
from compiler.support.text import counted

_WORD = re.compile(r"[\w.-]+")


@dataclass(frozen=True)
class Explanation:
    """Markdown about a range of a document."""

    range: TextRange
    text: str


def hover(snapshot: Snapshot, offset: int) -> Explanation | None:
    """Explain what stands at an offset of a document: a value with its type, its range and its uses; an op with its
    documentation; an axis, a block, a symbol, a type; in a RUN line a pass or an option. None for anything else."""
    line = run_line_at(snapshot.text, offset)
    if line is not None:
        return _run_word(snapshot.text, line, offset)
    located = snapshot.token_at(offset)
    if located is None:
        return None
    section, inner, token = located
    text = _text(section.analysis, inner, token)
    return Explanation(section.in_document(token.range), text) if text else None


def _text(analysis: Analysis, offset: int, token: Token) -> str:
    named = analysis.name_at(offset, token) if token.kind in ("value", "block") else None
    entry = analysis.index.op_at(offset)
    if named is not None:
        name, use = named
        return _block_text(name) if name.block is not None else _value_text(analysis, name, use)
    if entry is not None and entry.name_range.touches(offset) and entry.kind is not None:
        return "\n\n".join([*_op_facts(analysis, entry.op), docs.op_documentation(entry.kind)])
    match token.kind:
        case "symbol":
            return _symbol_text(analysis, token.text)
        case "type":
            return docs.type_documentation(token.text)
        case "word":
            return _axis_text(entry, token.text) or _op_text(token.text)
        case "string":
            return _label_text(analysis, token.text.strip('"'))
    return ""


def _value_text(analysis: Analysis, name: DefinedName, use: NameUse) -> str:
    value = name.values[min(use.number, len(name.values) - 1)]
    suffix = f"#{use.number}" if len(name.values) > 1 else ""
    lines = [f"```mlir\n{name.text}{suffix} : {value.type}\n```", _defined(value)]
    lines += _facts(analysis, value)
    count = counted(len(name.uses), "use")
    return "\n\n".join(filter(None, [*lines, count if name.uses else "no uses"]))


def _defined(value: SSAValue) -> str:
    owner = value.owner
    if isinstance(value, BlockArgument):
        parent = value.block.parent_op()
        around = "a block" if parent is None else f"`{parent.name}`{_labelled(parent)}"
        return f"argument {value.index} of {around}"
    assert isinstance(owner, Operation)
    several = f"result {list(owner.results).index(value)} of " if len(owner.results) > 1 else "result of "  # type: ignore[arg-type]
    return f"{several}`{owner.name}`{_labelled(owner)}"


def _labelled(op: Operation) -> str:
    label = op.properties.get("label")
    return "" if label is None else f' "{label.data}"'  # type: ignore[attr-defined]


def _facts(analysis: Analysis, value: SSAValue) -> Iterator[str]:
    shown, form, memory = values.value_range(value), values.value_form(value), values.storage(value.type)
    if shown:
        yield f"values: {shown}"
    if form:
        yield f"form: `{form}`"
    if memory:
        yield memory
    parent = value.block.parent_op() if isinstance(value, BlockArgument) else None
    if isinstance(parent, loop.ForOp):
        yield from _op_facts(analysis, parent)
    for use in value.uses:
        if isinstance(use.operation, SchedOp) and value in use.operation.consumed():
            yield f"consumed by `{use.operation.name}`"


def _op_facts(analysis: Analysis, op: Operation | None) -> Iterator[str]:
    """Yield what is known of an op besides its documentation: of a loop its iterations and, in a function without
    errors, the memory that it touches, of a compute or a block its axes."""
    if isinstance(op, loop.ForOp):
        yield values.loop_text(op)
        entry = analysis.index.by_op.get(op)
        touched = values.footprint(op) if entry is not None and analysis.is_sound(entry) else []
        if touched:
            yield "touches in one run\n" + "\n".join(f"- {line}" for line in touched)
    elif op is not None:
        axes = getattr(getattr(op, "axes", None), "data", ())
        lines = [f"- {values.axis_text(op, axis)}" for axis in axes]
        if lines:
            yield "\n".join(lines)


def _block_text(name: DefinedName) -> str:
    block = name.block
    assert block is not None
    parent = block.parent_op()
    arguments = ", ".join(f"%{arg.name_hint or arg.index}: {arg.type}" for arg in block.args)
    lines = [f"block `{name.text}`({arguments})" + ("" if parent is None else f" of `{parent.name}`")]
    predecessors = list(_predecessors(block))
    lines.append(f"predecessors: {', '.join(predecessors)}" if predecessors else "no predecessors")
    return "\n\n".join(lines)


def _predecessors(block: Block) -> Iterator[str]:
    """Yield the names of the blocks from which a branch leads to one."""
    region = block.parent
    for number, branching in enumerate(region.blocks if region is not None else []):
        last = branching.last_op
        if last is not None and any(successor is block for successor in last.successors):
            yield f"`^{branching.name_hint or f'bb{number}'}`"


def _symbol_text(analysis: Analysis, symbol: str) -> str:
    entry = symbol_definition(analysis, symbol)
    if entry is None:
        return ""
    end = analysis.text.find("\n", entry.range.start)
    head = analysis.text[entry.range.start : end if end >= 0 else None].removesuffix("{").strip()
    return f"```mlir\n{head}\n```"


def _axis_text(entry: OpEntry | None, word: str) -> str:
    for around in entry.ancestors if entry is not None else ():
        axis = values.axis_of(around.op, word)
        if axis is not None and around.op is not None:
            return f"{values.axis_text(around.op, axis)}, of `{around.name}`{_labelled(around.op)}"
    return ""


def _op_text(word: str) -> str:
    """The documentation of an op by its name, for text that is not parsed; empty for other words."""
    kind = universe.context().get_optional_op(word) if "." in word.strip(".") else None
    return "" if kind is None else docs.op_documentation(kind)


def _label_text(analysis: Analysis, label: str) -> str:
    """Explain a label, as in `sched.get_block %f "C"`: the block or the compute of that name."""
    for entry in analysis.index.ops:
        if entry.name in LABELLED and entry.label == label:
            return "\n\n".join([f'`{entry.name}` "{label}"', *_op_facts(analysis, entry.op)])
    return ""


def _run_word(text: str, line: TextRange, offset: int) -> Explanation | None:
    for match in _WORD.finditer(text, line.start, line.end):
        if match.start() <= offset <= match.end():
            name = match[0]
            word = name.lstrip("-")
            explanation = docs.option_documentation(word) if name.startswith("-") else ""
            explanation = (
                explanation or docs.pass_documentation(word) or _pass_option(text[line.start : match.start()], word)
            )
            return Explanation(TextRange(*match.span()), explanation) if explanation else None
    return None


def _pass_option(before: str, word: str) -> str:
    """Explain a word behind `pass{` as an option of that pass; empty if it is none."""
    opened = re.search(r"([\w-]+)(?:\{|='?)[^{}']*$", before)
    stated = docs.pass_options(opened[1].lstrip("-")).get(word) if opened is not None else None
    return "" if opened is None or stated is None else f"option `{word}` of `{opened[1].lstrip('-')}`: {stated}"
