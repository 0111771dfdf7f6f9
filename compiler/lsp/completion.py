"""Completion: what may stand at an offset of a document."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.ir import Dialect, Operation
from xdsl.traits import IsolatedFromAbove

from compiler import universe
from compiler.dialects import loop
from compiler.dialects.combiner import COMBINERS
from compiler.lsp import documentation as docs
from compiler.lsp.index import DefinedName, OpEntry
from compiler.lsp.navigation import LABELLED
from compiler.lsp.runs import run_line_at
from compiler.lsp.snapshot import Section, Snapshot
from compiler.lsp.text import TextRange, tokens
from compiler.opt.command_line import arguments
from compiler.schedule.primitive import DECLARED
from compiler.support import plugins

FUNCTION, FIELD, VARIABLE, MODULE, KEYWORD, TYPE, REFERENCE = 3, 5, 6, 9, 14, 7, 18
"""Kinds of completions, as the protocol numbers them."""
USUAL = ("te", "loop", "sched", "func", "arith", "math", "transform")
"""The dialects whose ops are offered in any file."""
_AT_OP = re.compile(r"^[ \t]*(?:%[\w$.-]+(?::\d+)?(?:[ \t]*,[ \t]*%[\w$.-]+(?::\d+)?)*[ \t]*=[ \t]*)?(\"?)([\w.]*)$")
_HANDLE = re.compile(r"(?<![\w$])%([A-Za-z_]\w*)")


@dataclass(frozen=True)
class Proposal:
    """A completion: its label, its kind, a detail, the text to insert in the `range` of the document, and whether that
    text is a snippet. `about` is the argument of `proposal_documentation`, empty without documentation."""

    label: str
    kind: int
    range: TextRange
    detail: str = ""
    text: str = ""
    is_snippet: bool = False
    about: str = ""


def completions(snapshot: Snapshot, offset: int) -> list[Proposal]:
    """The completions at an offset of a document: ops where an op begins, values after `%`, symbols after `@`, types
    after `!`, blocks after `^`, labels in quotes, attributes in braces, kinds of loops; in a RUN line passes and their
    options. Empty where nothing is known."""
    line = run_line_at(snapshot.text, offset)
    if line is not None:
        return list(_run_line(snapshot.text, line, offset))
    located = snapshot.section_at(offset)
    if located is None:
        return []
    section, inner = located
    before = section.text[section.text.rfind("\n", 0, inner) + 1 : inner]
    if "//" in re.sub(r'"[^"]*"', "", before):
        return []
    return list(_proposals(section, inner, before, offset))


def load_usual_dialects() -> None:
    """Import the dialects in USUAL, so that the first request does not wait for it."""
    for name in USUAL:
        _kinds(name, set(USUAL))


def proposal_documentation(about: str) -> str:
    """The documentation of the op or pass of a completion, as Markdown; empty if it is unknown."""
    what, _, name = about.partition(" ")
    if what == "pass":
        return docs.pass_documentation(name)
    kind = universe.context().get_optional_op(name) if what == "op" else None
    return "" if kind is None else docs.op_documentation(kind)


def _proposals(section: Section, inner: int, before: str, offset: int) -> Iterator[Proposal]:
    marked = re.search(r"([%@!^])([\w$.-]*)$", before)
    at_op = _AT_OP.match(before)
    label = re.search(r"\bsched\.\w+[^\"]*\"(\w*)$", before)
    if marked is not None:
        part = TextRange(offset - len(marked[2]) - 1, offset)
        yield from _marked(section, inner, marked[1], part)
    elif label is not None:
        yield from _labels(section, TextRange(offset - len(label[1]), offset))
    elif at_op is not None:
        yield from _ops(section, at_op[2], TextRange(offset - len(at_op[2]), offset), quoted=bool(at_op[1]))
    else:
        yield from _inside(section, inner, before, offset)


def _marked(section: Section, inner: int, mark: str, part: TextRange) -> Iterator[Proposal]:
    match mark:
        case "%":
            for value in _visible(section, inner):
                kinds = ", ".join(str(named.type) for named in value.values)
                yield Proposal(value.text, VARIABLE, part, kinds, value.text)
        case "@":
            symbols = {t.text for t in tokens(section.text) if t.kind == "symbol" and not t.range.touches(inner)}
            yield from (Proposal(name, FUNCTION, part, "", name) for name in sorted(symbols))
        case "^":
            blocks = [named for named in section.analysis.index.names if named.block is not None]
            yield from (Proposal(block.text, REFERENCE, part, "", block.text) for block in blocks)
        case "!":
            for name in ("!sched.block", "!sched.loop", "!sched.param", "!transform.any_op"):
                yield Proposal(name, TYPE, part, "", name)


def _visible(section: Section, inner: int) -> list[DefinedName]:
    """The values that an op at an offset may use: those defined before it in the ops around it, up to one whose body
    sees no values from outside, the latest first."""
    index = section.analysis.index
    around = index.op_at(inner)
    scopes: set[OpEntry | None] = {None}
    for entry in around.ancestors if around is not None else ():
        scopes.add(entry)
        head = section.text[entry.name_range.end : inner]
        if entry.kind is not None and entry.kind.has_trait(IsolatedFromAbove) and head.count("{") > head.count("}"):
            scopes.discard(None)
            break
    visible: dict[str, DefinedName] = {}
    for name in index.names:
        owner = name.entry
        holder = owner.parent if owner is not None and name.range.end <= owner.name_range.start else owner
        if (
            name.values
            and name.range.end < inner
            and holder in scopes
            and (holder is owner or not _around(owner, inner))
        ):
            visible.pop(name.text, None)
            visible[name.text] = name
    return list(visible.values())[::-1]


def _around(entry: OpEntry | None, offset: int) -> bool:
    return entry is not None and entry.range.start <= offset < entry.range.end


def _ops(section: Section, prefix: str, part: TextRange, quoted: bool) -> Iterator[Proposal]:
    """Yield the ops of a dialect for a prefix with a dot, else those of the dialects in use and the dialects' names."""
    dialect, dot, _ = prefix.partition(".")
    used = {t.text.partition(".")[0] for t in tokens(section.text) if t.kind == "word" and "." in t.text}
    dialects = {*universe.own_dialects(), *universe.UPSTREAM, *plugins.parts("dialect")}
    names = [dialect] if dot else sorted({*USUAL, *used} & dialects)
    for name in names:
        for kind in _kinds(name, dialects):
            yield _op(kind, part, quoted)
    if not dot:
        yield from (Proposal(name, MODULE, part, "dialect", f"{name}.") for name in sorted(dialects))


