"""The API reference of the site: a page a room, written from signatures and docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, is_dataclass
from functools import cached_property
from types import ModuleType

import compiler
import strata
from compiler import recipes, schedule, te
from compiler.frontends.model import Imported
from compiler.frontends.torch import explain
from compiler.frontends.torch.report import Report
from compiler.recipes.draft import Draft
from compiler.recipes.rules import Alternative
from compiler.schedule.primitives import PRIMITIVES
from compiler.schedule.recorder import Recorder
from compiler.support import errors, plugins
from compiler.targets.c.kernel import CKernel
from compiler.targets.cpu.kernel import Kernel, Timing
from compiler.targets.cuda.kernel import CudaKernel
from compiler.targets.target import Target
from compiler.types.machines import Gpu, Machine

PROPERTIES = (property, cached_property)
GIVEN = (Kernel, CudaKernel, CKernel, Timing)
"""The classes whose objects others make: how is not shown."""
LONGEST = 100
"""The columns of a signature on one line."""


@dataclass(frozen=True)
class Page:
    """A page: what stands above its entries, and the entries in their order."""

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
    """The call of a function or a class with its types, a parameter a line where it is long; the type of a property."""
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
    """A docstring as Markdown: what is indented is code, and no sign of arithmetic is taken as emphasis."""
    paragraphs = re.split(r"\n\s*\n", text)
    return "\n\n".join(_code(p) if re.match(r" +\S", p) else _escaped(p) for p in paragraphs)


def _code(paragraph: str) -> str:
    return f"```text\n{inspect.cleandoc(chr(10) + paragraph)}\n```"


def _escaped(paragraph: str) -> str:
    parts = re.split(r"(`[^`]*`)", paragraph)
    return "".join(part if part[:1] == "`" else re.sub(r"([*_<\[\]|])", r"\\\1", part) for part in parts)


def _top() -> Iterator[str]:
    for name in ("build", "lower"):
        yield from entry(f"strata.{name}", getattr(compiler, name))


def _te() -> Iterator[str]:
    for name in te.__all__:
        if not isinstance(getattr(te, name), ModuleType):
            yield from entry(f"te.{name}", getattr(te, name))


def operators() -> dict[str, list[str]]:
    """The names of the operators of te.nn by the module that has them."""
    families: dict[str, list[str]] = {}
    for name in dir(te.nn):
        function = getattr(te.nn, name)
        if (
            inspect.isfunction(function)
            and not name.startswith("_")
            and function.__module__.startswith("compiler.te.nn")
        ):
            families.setdefault(function.__module__, []).append(name)
    return families


def _nn() -> Iterator[str]:
    for module, names in sorted(operators().items()):
        yield f"## {module.rpartition('.')[2].capitalize()}"
        for name in names:
            yield from entry(f"te.nn.{name}", getattr(te.nn, name), 3)


def _schedule() -> Iterator[str]:
    yield "## Schedule"
    yield prose(inspect.getdoc(schedule.Schedule) or "")
    for method, function in _methods(Recorder):
        if method not in PRIMITIVES:
            yield from entry(f"Schedule.{method}", function, 3)
    for name in ("outline", "replay"):
        yield from entry(f"strata.schedule.{name}", getattr(schedule, name))
    yield "## Composites"
    for name in recipes.__all__:
        if inspect.isfunction(getattr(recipes, name)):
            yield from entry(f"recipes.{name}", getattr(recipes, name), 3)


def _tuning() -> Iterator[str]:
    for name in ("SearchTask", "TuningOptions", "workload"):
        yield from entry(f"strata.{name}", getattr(strata, name))
    yield from entry("strata.recipes.rules.Alternative", Alternative)
    yield from entry("strata.recipes.draft.Draft", Draft)


def _kernels() -> Iterator[str]:
    for kind in (Kernel, Timing, CudaKernel, CKernel, Target, Machine, Gpu):
        yield from entry(f"{kind.__module__.replace('compiler', 'strata', 1)}.{kind.__name__}", kind)


def _frontends() -> Iterator[str]:
    for name in ("from_onnx", "from_torch"):
        yield from entry(f"strata.{name}", getattr(compiler, name))
    yield from entry("strata.frontends.model.Imported", Imported)
    yield from entry("strata.frontends.torch.explain", explain)
    yield from entry("strata.frontends.torch.report.Report", Report)


def _others() -> Iterator[str]:
    yield from entry("strata.plugins.Registry", plugins.Registry)
    for kind in vars(errors).values():
        if inspect.isclass(kind) and issubclass(kind, errors.StrataError):
            yield from entry(f"strata.errors.{kind.__name__}", kind)


PAGES = {
    "strata": Page("strata", "From a program to a kernel, and to its loops. `strata.X` is `compiler.X`.", _top),
    "te": Page("te", "Tensor expressions. `te.nn` has [a page of its own](nn.md).", _te),
    "nn": Page("te.nn", "The named operators, by family. [Which dtypes each takes](../operators.md).", _nn),
    "schedule": Page(
        "Schedules",
        "`from strata import recipes`, `from strata.schedule import Schedule, outline, replay`. The primitives are "
        "methods of `Schedule`, with [a page each](../primitives/README.md).",
        _schedule,
    ),
    "tuning": Page("Tuning", "[Tuning](../tuning.md) explains how these work together.", _tuning),
    "kernels": Page("Kernels and machines", "[Calling a kernel](../calls.md), [machines](../machines.md).", _kernels),
    "frontends": Page("Front ends", "[torch](../torch.md) and [ONNX models](../onnx.md).", _frontends),
    "others": Page("Plugins and errors", "[Plugins](../plugins.md). Each error is one sentence.", _others),
}
"""The pages by the names of their files in api/."""
