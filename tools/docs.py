"""Writes docs/primitives/, a page a primitive, from its declaration and its executed example in examples/primitives.py;
the outputs in the pages of document.PAGES; the types of the methods of `Schedule`, compiler/schedule/schedule.pyi; the
names of the API, docs/api.md; and the list of torch's operators, docs/torch_operators.md, and ONNX's,
docs/onnx_operators.md.

python tools/docs.py          # write the pages
python tools/docs.py --check  # say which pages are out of date; 1 where some are
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import compiler
from compiler.dialects.sched import SchedOp
from compiler.frontends.torch import operators
from compiler.frontends.torch.table import OPERATORS
from compiler.schedule import Schedule
from compiler.schedule.primitive import Primitive
from compiler.schedule.primitives import PRIMITIVES
from compiler.schedule.recorder import Recorder
from compiler.support.errors import ScheduleError
from examples import primitives as examples
from tools import document, reference

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = DOCS / "primitives"
STUB = ROOT / "compiler" / "schedule" / "schedule.pyi"
HANDLES = ("get_block", "get_loops", "get_producers", "get_consumers", "auto")
"""The primitives without a page: the index names them."""
SECTIONS = re.compile(r"\b(Requires|Refused where|Elsewhere:)(?= )")


@dataclass(frozen=True)
class Description:
    """The parts of a primitive's docstring: its first sentence, its schematic of the IR before and after, its notes,
    what it requires, when it is refused, and its equivalents elsewhere."""

    sentence: str
    schematic: str
    notes: str
    requires: str
    refused: str
    elsewhere: str


@dataclass(frozen=True)
class Run:
    """An executed example: the program before the primitive and after all of its calls, and the script's ops of it."""

    before: str
    after: str
    ops: str


def found() -> list[Primitive]:
    """Every primitive that has a page."""
    return [primitive for name, primitive in PRIMITIVES.items() if name not in HANDLES]


def described(plan: Callable[..., object]) -> Description:
    """Split a docstring into its parts. Raises ValueError for one without a sentence or without 'Elsewhere:'."""
    text = inspect.getdoc(plan) or ""
    sentence, _, body = text.partition("\n\n")
    parts = body.split("\n\n")
    schematic = [part for part in parts if part.startswith(("    ", "  ->"))]
    prose = " ".join(_joined(part) for part in parts if part not in schematic)
    first, *sections = SECTIONS.split(prose)
    by_name: dict[str, str] = {}
    for name, said in zip(sections[::2], sections[1::2], strict=True):
        by_name[name] = f"{by_name[name]} {name}{said}" if name in by_name else said.strip()
    if not sentence or "Elsewhere:" not in by_name:
        raise ValueError(f"the docstring of '{plan.__name__}' says no sentence, or not where else it is known")
    return Description(
        _joined(sentence),
        textwrap.dedent("\n\n".join(schematic)),
        first.strip(),
        by_name.get("Requires", "nothing."),
        by_name.get("Refused where", ""),
        by_name["Elsewhere:"],
    )


def _joined(text: str) -> str:
    return " ".join(text.split())


def executed(name: str) -> Run:
    """Run the example of a primitive."""
    original = compiler.lower(examples.PROGRAMS[name]())
    schedule = Schedule(original)
    getattr(examples, name)(schedule)
    return Run(str(_before(original, schedule, name).function), str(schedule.function), _ops(schedule, name))


def _before(original: object, schedule: Schedule, name: str) -> Schedule:
    """Return the schedule of an example, replayed up to its first call of the primitive `name`."""
    script = schedule.script.clone()
    ops = [op for op in script.walk() if isinstance(op, SchedOp)]
    first = next(i for i, op in enumerate(ops) if op.name == f"sched.{name}")
    for op in reversed(ops[first:]):
        op.detach()
        op.erase()
    return Schedule(original).apply(script)


def _ops(schedule: Schedule, name: str) -> str:
    """The script from the primitive's first op on."""
    lines = [line.strip() for line in str(schedule).splitlines() if "sched." in line]
    first = next(i for i, line in enumerate(lines) if re.search(rf"sched\.{name}\b", line))
    return "\n".join(line for line in lines[first:] if "sched.get_" not in line)


def refused(name: str) -> str:
    """Return the sentence of the refused example. Raises AssertionError if it is not refused."""
    schedule = Schedule(compiler.lower(examples.PROGRAMS[f"{name}_refused"]()))
    try:
        getattr(examples, f"{name}_refused")(schedule)
    except ScheduleError as error:
        return str(error)
    raise AssertionError(f"the example '{name}_refused' is not refused")