def _kinds(dialect: str, dialects: set[str]) -> list[type[Operation]]:
    if dialect not in dialects:
        return []
    part = plugins.parts("dialect").get(dialect)
    context = universe.context()
    if part is None and context.get_optional_dialect(dialect) is None:
        context.load_registered_dialect(dialect)
    loaded: Dialect = context.get_dialect(dialect) if part is None else part.value
    return sorted(loaded.operations, key=lambda kind: kind.name)


def _op(kind: type[Operation], part: TextRange, quoted: bool) -> Proposal:
    primitive = DECLARED.get(kind.name.removeprefix("sched.")) if kind.name.startswith("sched.") else None
    snippet = "" if primitive is None or quoted else _snippet(primitive.example, kind.name)
    text = snippet or (f'{kind.name}"' if quoted else kind.name)
    return Proposal(kind.name, FUNCTION, part, docs.op_summary(kind), text, bool(snippet), f"op {kind.name}")


def _snippet(example: str, name: str) -> str:
    """The example of a primitive from its name on, as a snippet: each handle is a field."""
    line = next((line for line in example.splitlines() if f"{name} " in f"{line} "), "")
    text = line[line.find(name) :]
    numbers: dict[str, int] = {}
    escaped = re.sub(r"([\\$}])", r"\\\1", text)
    return _HANDLE.sub(lambda m: f"${{{numbers.setdefault(m[1], len(numbers) + 1)}:%{m[1]}}}", escaped)


def _labels(section: Section, part: TextRange) -> Iterator[Proposal]:
    """Yield the labels of blocks, computes and buffers."""
    seen: set[str] = set()
    for entry in section.analysis.index.ops:
        if entry.label not in ("", *seen) and entry.name in LABELLED and not isinstance(entry.op, loop.ForOp):
            seen.add(entry.label)
            yield Proposal(entry.label, REFERENCE, part, entry.name, entry.label)


def _inside(section: Section, inner: int, before: str, offset: int) -> Iterator[Proposal]:
    """Yield the words that may stand inside an op: kinds of a loop, combiners, and attributes in braces."""
    word = re.search(r"[\w-]*$", before)
    part = TextRange(offset - len(word[0]) if word is not None else offset, offset)
    start = before[: len(before) - (part.end - part.start)]
    if re.search(r"\bloop\.for\b.*=[ \t]*\d+[ \t]+$", start):
        yield from (Proposal(kind, KEYWORD, part, "kind of the loop", kind) for kind in loop.KINDS)
    elif re.search(r"\bcombine[ \t]*\[[^\]]*$", start):
        yield from (Proposal(name, KEYWORD, part, "combiner", name) for name in COMBINERS)
    elif re.search(r"[{<,][ \t]*$", start):
        entry = section.analysis.index.op_at(inner)
        written = re.findall(r"[A-Za-z_][\w.]*\.\w+", start)
        kind = universe.context().get_optional_op(written[-1]) if written else entry.kind if entry is not None else None
        names = [] if kind is None else docs.attribute_names(kind)
        yield from (Proposal(name, FIELD, part, f"attribute of {kind.name}", f"{name} = ") for name in names if kind)


def _run_line(text: str, line: TextRange, offset: int) -> Iterator[Proposal]:
    """Yield passes behind -p, a comma or dashes, and the options of a pass in braces."""
    before = text[line.start : offset]
    word = re.search(r"[\w-]*$", before)
    typed = word[0] if word is not None else ""
    opened = re.search(r"([\w-]+)\{[^{}]*$", before)
    part = TextRange(offset - len(typed), offset)
    if opened is not None:
        options = docs.pass_options(opened[1])
        yield from (Proposal(name, FIELD, part, kind, f"{name}=") for name, kind in options.items())
    elif typed.startswith("-"):
        dashes = typed[: len(typed) - len(typed.lstrip("-"))]
        names = [name for name in arguments()._option_string_actions if name.startswith("--")]
        for name in names:
            yield Proposal(f"{dashes}{name[2:]}", KEYWORD, part, "option", f"{dashes}{name[2:]}")
        yield from _passes(part, dashes)
    elif re.search(r"(?:-p|--passes)[ =]'?(?:[^ ']*,)?$|pipeline=.*[(,]$", before[: len(before) - len(typed)]):
        yield from _passes(part, "")


def _passes(part: TextRange, dashes: str) -> Iterator[Proposal]:
    for name in universe.pass_names():
        yield Proposal(f"{dashes}{name}", FUNCTION, part, "pass", f"{dashes}{name}", about=f"pass {name}")
