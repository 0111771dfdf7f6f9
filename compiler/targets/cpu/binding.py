"""What native code is passed for the arrays of a call: addresses of arrays that fit, or of copies, and of results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import compress
from typing import Any, NamedTuple, TypeAlias

from compiler.support.errors import TargetError
from compiler.support.text import meant
from compiler.targets.address import address
from compiler.targets.arguments import Argument, Array, Passed, check_apart, check_input, check_target, room
from compiler.targets.foreign import as_it_is, as_numpy, is_array, note_writing, returned_as

Out: TypeAlias = object
"""An array, or a sequence of several, or None."""


class Binding(NamedTuple):
    """The values that native code is passed, the arrays that own the memory behind them, the arrays that are results,
    and the conversion of results to the caller's kind."""

    passed: list[Passed]
    held: list[object]
    results: Sequence[Any]
    returned_as: Callable[[Any], object]

    def returned(self) -> object:
        """What a call returns, when native code has run."""
        outputs = tuple(map(self.returned_as, self.results))
        return None if not outputs else outputs[0] if len(outputs) == 1 else outputs


class Binder:
    """The arguments of a native function, the last `outputs` of them results; without any, it works in place.

    `fixed` are the arrays of further arguments, by their positions among all.
    """

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
        """The inputs in order, given by position and by name. Raises TargetError where one is missing or doubled."""
        names = self._names
        by_name = names[len(arrays) :]
        if len(arrays) + len(named) == len(names) and self._names_differ:
            try:
                return [*arrays, *[named[name] for name in by_name]]
            except KeyError:
                pass  # the checks below say which
        if len(arrays) > len(names) or (not named and len(arrays) < len(names)):
            raise TargetError(f"{self._name}: takes {_arrays(len(names))}, got {len(arrays) + len(named)}")
        for name in named:
            self._check_name(name, names[: len(arrays)], names)
        missing = [name for name in by_name if name not in named]
        if missing:
            raise TargetError(f"{self._name}: argument {_quoted(missing)} missing")
        return [*arrays, *map(named.__getitem__, by_name)]

    def bind(self, inputs: Sequence[object], out: Out) -> Binding:
        """What a call is passed. Raises TargetError for arrays that do not fit, and for results that overlap others."""
        targets = self._listed(out)
        given = [*inputs, *targets]
        seen = [self._seen(n, array) for n, array in enumerate(given)]
        checked = [self._checked(n, array) for n, array in enumerate(seen)]
        if out is None and self._outputs:
            new = [room(argument) for argument in self._outputs]
            return self._binding([*checked, *new], new, returned_as(inputs[0]) if inputs else as_it_is)
        check_apart(self._name, self._arguments, seen, self._written)
        for n in compress(range(len(given)), self._written):
            note_writing(given[n])
        return self._binding(checked, targets, as_it_is)

    def _binding(self, checked: list[Array], outputs: Sequence[Any], kind: Callable[[Any], object]) -> Binding:
        passed: list[Passed] = []
        for argument, array in zip(self._arguments, checked, strict=True):
            passed.append(array.item() if argument.by_value else address(array))
        for position, start in self._fixed:
            passed.insert(position, start)
        return Binding(passed, [*checked], outputs, kind)

    def _seen(self, position: int, given: object) -> Array:
        """A given array as numpy sees its memory."""
        name = self._arguments[position].name
        if self._written[position] and not is_array(given):
            kind = type(given).__name__
            raise TargetError(f"{self._name}: '{name}' is written, but of type {kind}, expected a numpy array")
        return as_numpy(f"{self._name}: argument '{name}'", given)

    def _checked(self, position: int, array: Array) -> Array:
        check = check_target if self._written[position] else check_input
        return check(self._name, self._arguments[position], array)

    def _check_name(self, name: str, by_position: Sequence[str], names: Sequence[str]) -> None:
        """Raise TargetError for a name that is not the name of one input which is given nowhere else."""
        if any(argument.name == name for argument in self._outputs):
            raise TargetError(f"{self._name}: '{name}' is a result: give the array for it in out=")
        if name not in names:
            hint = meant(name, names, f" (there are {', '.join(names) or 'none'})")
            raise TargetError(f"{self._name}: there is no argument '{name}'{hint}")
        if names.count(name) > 1:
            raise TargetError(f"{self._name}: {names.count(name)} arguments have the name '{name}': give them in order")
        if name in by_position:
            raise TargetError(f"{self._name}: argument '{name}' is given by position and by name")

    def _listed(self, out: Out) -> Sequence[object]:
        """The arrays that a caller gives for results."""
        if out is None:
            return []
        given = out if isinstance(out, tuple | list) else [out]
        if len(given) != len(self._outputs):
            raise TargetError(f"{self._name}: gives {_arrays(len(self._outputs))}, out= has {len(given)}")
        for array in given:
            if not is_array(array):
                raise TargetError(f"{self._name}: out= holds a {type(array).__name__}, expected numpy arrays")
        return given


def _arrays(count: int) -> str:
    return f"{count} array{'' if count == 1 else 's'}"


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names) + (" is" if len(names) == 1 else " are")
