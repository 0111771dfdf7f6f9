"""`CKernel`: a function as a text of C, compiled and called where there is a compiler."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from compiler.dialects.functions import constant_values, outputs
from compiler.support import display
from compiler.support.errors import TargetError
from compiler.support.text import counted
from compiler.targets.address import address
from compiler.targets.arguments import Argument, Array, arguments_html, check_apart, check_input, check_target, room
from compiler.targets.c import compilers
from compiler.targets.c.emit import CSource, emit

Results: TypeAlias = Any  # an array, a tuple of several or None: the outputs tell, which types do not know


@dataclass(frozen=True)
class CKernel:
    """A function as a text of C. `arguments` are its inputs, then its `outputs`; called with inputs it compiles the
    text, once, and gives the outputs as arrays of numpy."""

    name: str
    arguments: tuple[Argument, ...]
    outputs: int
    source: CSource
    policy: str

    def __repr__(self) -> str:
        arguments = ", ".join(map(str, self.arguments))
        return display.line(f"<CKernel {self.name}({arguments}), {counted(self.outputs, 'output')}>")

    def _repr_html_(self) -> str:
        return arguments_html(self.name, self.arguments, self.outputs)

    def __getstate__(self) -> dict[str, object]:
        """It as data: its library is made again where it is called."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def text(self) -> str:
        """The C."""
        return self.source.text

    @property
    def can_compile(self) -> bool:
        """Whether there is a compiler here."""
        return compilers.compiler() is not None

    @cached_property
    def _function(self) -> Any:
        """The compiled function, which takes addresses."""
        function = getattr(compilers.loaded(self.text, self.source.contracts), self.source.symbol)
        function.argtypes, function.restype = [ctypes.c_void_p] * len(self.arguments), None
        return function

    def __call__(self, *inputs: object, out: object = None) -> Results:
        """Run it on arrays of numpy, or of packages that share their memory with it.

        Raises TargetError without a compiler, and for arrays that do not fit.
        """
        count = len(self.arguments) - self.outputs
        if len(inputs) != count:
            raise TargetError(f"{self.name}: takes {count} arrays, got {len(inputs)}")
        taken = [check_input(self.name, a, given) for a, given in zip(self.arguments, inputs, strict=False)]
        results = self._results(out)
        arrays = [*taken, *results]
        check_apart(self.name, self.arguments, arrays, [False] * count + [True] * self.outputs)
        self._function(*map(address, arrays))
        return results[0] if len(results) == 1 else tuple(results) if results else None

    def _results(self, out: object) -> list[Array]:
        """The arrays that the outputs are written to."""
        expected = self.arguments[len(self.arguments) - self.outputs :]
        if out is None:
            return [room(argument) for argument in expected]
        given: Sequence[object] = out if isinstance(out, tuple | list) else [out]
        if len(given) != self.outputs:
            raise TargetError(f"{self.name}: gives {self.outputs} arrays, got {len(given)} for them")
        return [check_target(self.name, argument, array) for argument, array in zip(expected, given, strict=True)]


def made(module: ModuleOp, function: FuncOp, arguments: Sequence[Argument], policy: str) -> CKernel:
    """The kernel of a low-level function. Raises LoweringError for an op without a form in C."""
    constants, count = constant_values(function), outputs(function)
    source = emit(module, function, arguments, count)
    taken = tuple(replace(a, alignment=1) for number, a in enumerate(arguments) if number not in constants)
    return CKernel(function.sym_name.data, taken, count, source, policy)
