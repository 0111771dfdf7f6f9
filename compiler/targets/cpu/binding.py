"""Bind the arrays of a call to native arguments: addresses of the arrays, or of copies, and of results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import compress
from typing import Any, NamedTuple, TypeAlias

from compiler.support.errors import TargetError
from compiler.support.text import suggestion
from compiler.targets.address import address
from compiler.targets.arguments import (
    Argument,
    Array,
    NativeValue,
    check_disjoint,
    check_input,
    check_output,
    new_array,
)
from compiler.targets.foreign import as_numpy, bump_version, identity, is_array, result_wrapper

Out: TypeAlias = object
"""The value of `out=`: an array, a sequence of several, or None."""


class Binding(NamedTuple):
    """The native arguments of a call, the arrays that own their memory, the results, and the function that wraps a
    result as an array of the caller's package."""

    native_values: list[NativeValue]
    owners: list[object]
    results: Sequence[Any]
    result_wrapper: Callable[[Any], object]

    def wrapped_results(self) -> object:
        """Return the value of the call: None, the result, or a tuple of several."""
        outputs = tuple(map(self.result_wrapper, self.results))
        return None if not outputs else outputs[0] if len(outputs) == 1 else outputs


class Binder:
    """Checks of the arrays of calls to a native function, whose last `outputs` arguments are results; with 0 outputs it
    writes to all. `fixed` are the arrays of further arguments, by their positions among all, which the caller keeps
    alive. `name` is the kernel's in messages."""

    def __init__(self, name: str, arguments: Sequence[Argument], outputs: int, fixed: Mapping[int, Array]) -> None:
        self._name = name
        self._arguments = arguments
        self._inputs = arguments[: len(arguments) - outputs]
        self._names = [argument.name for argument in self._inputs]
        self._names_differ = len(set(self._names)) == len(self._names)
        self._outputs = arguments[len(arguments) - outputs :]
        self._written = [not a.by_value and (not outputs or n >= len(self._inputs)) for n, a in enumerate(arguments)]
        self._fixed = [(position, address(array)) for position, array in sorted(fixed.items())]

    def in_order(self, arrays: Sequence[object], named: Mapping[str, object]) -> Sequence[object]:
        """Return the inputs in order, positional and named. Raises TargetError for a wrong count or name, for a name
        that several arguments or a result have, and for an input that is missing or passed twice."""
        names = self._names
        by_name = names[len(arrays) :]
        if len(arrays) + len(named) == len(names) and self._names_differ:
            try:
                return [*arrays, *[named[name] for name in by_name]]
            except KeyError:
                pass  # the checks below raise
        if len(arrays) > len(names) or (not named and len(arrays) < len(names)):
            raise TargetError(f"{self._name}: takes {_arrays(len(names))}, got {len(arrays) + len(named)}")
        for name in named:
            self._check_name(name, names[: len(arrays)], names)
        missing = [name for name in by_name if name not in named]
        if missing:
            raise TargetError(f"{self._name}: argument {_quoted(missing)} missing")
        return [*arrays, *map(named.__getitem__, by_name)]

    def bind(self, inputs: Sequence[object], out: Out) -> Binding:
        """Check the arrays of a call, inputs in order; return its native arguments and results: the arrays of `out`, or
        new ones for None. Raises TargetError for arrays of another count, shape or dtype, for inputs that are no
        arrays, for results that native code cannot write, and for results that overlap other arrays."""
        out_arrays = self._out_arrays(out)
        all_given = [*inputs, *out_arrays]
        numpy_arrays = [self._as_numpy(n, array) for n, array in enumerate(all_given)]
        checked = [self._checked(n, array) for n, array in enumerate(numpy_arrays)]
        if out is None and self._outputs:
            new_results = [new_array(argument) for argument in self._outputs]
            return self._binding(
                [*checked, *new_results], new_results, result_wrapper(inputs[0]) if inputs else identity
            )
        check_disjoint(self._name, self._arguments, numpy_arrays, self._written)
        for n in compress(range(len(all_given)), self._written):
            bump_version(all_given[n])
        return self._binding(checked, out_arrays, identity)

    def _binding(
        self, checked: list[Array], outputs: Sequence[Any], result_wrapper: Callable[[Any], object]
    ) -> Binding:
        native_values: list[NativeValue] = []
        for argument, array in zip(self._arguments, checked, strict=True):
            native_values.append(array.item() if argument.by_value else address(array))
        for position, start in self._fixed:
            native_values.insert(position, start)
        return Binding(native_values, [*checked], outputs, result_wrapper)

    def _as_numpy(self, position: int, value: object) -> Array:
        name = self._arguments[position].name
        if self._written[position] and not is_array(value):
            kind = type(value).__name__
            raise TargetError(f"{self._name}: '{name}' is written, but of type {kind}, expected a numpy array")
        return as_numpy(f"{self._name}: argument '{name}'", value)

    def _checked(self, position: int, array: Array) -> Array:
        check = check_output if self._written[position] else check_input
        return check(self._name, self._arguments[position], array)

    def _check_name(self, name: str, by_position: Sequence[str], names: Sequence[str]) -> None:
        """Raise TargetError unless a name is that of exactly one input, which is not also passed by position."""
        if any(argument.name == name for argument in self._outputs):
            raise TargetError(f"{self._name}: '{name}' is a result: give the array for it in out=")
        if name not in names:
            hint = suggestion(name, names, f" (there are {', '.join(names) or 'none'})")
            raise TargetError(f"{self._name}: there is no argument '{name}'{hint}")
        if names.count(name) > 1:
            raise TargetError(f"{self._name}: {names.count(name)} arguments have the name '{name}': give them in order")
        if name in by_position:
            raise TargetError(f"{self._name}: argument '{name}' is given by position and by name")

    def _out_arrays(self, out: Out) -> Sequence[object]:
        if out is None:
            return []
        arrays = out if isinstance(out, tuple | list) else [out]
        if len(arrays) != len(self._outputs):
            raise TargetError(f"{self._name}: gives {_arrays(len(self._outputs))}, out= has {len(arrays)}")
        for array in arrays:
            if not is_array(array):
                raise TargetError(f"{self._name}: out= holds a {type(array).__name__}, expected numpy arrays")
        return arrays


def _arrays(count: int) -> str:
    return f"{count} array{'' if count == 1 else 's'}"


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names) + (" is" if len(names) == 1 else " are")
