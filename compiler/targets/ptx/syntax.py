"""The parts of a PTX text: instructions with their operands, variables, functions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from compiler.support.errors import InputError


class PtxError(InputError):
    """A PTX text that the interpreter refuses; the message begins with the line number."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"PTX line {line}: {message}")


@dataclass(frozen=True)
class RegisterName:
    """An operand that is a register, such as `%f1`, or a special register, such as `%tid.x`."""

    name: str


@dataclass(frozen=True)
class PtxLiteral:
    """A number as the text spells it: `-16`, `0x3C00`, `0f3F800000`, `0d3FF0000000000000`."""

    text: str


@dataclass(frozen=True)
class VariableName:
    """An operand that is the address of a variable or parameter, or the name of a function."""

    name: str


@dataclass(frozen=True)
class MemoryOperand:
    """The memory operand `[base+offset]`, with the offset in bytes; a base that is a literal is an absolute address."""

    base: RegisterName | VariableName | PtxLiteral
    offset: int


@dataclass(frozen=True)
class RegisterList:
    """Several operands: `{%f1, %f2}`, or the two results `%p1|%p2`."""

    items: tuple[PtxOperand, ...]


PtxOperand: TypeAlias = RegisterName | PtxLiteral | VariableName | MemoryOperand | RegisterList


@dataclass(frozen=True)
class PtxInstruction:
    """An instruction: its line number, its text, the parts of its opcode, such as `("ld", "global", "f32")`, its
    operands, and the predicate register `guard` under which it runs ("" for none), negated if `negated`."""

    line: int
    text: str
    parts: tuple[str, ...]
    operands: tuple[PtxOperand, ...]
    guard: str = ""
    negated: bool = False

    @property
    def opcode(self) -> str:
        """The parts of the opcode joined by dots, such as `ld.global.f32`."""
        return ".".join(self.parts)

    def refused(self, reason: str = "") -> PtxError:
        """Return the error that the instruction is not implemented, with an optional reason; the caller raises it."""
        return PtxError(self.line, f"'{self.opcode}' is not implemented{reason and f': {reason}'}")


@dataclass(frozen=True)
class PtxVariable:
    """A variable: its state space (`global`, `const`, `shared`, `local`, `param`), size and alignment in bytes, and
    initial bytes, None without an initializer. is_external: a dynamic shared array, of size 0."""

    name: str
    space: str
    size: int
    alignment: int
    initial: bytes | None = None
    is_external: bool = False


@dataclass
class PtxFunction:
    """A kernel or a device function. parameters, results: variables of the state space `param`. body: the instructions.
    labels: the position in the body of each label. registers: the type of each register by name, such as `f32`.
    variables: those declared in the body."""

    name: str
    is_kernel: bool
    parameters: list[PtxVariable] = field(default_factory=list)
    results: list[PtxVariable] = field(default_factory=list)
    body: list[PtxInstruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    registers: dict[str, str] = field(default_factory=dict)
    variables: list[PtxVariable] = field(default_factory=list)


@dataclass
class PtxProgram:
    """A parsed text: its functions by name, and the variables declared outside of functions."""

    functions: dict[str, PtxFunction] = field(default_factory=dict)
    variables: list[PtxVariable] = field(default_factory=list)