def body(function: Callable[..., object]) -> str:
    """The source of a function's body, dedented, without its docstring."""
    lines = inspect.getsource(function).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("def "))
    text = textwrap.dedent("\n".join(lines[start + 1 :]))
    return re.sub(r'\A""".*?"""\n', "", text)


def page(primitive: Primitive) -> str:
    """The page of a primitive."""
    name, said = primitive.name, described(primitive.plan)
    run = executed(name)
    parts = [
        f"# {name}",
        said.sentence,
        _code("", said.schematic) if said.schematic else "",
        said.notes,
        f"**Python** `{_method(name)}`, planned in `{primitive.plan.__module__.replace('.', '/')}.py`",
        f"**Shell** `strata-opt -p '{primitive.shell}'`" if primitive.shell else "",
        f"**Requires** {said.requires}",
        f"**Refused where** {said.refused}" if said.refused else "",
        f"**Elsewhere** {said.elsewhere}",
        "## Example",
        _code("python", _program(name)),
        _code("python", body(getattr(examples, name))),
        f"Before `{name}`:",
        _code("mlir", run.before),
        "After:",
        _code("mlir", run.after) if run.before != run.after else "The same: only the script has changed.",
        "In the script:",
        _code("mlir", run.ops),
        "## Refused",
        _other_program(name),
        _code("python", body(getattr(examples, f"{name}_refused"))),
        _code("", refused(name)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _method(name: str) -> str:
    """The call `schedule.NAME(parameters with types)` of a primitive, its types unquoted."""
    parameters = list(inspect.signature(getattr(Schedule, name)).parameters.values())[1:]
    return re.sub(r": '([^']*)'", r": \1", f"schedule.{name}({', '.join(map(str, parameters))})")


def _program(example: str) -> str:
    """The program of an example, up to its schedule."""
    text = body(examples.PROGRAMS[example]).replace("return te.function", "f = te.function")
    return f"{text}\ns = Schedule(strata.lower(f))"


def _other_program(name: str) -> str:
    refusal = f"{name}_refused"
    return "" if examples.PROGRAMS[refusal] is examples.PROGRAMS[name] else _code("python", _program(refusal))


def _code(language: str, text: str) -> str:
    return f"```{language}\n{text.strip(chr(10))}\n```"


def index() -> str:
    """The list of all pages."""
    rows = [(p.name, described(p.plan)) for p in found()]
    lines = [f"| [{name}]({name}.md) | {_cell(said.sentence)} | {_cell(said.elsewhere)} |" for name, said in rows]
    return "\n".join([INDEX_HEAD, *lines, INDEX_END])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


INDEX_HEAD = """# The schedule primitives

A primitive is a rewrite of one loop nest with a checked precondition: it is planned, judged exactly (through isl) for
every dependence that it would reverse, and only then applied. A refusal is a `ScheduleError` with one sentence, and
leaves the program as it was. Each is a method of `Schedule`, an op of the `sched` dialect, and a function in
`compiler/schedule/primitives/`, with a declaration from which the others come.

These pages are written by `python tools/docs.py` from the docstrings and from the examples in `examples/primitives.py`,
which are executed.

| primitive | what it does | elsewhere |
|---|---|---|"""

INDEX_END = """
Handles come from `get_block`, `get_loops`, `get_producers` and `get_consumers`. The op `auto` is for templates of
a search, where rules derive the choices of its block. The op `include` applies
[a recipe by its name](../schedules.md#recipes-by-name). Composites of primitives, such as a packed matmul, are in
`compiler/recipes/`.
"""


def stub() -> str:
    """The types of the methods of `Schedule`."""
    methods = [_stub_method(p) for name, p in PRIMITIVES.items() if not hasattr(Recorder, name)]
    return STUB_HEAD + "\n".join(methods) + STUB_END


def _stub_method(primitive: Primitive) -> str:
    """A method of the stub, with its default values as `...`."""
    signature = primitive.method_signature
    parameters = [
        str(p.replace(default=...)) if p.default is not p.empty else str(p) for p in signature.parameters.values()
    ]
    text = ", ".join(re.sub(r": '([^']*)'", r": \1", p).replace("Ellipsis", "...") for p in parameters)
    return f'    def {primitive.name}({text}) -> {signature.return_annotation}:\n        """{primitive.summary}"""\n'


STUB_HEAD = """# Written by tools/docs.py from the declarations of the primitives.
from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from compiler.schedule.parameters import Handle as Handle
from compiler.schedule.parameters import Size as Size
from compiler.schedule.recorder import Recorder
from compiler.schedule.script import Script
from compiler.schedule.script import script_of as script_of

class Schedule(Recorder):
"""

STUB_END = """
def replay(script: Script, x: ModuleOp | Schedule, name: str | None = ..., seed: int = ...) -> Schedule: ...
"""


ONNX_HEAD = """# ONNX's operators

Operators of opsets 13 to the newest that have a te form, of `compiler/frontends/onnx/operators/`. Others are made of
these by the functions that ONNX has for them. What has no form is named with its reason when [a model](onnx.md) is
read. Written by `python tools/docs.py`.
"""


MISSING = "[A plugin, or a function of the model](onnx.md#an-operator-of-ones-own), gives them a te form."
STATED = {"Constant"}
"""The operators without inputs, which are always evaluated while a model is read."""


def onnx_operators() -> str:
    """The page of ONNX operators: those that the front end has, those that it refuses, and those that are missing."""
    from onnx import defs

    from compiler.frontends.onnx.operators import HANDLERS
    from compiler.frontends.onnx.refusals import REASONS
    from compiler.frontends.onnx.walk import CONTROL
    from compiler.support.plugins import onnx_name

    families: dict[str, list[str]] = {}
    for (_, name), handler in HANDLERS.items():
        families.setdefault(handler.__module__.rpartition(".")[2], []).append(name)  # names are unique over domains
    families["control flow, unrolled or selected"] = [name for _, name in CONTROL]
    schemas = [s for s in defs.get_all_schemas() if s.domain in ("", "ai.onnx.ml") and not s.deprecated]
    bodies = {s.name for s in schemas if s.has_function or s.has_context_dependent_function}
    refused = {name for names in REASONS.values() for name in names}
    written = {name for names in families.values() for name in names}
    families["by ONNX's functions"] = [*(bodies - written - refused)]
    parts = [
        ONNX_HEAD,
        *(f"\n## {family.capitalize()}\n\n{_names(names)}\n" for family, names in sorted(families.items())),
    ]
    parts += ["\n## Refused\n", *(f"\n- {reason}: {_names(names)}" for reason, names in REASONS.items()), "\n"]
    missing = {onnx_name(s.name, s.domain) for s in schemas if s.name not in written | bodies | refused | STATED}
    return "".join([*parts, f"\n## Not written yet\n\n{MISSING}\n\n{_names(missing)}\n"])


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


TORCH_HEAD = """# torch's operators

The core ATen operators that have a te form, of `compiler/frontends/torch/operators/`. Other operators are made of these
by torch's own decompositions; what has no form [stays with torch](torch.md). Written by `python tools/docs.py`.
"""


def torch_operators() -> str:
    """The page of the operators that the front end of torch has."""
    lines = [TORCH_HEAD]
    for family in operators.FAMILIES:
        of_family = {name: row for name, row in OPERATORS.items() if row.family == family.__name__}
        lines += [f"## {family.__name__.rpartition('.')[2].capitalize()}\n", str(family.__doc__) + "\n"]
        lines += [", ".join(f"`{name.removesuffix('.default')}`" for name in sorted(of_family)) + "\n"]
    return "\n".join(lines)


def texts() -> dict[Path, str]:
    """Map every file that this tool writes to its text."""
    found_pages = {PAGES / f"{p.name}.md": page(p) for p in found()}
    executed = {path: document.refreshed(path.read_text("utf-8")) for path in document.PAGES}
    listed = {DOCS / "torch_operators.md": torch_operators(), DOCS / "api.md": reference.listing()}
    if find_spec("onnx") is not None:
        listed[DOCS / "onnx_operators.md"] = onnx_operators()
    return found_pages | {PAGES / "README.md": index(), STUB: stub()} | executed | listed


def main() -> int:
    """Write the files, or with --check compare them; return 0, or with --check 1 if one is out of date."""
    wanted = texts()
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text("utf-8") != text]
    gone = [path for path in PAGES.glob("*.md") if path not in wanted]
    check = "--check" in sys.argv[1:]
    for path in [*stale, *gone]:
        print(f"{path.relative_to(ROOT)}{' is out of date; run python tools/docs.py' * check}")
    if check:
        return int(bool(stale or gone))
    PAGES.mkdir(parents=True, exist_ok=True)
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(wanted[path])
    for path in gone:
        path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
