"""The usual call of a kernel, as a Python function of its own: the checks of each array, unrolled, without a loop.

A call of a small kernel costs what Python does before it. So the function is written as text, once for each kernel and
kind of arrays:

    def call(arrays, out, workspace):
        [g0, g1] = arrays
        a0 = g0
        if not (type(a0) is Class and a0.shape == shape0 and a0.dtype == dtype0): return UNUSUAL
        p0 = address(a0)
        if not (a0.flags.c_contiguous and not p0 % 4): ...
        native(p0, p1, p2, workspace)
        return a2

A call that this does not take may still be valid: `Binder` decides, and raises the sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from compiler.targets.address import address
from compiler.targets.arguments import Argument, are_apart, rooms
from compiler.targets.cpu.kinds import ANY, ArrayKind, kind_of

UNUSUAL = object()
"""What the function returns for arrays that it does not take."""
MOST_PAIRS = 32
"""The most pairs of arrays that are compared one by one; beyond, their stretches of memory are sorted."""
Call = Callable[..., object]


@dataclass(frozen=True)
class NativeFunction:
    """A native function of arrays, the last `outputs` of them results; without any, it writes to all.

    `fixed` are addresses that no call gives, by their positions among all arguments; `threads` says that there are
    parallel loops.
    """

    call: Callable[..., None]
    arguments: Sequence[Argument]
    outputs: int
    fixed: Mapping[int, int]
    threads: bool


class UsualCalls(dict[type, Call]):
    """The usual calls of a native function by the class of the first array, each written when it is first needed.

    A call takes the arrays, `out`, the address of a workspace and, for parallel loops, the count of threads; it returns
    what a call of the kernel does, or UNUSUAL. `on_views` takes arrays of any classes.
    """

    def __init__(self, kernel: str, function: NativeFunction) -> None:
        self._kernel, self._function = kernel, function

    def __missing__(self, cls: type) -> Call:
        kind = kind_of(cls)
        self[cls] = self.on_views if kind is None else usual_call(self._kernel, self._function, kind)
        return self[cls]

    @cached_property
    def on_views(self) -> Call:
        """The call for arrays of any class. Raises TargetError for objects that are no arrays."""
        return usual_call(self._kernel, self._function, ANY)


def _unusual(*given: object) -> object:
    return UNUSUAL


def usual_call(kernel: str, function: NativeFunction, kind: ArrayKind) -> Call:
    """The usual call of a kernel's native function on arrays of a kind."""
    if any(argument.by_value for argument in function.arguments):
        return _unusual
    names: dict[str, object] = {"native": function.call, "are_apart": are_apart, "address": address}
    names |= {**kind.names, "Class": kind.cls, "copied": kind.copied, "converted": kind.converted, "UNUSUAL": UNUSUAL}
    for n, argument in enumerate(function.arguments):
        names |= {f"argument{n}": argument, f"shape{n}": argument.shape, f"dtype{n}": kind.dtype(argument.dtype)}
        names |= {f"room{n}": rooms(argument), f"place{n}": f"{kernel}: argument '{argument.name}'"}
    exec("\n".join(_lines(function, kind)), names)
    return names["call"]  # type: ignore[return-value]


def _lines(function: NativeFunction, kind: ArrayKind) -> Iterator[str]:
    every = range(len(function.arguments))
    given, outputs = every[: len(every) - function.outputs], every[len(every) - function.outputs :]
    yield f"def call(arrays, out, workspace{', threads' if function.threads else ''}):"
    yield f" [{', '.join(f'g{n}' for n in given)}] = arrays"
    for n in given:
        yield from (_read if outputs else _write)(kind, n, function.arguments[n])
    if not outputs:
        yield " if out is not None: return UNUSUAL"
        yield from _on_given(function, kind, every, "None")
        return
    returned = ", ".join(f"g{n}" for n in outputs)
    yield " if out is None:"
    for n in outputs:
        yield from (f"  a{n} = room{n}()", f"  p{n} = address(a{n})")
    new = ", ".join(kind.returned.format(a=f"a{n}") for n in outputs)
    yield from (f"  {_native(function)}", f"  return {new}")
    if len(outputs) == 1:
        yield f" {returned} = out[0] if type(out) is tuple and len(out) == 1 else out"
    else:
        yield f" if type(out) is not tuple or len(out) != {len(outputs)}: return UNUSUAL"
        yield f" {returned} = out"
    for n in outputs:
        yield from _write(kind, n, function.arguments[n])
    yield from _on_given(function, kind, outputs, returned)


def _read(kind: ArrayKind, n: int, argument: Argument) -> Iterator[str]:
    """Set the address of an array to read, or of a copy; `out` must not overlap even an array that is copied."""
    yield f" a{n} = {kind.read.format(g=f'g{n}', n=n)}"
    yield f" if not ({kind.fits.format(a=f'a{n}', n=n)}):"
    if kind.converted is not None:
        yield f"  a{n} = converted(argument{n}, a{n}) if out is None else None"
        yield f"  if a{n} is None: return UNUSUAL"
    else:
        yield "  return UNUSUAL"
    yield from _start(kind, n)
    yield f" if not {_usable(kind.reads, n, argument)}:"
    yield "  if out is not None: return UNUSUAL"
    yield from (f"  a{n} = copied(argument{n}, a{n})", f"  p{n} = {kind.start.format(a=f'a{n}')}")


def _write(kind: ArrayKind, n: int, argument: Argument) -> Iterator[str]:
    """Set the address of an array to write."""
    yield f" a{n} = {kind.written.format(g=f'g{n}', n=n)}"
    yield f" if not ({kind.fits.format(a=f'a{n}', n=n)}): return UNUSUAL"
    yield from _start(kind, n)
    yield f" if not {_usable(kind.writes, n, argument)}: return UNUSUAL"


def _start(kind: ArrayKind, n: int) -> Iterator[str]:
    yield f" try: p{n} = {kind.start.format(a=f'a{n}')}"
    yield " except RuntimeError: return UNUSUAL"


def _usable(condition: str, n: int, argument: Argument) -> str:
    alignment = max(argument.alignment, argument.dtype.alignment)
    return f"({condition.format(a=f'a{n}')} and not p{n} % {alignment})"


def _on_given(function: NativeFunction, kind: ArrayKind, written: range, returned: str) -> Iterator[str]:
    """Call native code that writes to given arrays."""
    yield from _apart(function, written)
    yield f" {_native(function)}"
    yield from (f" {kind.after_writing.format(g=f'g{n}')}" for n in written if kind.after_writing)
    yield f" return {returned}"


def _apart(function: NativeFunction, written: range) -> Iterator[str]:
    """No array that is written overlaps another one."""
    sizes = [argument.size for argument in function.arguments]
    pairs = [(i, j) for i in written for j in range(i)]
    if len(pairs) <= MOST_PAIRS:
        for i, j in pairs:
            yield f" if p{j} < p{i} + {sizes[i]} and p{i} < p{j} + {sizes[j]}: return UNUSUAL"
        return
    starts = ", ".join(f"p{n}" for n in range(len(sizes)))
    yield f" if not are_apart([{starts}], {sizes}, {[n in written for n in range(len(sizes))]}): return UNUSUAL"


def _native(function: NativeFunction) -> str:
    passed = [f"p{n}" for n in range(len(function.arguments))]
    for position, start in sorted(function.fixed.items()):
        passed.insert(position, str(start))
    return f"native({', '.join([*passed, 'workspace', *(['threads'] if function.threads else [])])})"
