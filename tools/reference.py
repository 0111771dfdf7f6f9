"""The API reference: docs/api.md, a line a name, and pages of the site, from signatures and docstrings."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, is_dataclass
from functools import cached_property, partial
from importlib import import_module
from itertools import pairwise
from types import ModuleType

import strata
from strata import te
from strata.targets import CKernel, CudaKernel, Kernel, Timing
from tools import operator_examples, recipe_examples

PROPERTIES = (property, cached_property)
GIVEN = (Kernel, CudaKernel, CKernel, Timing)
"""The classes whose objects others make: how is not shown."""
LONGEST = 100
"""The columns of a signature on one line."""


@dataclass(frozen=True)
class Page:
    """A page: its title, the text above its entries, and a function that yields the entries in their order."""

    title: str
    head: str
    body: Callable[[], Iterator[str]]

    def text(self) -> str:
        """The page as Markdown."""
        return "\n\n".join([f"# {self.title}", self.head, *self.body()]) + "\n"


def entry(name: str, described: object, level: int = 2) -> Iterator[str]:
    """The heading, the signature and the docstring of a function or a class, and the methods of the class."""
    yield f"{'#' * level} {name.rpartition('.')[2].replace('__call__', 'call')}"
    if described not in GIVEN and (signature := _signature(name, described)):
        yield f"```python\n{signature}\n```"
    if not (is_dataclass(described) and str(described.__doc__).startswith(f"{getattr(described, '__name__', '')}(")):
        yield prose(inspect.getdoc(described) or "")
    if inspect.isclass(described) and not issubclass(described, Exception):
        for method, attribute in _methods(described):
            yield from entry(f"{name.rpartition('.')[2]}.{method}", attribute, level + 1)


def _methods(kind: type) -> Iterator[tuple[str, object]]:
    """The public methods and properties that a class declares, or a base of it in the same room."""
    room = kind.__module__.rpartition(".")[0]
    bases = [base for base in kind.__mro__[::-1] if base.__module__.rpartition(".")[0] == room]
    for name, attribute in {name: attribute for base in bases for name, attribute in vars(base).items()}.items():
        method = getattr(attribute, "__func__", attribute)
        if (name == "__call__" or not name.startswith("_")) and (
            inspect.isfunction(method) or isinstance(method, PROPERTIES)
        ):
            yield name, method


def _signature(name: str, described: object) -> str:
    """The call of a function or a class with its types, a parameter a line if it exceeds LONGEST; the type of a
    property; empty without a signature."""
    if isinstance(described, PROPERTIES):
        function = described.fget if isinstance(described, property) else described.func
        return f"{name}: {_annotation(inspect.signature(function).return_annotation)}"  # type: ignore[arg-type]
    try:
        signature = inspect.signature(described)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""
    name = name.removesuffix(".__call__").lower() if name.endswith(".__call__") else name
    kept = [p for p in signature.parameters.values() if p.name != "self"]
    shown = [re.sub(r"^(\*{0,2}\w+): '([^']*)'", r"\1: \2", str(p)) for p in kept]
    annotation = "" if inspect.isclass(described) else _annotation(signature.return_annotation)
    returned = f" -> {annotation}" if annotation else ""
    line = f"{name}({', '.join(shown)}){returned}"
    if len(line) <= LONGEST:
        return line
    return f"{name}(\n" + "".join(f"    {parameter},\n" for parameter in shown) + f"){returned}"


def _annotation(annotation: object) -> str:
    return "" if annotation is inspect.Signature.empty else str(annotation).strip("'")


def prose(text: str) -> str:
    """A docstring as Markdown: indented paragraphs and examples are code; signs of arithmetic are escaped."""
    paragraphs = re.split(r"\n\s*\n", text)
    return "\n\n".join(_code(p) if re.match(r" +\S|>>> ", p) else _escaped(p) for p in paragraphs)


def _code(paragraph: str) -> str:
    language = "pycon" if paragraph.startswith(">>> ") else "text"
    return f"```{language}\n{inspect.cleandoc(chr(10) + paragraph)}\n```"


def _escaped(paragraph: str) -> str:
    parts = re.split(r"(`[^`]*`)", paragraph)
    return "".join(part if part[:1] == "`" else re.sub(r"([*_<\[\]|])", r"\\\1", part) for part in parts)


def operators() -> dict[str, list[str]]:
    """Map each module of te.nn to the names of its operators."""
    families: dict[str, list[str]] = {}
    for name in te.nn.__all__:
        function = getattr(te.nn, name)
        if inspect.isfunction(function) and function.__module__.startswith("compiler.te.nn"):
            families.setdefault(function.__module__, []).append(name)
    return families


def _nn() -> Iterator[str]:
    for module, names in sorted(operators().items()):
        yield f"## {module.rpartition('.')[2].capitalize()}"
        for name in names:
            yield from entry(f"te.nn.{name}", getattr(te.nn, name), 3)
            yield f"```pycon\n{operator_examples.example(name)}\n```"


def names(module: ModuleType) -> dict[str, object]:
    """Map the names of a module of the API to its functions, classes and constants, without the modules in it."""
    values = {name: getattr(module, name) for name in module.__all__}
    return {name: value for name, value in values.items() if not isinstance(value, ModuleType) and name[0] != "_"}


def _entries(module: ModuleType) -> Iterator[str]:
    for name, value in names(module).items():
        if inspect.isclass(value) or inspect.isroutine(value):
            yield from entry(f"{module.__name__}.{name}", value)
            if module is strata.recipes and (text := recipe_examples.example(name)):
                yield f"```pycon\n{text}\n```"


def _modules() -> Iterator[tuple[str, ModuleType]]:
    yield "strata", strata
    yield from ((name, import_module(f"strata.{name}")) for name in strata.MODULES)


def _page(name: str, module: ModuleType) -> Page:
    head = str(module.__doc__).partition("\n\n")[0]
    return Page(module.__name__, head, partial(_entries, module))


PAGES = {name: _page(name, module) for name, module in _modules()} | {
    "nn": Page("te.nn", "The named operators, by family. [Which dtypes each takes](../operators.md).", _nn)
}
"""The pages by the names of their files in api/."""

HEAD = """# The API

