"""Names in backticks of the pages that nothing has: `python -m tools.doc_names [PAGE ...]`; 1 where there are some.

By their form, spans in backticks are taken as one of these, and looked up; a span of another form is not.

    compiler/te/nn/, pool.py            a file or folder; NAME and * stand for anything
    strata.X.Y, te.X, Kernel.X          a name of a module, or a member of a class
    kernel.X, schedule.X                the same of an object, by its usual name (OBJECTS)
    loop.for, dot.i32.u8i8x4            an op, an intrinsic
    snake_case, CamelCase               a word of the sources
    plan-buffers                        a pass, a pipeline, a law, a command
    strata tune --trials 8, --trials    a command and its options, also in blocks of the shell
    make test, python -m tests.fuzz     a target of the Makefile, a module
"""

from __future__ import annotations

import argparse
import re
import shlex
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from compiler.opt.command_line import ALIASES, WITHOUT_EFFECT
from compiler.opt.spelling import normalized
from compiler.support.errors import InputError

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    *(page for page in sorted(ROOT.glob("*.md")) if page.name != "CHANGELOG.md"),  # which names what is gone
    *sorted((ROOT / "docs").rglob("*.md")),
]
OBJECTS = {
    "kernel": ("Kernel", "CKernel", "CudaKernel"),
    "schedule": ("Schedule",),
    "s": ("Schedule",),
    "task": ("SearchTask",),
    "progress": ("Progress",),
}
"""The classes of objects by the name that pages give these."""
FOREIGN = {
    "torch",
    "onnx",
    "jax",
    "jnp",
    "numpy",
    "copy",
    "pickle",
    "ml_dtypes",
    "parameter",
    "tir",
    "tvm",
    "autotvm",
    "cfg",
    "tl",
    "cp",
}
"""Heads of dotted names that are not ours: Python's packages, TVM's, Triton's, an instruction of PTX."""
LISTS = {"torch_operators.md", "onnx_operators.md"}
"""Pages of names of others, which tools/docs.py writes from the tables."""
ALLOWED = {
    **dict.fromkeys(("mlir-opt", "mlir-opt-22", "mlir-runner-22", "math.h", "pre-commit"), "tools and files of others"),
    **dict.fromkeys(("bind_expr", "RecordToFile", "PreloadMeasuredStates", "define_annotate"), "other compilers"),
    **dict.fromkeys(("PassFailedException", "segment_reduce"), "xDSL's, torch's"),
    **dict.fromkeys(("max.NaN", "ldmatrix.x4", "src-size"), "PTX"),
    **dict.fromkeys(
        (
            "--mlir-diagnostic-verbosity-level",
            "--mlir-enable-debugger-hook",
            "--mlir-pretty-debuginfo",
            "--mlir-print-elementsattrs-with-hex-if-larger",
            "--mlir-elide-resource-strings-if-larger",
            "--irdl-file",
            "--color",
        ),
        "mlir-opt's, which docs/opt.md says strata-opt lacks",
    ),
    "strata.universe.VERSION": "removed, as the changelog says",
}
"""Spans that look like ours and are not, each with its reason."""
A_LIBRARY = re.compile(r"(lib)?net\.[\w.]+|net_\w+|NET_\w+")
"""Files and names of the library of docs/export.md, which tests/e2e/test_export.py checks."""
NAMING = ("doc_names.py", "test_reading.py")
SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
WORD = r"[A-Za-z_]\w*"


@cache
def sources() -> dict[Path, str]:
    """Map the files of the repository's folders of sources to their texts; "" for files of other languages and those of
    NAMING."""
    folders = ("compiler", "strata", "tests", "tools", "benchmarks", "examples")
    every = (path for folder in folders for path in (ROOT / folder).rglob("*") if "__pycache__" not in path.parts)
    return {path: path.read_text("utf-8") if path.suffix == ".py" and path.name not in NAMING else "" for path in every}


@cache
def quoted() -> set[str]:
    """The dotted names in string literals of the package, with their quotes."""
    return {name for text in packaged().values() for name in re.findall(r'"[\w.]+\.\w+"', text)}


@cache
def packaged() -> dict[Path, str]:
    """The files of the package in Python."""
    return {path: text for path, text in sources().items() if path.parts[len(ROOT.parts)] == "compiler" and text}


@cache
def stems() -> dict[str, list[str]]:
    """Map each name of a file or folder of the package to the texts of the files of that name."""
    texts: dict[str, list[str]] = {}
    for path, text in packaged().items():
        texts.setdefault(path.parent.name if path.stem == "__init__" else path.stem, []).append(text)
    return texts


@cache
def classes() -> dict[str, Path]:
    """Map each class of the package to its file; class names are unique."""
    pairs = ((path, re.findall(r"^class (\w+)", text, re.MULTILINE)) for path, text in packaged().items())
    return {name: path for path, names in pairs for name in names}


