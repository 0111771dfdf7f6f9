"""`CKernel`: a function as C text, compiled and called if a C compiler is installed."""

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
from compiler.targets import compilers
from compiler.targets.address import address
from compiler.targets.arguments import (
    Argument,
    Array,
    arguments_html,
    check_disjoint,
    check_input,
    check_output,
    new_array,
)
from compiler.targets.c import library
from compiler.targets.c.emit import CSource, emit

Results: TypeAlias = Any  # an array, a tuple of several or None, by the number of outputs


@dataclass(frozen=True)
class CKernel:
    """A function as C text. `arguments` are its inputs, then its `outputs`. The first call compiles the text; each call
    returns the outputs as numpy arrays.

    >>> A = te.placeholder((4,), name="A")
    >>> kernel = build(te.function("f", [A], te.nn.relu(A, name="B")), target="c")
    >>> print(kernel.text[kernel.text.index("void f"):].rstrip())
    void f(const float A[restrict static 4], float B[restrict static 4]) {
      for (int64_t i0 = 0; i0 < 4; ++i0) {
        B[i0] = maximum_f32(A[i0], 0.0f);
      }
    }
    """

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
        """Pickle the fields; the library is compiled again after unpickling."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def text(self) -> str:
        """The C text."""
        return self.source.text

    @property
    def can_compile(self) -> bool:
        """Whether a C compiler is installed."""
        return compilers.compiler_command() is not None

    @cached_property
    def _function(self) -> Any:
        """The native function of the addresses of all arguments, compiled at the first access."""
        function = getattr(library.load_library(self.text, self.source.contracts), self.source.symbol)
        function.argtypes, function.restype = [ctypes.c_void_p] * len(self.arguments), None
        return function

    def __call__(self, *inputs: object, out: object = None) -> Results:
        """Run on arrays of numpy, or of packages that share memory with it, and return the outputs, in `out` if it is
        not None: an array, a tuple of several, None for no outputs. Raises TargetError without a compiler, for arrays
        of another number, shape or dtype, for arrays in `out` that are not contiguous, writable, aligned and in native
        byte order, and for outputs that share memory with other arrays. Inputs that C cannot read are copied."""
        count = len(self.arguments) - self.outputs
        if len(inputs) != count:
            raise TargetError(f"{self.name}: takes {count} arrays, got {len(inputs)}")
        checked = [check_input(self.name, a, value) for a, value in zip(self.arguments, inputs, strict=False)]
        results = self._results(out)
        arrays = [*checked, *results]
        check_disjoint(self.name, self.arguments, arrays, [False] * count + [True] * self.outputs)
        self._function(*map(address, arrays))
        return results[0] if len(results) == 1 else tuple(results) if results else None

    def _results(self, out: object) -> list[Array]:
        expected = self.arguments[len(self.arguments) - self.outputs :]
        if out is None:
            return [new_array(argument) for argument in expected]
        given_arrays: Sequence[object] = out if isinstance(out, tuple | list) else [out]
        if len(given_arrays) != self.outputs:
            raise TargetError(f"{self.name}: gives {self.outputs} arrays, got {len(given_arrays)} for them")
        return [
            check_output(self.name, argument, array) for argument, array in zip(expected, given_arrays, strict=True)
        ]


def make_kernel(module: ModuleOp, function: FuncOp, arguments: Sequence[Argument], policy: str) -> CKernel:
    """Write a low-level function as C. Its constants are arrays of the text, not arguments of the kernel, whose
    arguments need no alignment. policy: the floating-point policy of the build, which is only recorded. `arguments`
    describe all arguments of the function, constants included. Raises LoweringError for an op that C lacks."""
    constants, count = constant_values(function), outputs(function)
    source = emit(module, function, arguments, count)
    given_arguments = tuple(replace(a, alignment=1) for number, a in enumerate(arguments) if number not in constants)
    return CKernel(function.sym_name.data, given_arguments, count, source, policy)
