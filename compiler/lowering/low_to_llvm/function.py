"""`FunctionEmitter`: the text, names and scopes of one function under emission; handlers of ops extend it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from compiler.affine.linear import Range
from compiler.analysis.index_forms import Forms
from compiler.dialects.upstream.arith import kind_of
from compiler.lowering.low_to_llvm.types import llvm_type
from compiler.support.errors import LoweringError

Emit = Callable[["FunctionEmitter", Any], None]  # each takes ops of one class of its own
Handlers = Mapping[type[Operation], Emit]
"""The emission of ops by class; a handler takes the emitter and an op of its class."""

PURE = "nounwind willreturn memory(none)"
"""The attributes of libm functions without side effects (errno is not read)."""


@dataclass(frozen=True)
class BufferLayout:
    """The layout of a buffer. length: its number of elements; size: the bytes of an element; strides: of its
    dimensions, in elements."""

    length: int
    size: int
    strides: Sequence[int]


@dataclass(frozen=True)
class Lane:
    """An element of a vector: the vector's register, LLVM's type of an element, the count of elements, and the
    element's number from 0."""

    vector: str
    element: str
    count: int
    number: int

    @property
    def type(self) -> str:
        """LLVM's type of the vector."""
        return f"<{self.count} x {self.element}>"

    def splat(self, count: int) -> str:
        """Return the instruction that broadcasts the element to `count` lanes."""
        positions = ", ".join([f"i32 {self.number}"] * count)
        return f"shufflevector {self.type} {self.vector}, {self.type} poison, <{count} x i32> <{positions}>"


class FunctionEmitter:
    """The emitter of one function. `names` maps SSA values to registers or, for constants, literals.

    lines: the instructions so far; allocas: those that precede them. alloca_bytes: the bytes of stack buffers.
    alignments: known alignments of buffers, in bytes. layouts: of the buffers so far. externals: declarations, and
    functions that a module has once. outlined: the texts of functions that run parts of this one. label: the current
    basic block. forms: the linear forms of index values. lanes: the scalars that are elements of vectors, without
    registers of their own; scanned: the loads that were looked at for them.
    """

    def __init__(self, function: FuncOp, handlers: Handlers) -> None:
        self.function = function
        self.handlers = handlers
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self.alloca_bytes = 0
        self.names: dict[SSAValue, str] = {}
        self.alignments: dict[SSAValue, int] = {}
        self.layouts: dict[SSAValue, BufferLayout] = {}
        self.externals: set[str] = set()
        self.outlined: list[str] = []
        self.label = "entry"
        self.forms = Forms()
        self.ranges: dict[int, Range | None] = {}
        self.divisors: dict[int, int] = {}
        """Ranges and divisors of loop indices, by their numbers in forms."""
        self.lanes: dict[SSAValue, Lane] = {}
        self.scanned: set[Operation] = set()
        self.takes_threads: dict[str, bool] = {}
        """Whether a callee takes the thread count, by name."""
        self._scopes: list[dict[object, str]] = [{}]
        self._count = 0

    def fresh(self, stem: str = "v") -> str:
        """Return a new local name that begins with `stem`, without `%`."""
        self._count += 1
        return f"{stem}{self._count}"

    def line(self, text: str) -> None:
        """Append an instruction without a result."""
        self.lines.append(f"  {text}")

    def temporary(self, instruction: str) -> str:
        """Append an instruction; return the register of its result, with `%`."""
        name = f"%{self.fresh()}"
        self.line(f"{name} = {instruction}")
        return name

    def set(self, value: SSAValue, instruction: str) -> None:
        """Append an instruction whose result is the SSA value."""
        self.names[value] = self.temporary(instruction)

    def use(self, value: SSAValue) -> str:
        """Return a value, which has been emitted, as an operand without its type."""
        return self.names[value]

    def typed(self, value: SSAValue) -> str:
        """Return a value, which has been emitted, as an operand with its type."""
        return f"{llvm_type(value.type)} {self.names[value]}"

    def once(self, key: object, instruction: str) -> str:
        """Return the result of an instruction with a key; append it unless this scope or an outer one has the key."""
        for scope in reversed(self._scopes):
            if key in scope:
                return scope[key]
        name = self._scopes[-1][key] = self.temporary(instruction)
        return name

    def declare(self, type: str, name: str, parameters: Sequence[str], attributes: str = "") -> None:
        """Declare an external function `name`, once in a module; `type` and `parameters` are LLVM types, `attributes`
        its attributes."""
        self.externals.add(f"declare {type} @{name}({', '.join(parameters)}) {attributes}".rstrip())

    def call(self, type: Attribute, name: str, arguments: Sequence[SSAValue], flags: str = "") -> str:
        """Declare the function `name` with a result of `type`; return the instruction that calls it on SSA values,
        which is not appended. `flags` are fast-math flags, with a space after."""
        self.declare(llvm_type(type), name, [llvm_type(a.type) for a in arguments])
        return f"call {flags}{llvm_type(type)} @{name}({', '.join(self.typed(a) for a in arguments)})"

    def start(self, label: str) -> None:
        """Start a basic block."""
        self.lines.append(f"{label}:")
        self.label = label

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Open a scope; the values of `once` in it are dropped at its end, since they do not dominate later code."""
        self._scopes.append({})
        yield
        self._scopes.pop()

    def block(self, block: Block) -> None:
        """Emit the ops of a block in their order. Raises LoweringError, placed at the op, for one without a handler or
        that its handler refuses."""
        self.ops(block.ops)

    def ops(self, ops: Iterable[Operation]) -> None:
        """Emit ops in their order. Raises LoweringError, placed at the op, for one without a handler or that its
        handler refuses."""
        for op in ops:
            handler = self.handlers.get(kind_of(op))
            if handler is None:
                raise LoweringError(f"'{op.name}' has no form in LLVM IR").at(op)
            try:
                handler(self, op)
            except LoweringError as error:
                if error.op is None:
                    error.at(op)
                raise
