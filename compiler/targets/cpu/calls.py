"""The fast path of a kernel's call: a generated Python function with the checks of each array unrolled.

The time of a small kernel's call is that of Python's checks. The function is generated once for each kernel and array
class:

    def call(arrays, out, workspace):
        [g0, g1] = arrays
        a0 = g0
        if not (type(a0) is Class and a0.shape == shape0 and a0.dtype == dtype0): return DECLINED
        p0 = address(a0)
        if not (a0.flags.c_contiguous and not p0 % 4): ...
        native(p0, p1, p2, workspace)
        return a2

A call that it declines may still be valid: `Binder` decides, and raises the refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from compiler.targets.address import address
from compiler.targets.arguments import Argument, are_disjoint, array_factory
from compiler.targets.cpu.kinds import ANY_ARRAY, ArrayKind, kind_of

DECLINED = object()
"""The result of the fast path for arrays that it does not handle."""
MAX_PAIRS = 32
"""Up to this many pairs of arrays are tested for overlap one by one; for more, address intervals are sorted."""
FastCall = Callable[..., object]


@dataclass(frozen=True)
class NativeFunction:
    """A native function of arrays, the last `outputs` of them results; with 0 outputs it writes to all. call: takes the
    addresses of all arguments. fixed: constant addresses, by their positions among all arguments. threads: whether
    there are parallel loops."""

    call: Callable[..., None]
    arguments: Sequence[Argument]
    outputs: int
    fixed: Mapping[int, int]
    threads: bool


class FastCalls(dict[type, FastCall]):
    """The fast paths of a native function by the class of the first array, each generated at its first use; for a class
    other than numpy's array and torch's tensor it is `on_views`. A fast path takes the arrays, `out`, the address of a
    workspace and, for parallel loops, the count of threads; it returns the results of the kernel, or DECLINED.
    `on_views` takes arrays of any classes."""

    def __init__(self, kernel: str, function: NativeFunction) -> None:
        self._kernel, self._function = kernel, function

    def __missing__(self, cls: type) -> FastCall:
        kind = kind_of(cls)
        self[cls] = self.on_views if kind is None else compile_fast_call(self._kernel, self._function, kind)
        return self[cls]

    @cached_property
    def on_views(self) -> FastCall:
        """The fast path for arrays of any class. The fast path raises TargetError for inputs that are no arrays."""
        return compile_fast_call(self._kernel, self._function, ANY_ARRAY)


def _decline(*arguments: object) -> object:
    return DECLINED


def compile_fast_call(kernel: str, function: NativeFunction, kind: ArrayKind) -> FastCall:
    """Generate and return the fast path of a native function for an array class; `kernel` is the kernel's name in
    messages; that of a function with scalar arguments declines all calls."""
    if any(argument.by_value for argument in function.arguments):
        return _decline
    names: dict[str, object] = {"native": function.call, "are_disjoint": are_disjoint, "address": address}
    names |= {**kind.names, "Class": kind.cls, "copy": kind.copy, "convert": kind.convert, "DECLINED": DECLINED}
    for n, argument in enumerate(function.arguments):
        names |= {f"argument{n}": argument, f"shape{n}": argument.shape, f"dtype{n}": kind.dtype(argument.dtype)}
        names |= {f"new_array{n}": array_factory(argument), f"label{n}": f"{kernel}: argument '{argument.name}'"}
    exec("\n".join(_lines(function, kind)), names)
    return names["call"]  # type: ignore[return-value]


def _lines(function: NativeFunction, kind: ArrayKind) -> Iterator[str]:
    positions = range(len(function.arguments))
    inputs, outputs = positions[: len(positions) - function.outputs], positions[len(positions) - function.outputs :]
    yield f"def call(arrays, out, workspace{', threads' if function.threads else ''}):"
    yield f" [{', '.join(f'g{n}' for n in inputs)}] = arrays"
    for n in inputs:
        yield from (_read_checks if outputs else _write_checks)(kind, n, function.arguments[n])
    if not outputs:
        yield " if out is not None: return DECLINED"
        yield from _call_into_out(function, kind, positions, "None")
        return
    out_names = ", ".join(f"g{n}" for n in outputs)
    yield " if out is None:"
    for n in outputs:
        yield from (f"  a{n} = new_array{n}()", f"  p{n} = address(a{n})")
    wrapped_results = ", ".join(kind.result.format(a=f"a{n}") for n in outputs)
    yield from (f"  {_native(function)}", f"  return {wrapped_results}")
    if len(outputs) == 1:
        yield f" {out_names} = out[0] if type(out) is tuple and len(out) == 1 else out"
    else:
        yield f" if type(out) is not tuple or len(out) != {len(outputs)}: return DECLINED"
        yield f" {out_names} = out"
    for n in outputs:
        yield from _write_checks(kind, n, function.arguments[n])
    yield from _call_into_out(function, kind, outputs, out_names)


def _read_checks(kind: ArrayKind, n: int, argument: Argument) -> Iterator[str]:
    """Yield the lines that check input `n`, and compute its address or its copy's; with `out` a needed copy declines
    the call."""
    yield f" a{n} = {kind.read.format(g=f'g{n}', n=n)}"
    yield f" if not ({kind.fits.format(a=f'a{n}', n=n)}):"
    if kind.convert is not None:
        yield f"  a{n} = convert(argument{n}, a{n}) if out is None else None"
        yield f"  if a{n} is None: return DECLINED"
    else:
        yield "  return DECLINED"
    yield from _address(kind, n)
    yield f" if not {_usable_condition(kind.readable, n, argument)}:"
    yield "  if out is not None: return DECLINED"
    yield from (f"  a{n} = copy(argument{n}, a{n})", f"  p{n} = {kind.address.format(a=f'a{n}')}")


def _write_checks(kind: ArrayKind, n: int, argument: Argument) -> Iterator[str]:
    yield f" a{n} = {kind.write.format(g=f'g{n}', n=n)}"
    yield f" if not ({kind.fits.format(a=f'a{n}', n=n)}): return DECLINED"
    yield from _address(kind, n)
    yield f" if not {_usable_condition(kind.writable, n, argument)}: return DECLINED"


def _address(kind: ArrayKind, n: int) -> Iterator[str]:
    yield f" try: p{n} = {kind.address.format(a=f'a{n}')}"
    yield " except RuntimeError: return DECLINED"


def _usable_condition(condition: str, n: int, argument: Argument) -> str:
    alignment = max(argument.alignment, argument.dtype.alignment)
    return f"({condition.format(a=f'a{n}')} and not p{n} % {alignment})"


def _call_into_out(function: NativeFunction, kind: ArrayKind, written: range, returned: str) -> Iterator[str]:
    yield from _overlap_checks(function, written)
    yield f" {_native(function)}"
    yield from (f" {kind.after_writing.format(g=f'g{n}')}" for n in written if kind.after_writing)
    yield f" return {returned}"


def _overlap_checks(function: NativeFunction, written: range) -> Iterator[str]:
    sizes = [argument.size for argument in function.arguments]
    pairs = [(i, j) for i in written for j in range(i)]
    if len(pairs) <= MAX_PAIRS:
        for i, j in pairs:
            yield f" if p{j} < p{i} + {sizes[i]} and p{i} < p{j} + {sizes[j]}: return DECLINED"
        return
    starts = ", ".join(f"p{n}" for n in range(len(sizes)))
    yield f" if not are_disjoint([{starts}], {sizes}, {[n in written for n in range(len(sizes))]}): return DECLINED"


def _native(function: NativeFunction) -> str:
    passed = [f"p{n}" for n in range(len(function.arguments))]
    for position, start in sorted(function.fixed.items()):
        passed.insert(position, str(start))
    return f"native({', '.join([*passed, 'workspace', *(['threads'] if function.threads else [])])})"