`strata` and its modules are the API: a program that imports nothing else depends on nothing that may change without a
line in [the changelog](../CHANGELOG.md); [what stays stable](stability.md) says more. The modules of `compiler` are
internal. Docs, examples, [plugins](plugins.md) and recipes use no other names than these. Written by `python
tools/docs.py`.
"""


def listing() -> str:
    """docs/api.md: the names of each module of the API, each with the first sentence of its docstring."""
    parts = [HEAD.strip()]
    for _, module in _modules():
        parts.append(f"\n## `{module.__name__}`\n\n{_head(module)}\n")
        values = {name: value for name, value in names(module).items() if not _is_operator(value)}
        described = {name for name, value in values.items() if inspect.isclass(value) or inspect.isroutine(value)}
        parts += [f"- `{name}`: {_sentence(values[name])}" for name in values if name in described]
        inside = [name for name in module.__all__ if isinstance(getattr(module, name), ModuleType)]
        parts += [_module_line(name, getattr(module, name)) for name in inside]
        constants = [name for name in values if name not in described]
        parts += [_constant_line(module, name, values[name]) for name in constants]
    return "\n".join(parts) + "\n"


def _module_line(name: str, module: ModuleType) -> str:
    """A line for a module of the API within another one, with its functions and classes if they have no list here."""
    line = f"- `{name}`, a module: {_head(module)}"
    own = [n for n, value in vars(module).items() if not n.startswith("_") and _is_of(value, module)]
    return line if module in (te, te.nn) or not own else f"{line} It has {', '.join(f'`{n}`' for n in sorted(own))}."


def _is_of(value: object, module: ModuleType) -> bool:
    """Whether a function or class is defined in a module, or in one of a package."""
    defined = f"{getattr(value, '__module__', '')}."
    return (inspect.isclass(value) or inspect.isfunction(value)) and defined.startswith(f"{module.__name__}.")


def _constant_line(module: ModuleType, name: str, value: object) -> str:
    """A constant with its type and the first sentence of the literal behind its assignment."""
    kind = type(value).__name__ if type(value).__module__.partition(".")[0] in ("builtins", "compiler") else "type"
    text = constant_doc(module, name).partition("\n\n")[0]
    return f"- `{name}` ({kind}){f': {_first(text)}' if text else ''}"


def constant_doc(module: ModuleType, name: str) -> str:
    """The string literal behind the assignment of a constant in the module that defines it; empty without one."""
    tree = ast.parse(inspect.getsource(module))
    for before, after in pairwise(tree.body):
        targets = before.targets if isinstance(before, ast.Assign) else [getattr(before, "target", None)]
        is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and after.value.value
        if any(isinstance(target, ast.Name) and target.id == name for target in targets) and isinstance(is_text, str):
            return inspect.cleandoc(is_text)
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module)
    sources = ((node.module, a.name) for node in imports for a in node.names if (a.asname or a.name) == name)
    source = next(sources, None)
    return "" if source is None else constant_doc(import_module(str(source[0])), source[1])


def _head(module: ModuleType) -> str:
    return " ".join(str(module.__doc__).partition("\n\n")[0].split())


def _sentence(value: object) -> str:
    return _first((inspect.getdoc(value) or "").partition("\n\n")[0])


def _first(text: str) -> str:
    """The first sentence of a text."""
    return _escaped(re.split(r"(?<=[.])\s", " ".join(text.split()))[0])


def _is_operator(value: object) -> bool:
    return getattr(value, "__module__", "").startswith("compiler.te.nn")