@cache
def words() -> set[str]:
    """The words of the sources in Python, and the names of their files and folders."""
    found_words = {word for text in sources().values() for word in re.findall(r"\w+", text)}
    return found_words | {path.stem for path in sources()}


def missing_path(span: str) -> str | None:
    """Look up a path, from the root or as the end of a file's path; capital words are wildcards. Return a reason, or
    None if it exists."""
    pattern = re.sub(r"\b[A-Z]+(?=\b|_)", "*", span.rstrip("/"))
    if "/" in span and any(ROOT.glob(pattern)):
        return None
    if any(path.match(pattern) for path in sources()) or any(ROOT.glob(pattern)):
        return None
    return "no such file"


def missing_name(span: str) -> str | None:
    """Look up a dotted name; return a reason, or None if it exists or is foreign. An unknown head is a fault too: its
    file may be gone."""
    name = span.partition("(")[0]
    head, *rest = name.split(".")
    if f'"{name}"' in quoted():
        return None
    if head in FOREIGN or head.isupper() or rest == ["X"]:
        return None
    if head in ("strata", "compiler"):
        return None if _imported([head, *rest]) else "no such name"
    checks = [check(head, rest, name) for check in (_of_te, _of_class, _of_op, _of_intrinsic, _of_file)]
    answers = [answer for answer in checks if answer is not None]
    return None if any(answers) else "no such name" if answers else f"nothing is called {head}"


def _imported(parts: Sequence[str]) -> bool:
    """Whether a module, or an attribute of one, has a dotted name. A module is imported where no attribute of its
    package has its name: `compiler.te.function` is a function, which an import would hide."""
    value: object | None = import_module(parts[0])
    for end, part in enumerate(parts[1:], 1):
        member = _member(value, part)
        if member is None:
            try:
                member = import_module(".".join([*parts[:end], part]))
            except ModuleNotFoundError:
                return False
        value = getattr(value, part, None) if member is True and end + 1 < len(parts) else member
    return True


def _member(value: object, name: str) -> object | None:
    """Return a member of an object; True for a field that only instances have, for a lazy name of `__all__` and for a
    false value; None without one."""
    if name in getattr(value, "__all__", ()):
        return True  # not loaded: torch, for one, takes long
    if hasattr(value, name):
        return getattr(value, name) or True
    if not isinstance(value, type):
        return None
    text = "".join(sources().get(ROOT / (base.__module__.replace(".", "/") + ".py"), "") for base in value.__mro__)
    return True if re.search(rf"\bself\.{name}\b|^    {name}: ", text, re.MULTILINE) else None


def _of_te(head: str, rest: list[str], name: str) -> bool | None:
    return _imported(["compiler", "te", *rest]) if head == "te" else None


def _of_class(head: str, rest: list[str], name: str) -> bool | None:
    kinds = [kind for kind in OBJECTS.get(head, (head,)) if kind in classes()]
    return any(_member(_class(kind), rest[0]) is not None for kind in kinds) if kinds else None


