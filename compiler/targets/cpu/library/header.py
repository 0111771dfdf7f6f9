"""The headers of a library: in C, and in C++ a class that owns the memory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import accumulate
from pathlib import Path

from compiler.targets.arguments import Argument
from compiler.targets.cpu.library.description import Description, alignment
from compiler.targets.cpu.library.source import comment, quoted
from compiler.targets.cpu.library.statuses import STATUSES


def header(description: Description, has_file: bool) -> str:
    """Write the header of a library in C: its arrays, constants, statuses and functions; with `has_file`, also of the
    function that reads the file of weights."""
    d = description
    sentence = _template("prepare_file.h") if has_file else ""
    replaced = {
        "arrays": "\n".join(_arrays(d)),
        "constants": "\n".join(_numbers(d)),
        "statuses": ",\n".join(f"  {d.prefix}_{s.name} = {n} /* {s.message} */" for n, s in enumerate(STATUSES)),
        "cpus": ", ".join(version.machine.cpu for version in d.versions),
        "threads": _threads(d),
        "prepare_file": sentence,
        "program": comment(d.program),
        "policy": d.policy,
    }
    return _filled("template.h", d, replaced)


def cpp_header(description: Description, has_file: bool) -> str:
    """Write the header in C++17, which includes that in C; with `has_file`, it has the function that reads the file of
    weights."""
    return _filled("template.hpp", description, {"prepare_file": _template("prepare_file.hpp") if has_file else ""})


def _filled(name: str, d: Description, replaced: dict[str, str]) -> str:
    text = _template(name)
    for key, value in {**replaced, "name": d.name, "PREFIX": d.prefix}.items():
        text = text.replace(f"@{key}@", value)
    return text


@cache
def _template(name: str) -> str:
    return (Path(__file__).parent / name).read_text()


def _threads(d: Description) -> str:
    if d.threads is None:
        return "it has no parallel loops, and `threads` has no effect."
    if d.threads == 1:
        return "it links no thread pool: parallel loops run on the calling thread, and `threads` has no effect."
    return f"parallel loops run on OpenMP's thread pool (libgomp); it was scheduled for {d.threads} threads."


def _arrays(d: Description) -> Iterator[str]:
    """A table of the arrays, as lines of a comment."""
    for kind in ("inputs", "outputs", "weights"):
        arguments: tuple[Argument, ...] = getattr(d, kind)
        for position, argument in enumerate(arguments):
            yield f" *   {f'{kind}[{position}]':12} {comment(_described(argument))}"


def _described(argument: Argument) -> str:
    if argument.by_value:
        return f"{argument.name}: a pointer to one {argument.dtype.name}"
    size = argument.dtype.itemsize
    strides = [*accumulate(reversed(argument.shape[1:]), lambda a, b: a * b, initial=size)][::-1]
    shape = ", ".join(map(str, argument.shape))
    layout = f"strides {tuple(strides[: len(argument.shape)])}, {argument.size} bytes, aligned to {alignment(argument)}"
    return f"{argument.name}: {argument.dtype.name}[{shape}], {layout}"


def _numbers(d: Description) -> Iterator[str]:
    """Yield macros of the numbers of arrays, of the bytes of inputs and outputs and, if there are weights, of their
    names, as lines of C."""
    for kind in ("inputs", "outputs", "weights"):
        yield f"#define {d.prefix}_{kind.upper()} {len(getattr(d, kind))}"
    for kind, arguments in (("INPUT", d.inputs), ("OUTPUT", d.outputs)):
        for position, argument in enumerate(arguments):
            yield f"#define {d.prefix}_{kind}_{position}_BYTES {argument.size}"
    names = ", ".join(quoted(a.name).replace("\n    ", " ") for a in d.weights)
    if names:
        yield "/* The names of the weights, in order, as an initialiser. */"
        yield f"#define {d.prefix}_WEIGHT_NAMES {{{names}}}"