def _class(kind: str) -> object:
    module = ".".join(classes()[kind].relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    return getattr(import_module(module), kind)


def _of_op(head: str, rest: list[str], name: str) -> bool | None:
    from compiler import universe

    context = universe.context()
    dialects = context.registered_dialect_names
    return context.get_optional_op(name) is not None if head in dialects else None


def _of_intrinsic(head: str, rest: list[str], name: str) -> bool | None:
    from compiler.intrinsics import INTRINSICS

    return name in INTRINSICS if head in {known_name.partition(".")[0] for known_name in INTRINSICS} else None


def _of_file(head: str, rest: list[str], name: str) -> bool | None:
    """Whether a file or folder of the package that has the head as its name defines the next part."""
    definition = rf'^\s*(def|class) {rest[0]}\b|^\s*{rest[0]}\b\s*[:=]|^from .* import .*\b{rest[0]}\b|"{rest[0]}"'
    texts = stems().get(head) if len(rest) == 1 else None
    return any(re.search(definition, text, re.MULTILINE) for text in texts) if texts else None


def missing_word(span: str) -> str | None:
    """Look up a word with an underscore or with capitals inside; return a reason, or None for a word of the sources."""
    return None if span in words() else "no such word in the sources"


@cache
def dashed() -> set[str]:
    """The names of passes, pipelines, laws, commands, programs and the project."""
    from xdsl.transforms import get_all_passes

    from compiler import universe
    from compiler.__main__ import COMMANDS
    from compiler.alternatives import LAWS
    from compiler.pipeline.passes import PIPELINES

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    names = {*universe.pass_names(), *get_all_passes(), *PIPELINES, *LAWS, *COMMANDS}
    return names | {*project["scripts"], project["name"]}


def missing_dashed(span: str) -> str | None:
    """Look up a pass, a pipeline, a law or a command; return a reason, or None if it exists."""
    return None if span.partition("{")[0] in dashed() else "no such pass, pipeline, law or command"


@cache
def parsers() -> dict[str, argparse.ArgumentParser]:
    """Map the programs strata and strata-opt to their parsers."""
    from compiler.__main__ import arguments
    from compiler.opt import command_line

    return {"strata": arguments(), "strata-opt": command_line.arguments()}


def _choices(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Map the subcommands of a command to their parsers; empty without any."""
    kinds = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return {name: sub for action in kinds for name, sub in action.choices.items()}


def missing_command(line: str) -> str | None:
    """Look up a command, its subcommands and its options, or a target of make, or a module or file of Python; return a
    reason, or None if all exist, or for a line that cannot be split."""
    try:
        program, *arguments = shlex.split(line, comments=True)
    except ValueError:
        return None
    if program == "make":
        targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
        unknown = [word for word in arguments if "=" not in word and word not in targets]
        return f"no target {unknown[0]}" if unknown else None
    if program in ("python", "python3"):
        return _missing_module(arguments)
    return _missing_option(parsers()[program], arguments)


def _missing_module(arguments: list[str]) -> str | None:
    match arguments:
        case ["-m", module, *_] if module.partition(".")[0] in ("benchmarks", "tests", "tools", "compiler", "strata"):
            return None if find_spec(module) else f"no module {module}"
        case [path, *_] if "/" in path:
            return None if (ROOT / path).exists() else f"no file {path}"
    return None


def _missing_option(parser: argparse.ArgumentParser, arguments: list[str]) -> str | None:
    if parser.prog == "strata-opt":
        try:
            arguments = normalized(arguments, parser)
        except InputError as error:
            return str(error)
    for word in arguments:
        if word in ("|", "&&", ";", ">"):
            break
        choices = _choices(parser)
        if word.startswith("--"):
            option = word.partition("=")[0]
            options = {name for each in (parser, *choices.values()) for name in each._option_string_actions}
            if option not in options:
                return f"no option {option} of {parser.prog}"
        elif choices:
            if word.isupper():
                break  # COMMAND: any
            if word not in choices:
                return f"no command {word} of {parser.prog}"
            parser = choices[word]
    return None


def missing_option(span: str) -> str | None:
    """Look up an option of any command; return a reason, or None if the sources have it."""
    option = re.match(r"--[\w-]+", span)
    assert option is not None
    name = option[0].replace("--mlir-", "--")  # strata-opt takes both
    if name[2:] in (*ALIASES, *WITHOUT_EFFECT):
        return None
    return None if any(f'"{name}' in text for text in sources().values()) else "no such option"


TOP = r"(compiler|strata|tests|tools|benchmarks|examples|docs|\.ci|\.github)"
FORMS: tuple[tuple[str, Callable[[str], str | None]], ...] = (
    (rf"{TOP}/[\w./*-]*|([\w*-]+/)*[\w*-]+\.(py|pyi|md|mlir|toml|yml|yaml|sollya)", missing_path),
    (r"(strata|strata-opt|make|python3?)( .+)", missing_command),
    (r"--[a-z][\w-]+([ =].*)?", missing_option),
    (rf"{WORD}(\.{WORD})+(\(.*\))?", missing_name),
    (r"[a-z]+(-[a-z0-9]+)+(\{.*\})?", missing_dashed),
    (r"_?[a-z0-9]+_\w+|[A-Z]+_[A-Z_]+|([A-Z][a-z0-9]+){2,}", missing_word),
)


def spans(text: str) -> Iterator[str]:
    """The spans in backticks of a page, and the lines of its blocks of the shell."""
    for language, block in FENCE.findall(text):
        if language in ("sh", "console"):
            lines = (line.strip().removeprefix("$ ") for line in re.sub(r"\\\n\s*", "", block).splitlines())
            yield from (line for line in lines if re.match(FORMS[1][0], line))
    yield from (" ".join(span.split()) for span in SPAN.findall(FENCE.sub("", text)))


def faults(text: str) -> list[str]:
    """Return a line for each name of a page that does not exist, with a reason."""
    said: dict[str, str] = {}
    for span in spans(text):
        look_up = next((look_up for form, look_up in FORMS if re.fullmatch(form, span)), None)
        reason = look_up(span) if look_up is not None and not _is_allowed(span) else None
        if reason is not None:
            said[span] = reason
    return [f"`{span}`: {reason}" for span, reason in said.items()]


def _is_allowed(span: str) -> bool:
    from compiler.types.machines import MACHINES

    return span in ALLOWED or span in MACHINES or A_LIBRARY.fullmatch(span) is not None


def main(arguments: Sequence[str]) -> int:
    """Print the names that do not exist in the pages (default: all); return 1 if there are some."""
    pages = [Path(argument).resolve() for argument in arguments] or [path for path in PAGES if path.name not in LISTS]
    said = [f"{page.relative_to(ROOT)}: {fault}" for page in pages for fault in faults(page.read_text("utf-8"))]
    print("\n".join(said))
    return int(bool(said))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
