"""The parts of a PTX text: instructions with their operands, variables, functions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from compiler.support.errors import InputError


class PtxError(InputError):
    """A text that the interpreter does not take: the line and a sentence."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"PTX line {line}: {message}")


@dataclass(frozen=True)
class RegisterName:
    """A register of each thread, such as `%f1`, or a special one, such as `%tid.x`."""

    name: str


@dataclass(frozen=True)
class PtxLiteral:
    """A number as the text spells it: `-16`, `0x3C00`, `0f3F800000`, `0d3FF0000000000000`."""

    text: str


@dataclass(frozen=True)
class VariableName:
    """The address of a variable or parameter."""

    name: str


@dataclass(frozen=True)
class MemoryOperand:
    """`[base+offset]`: a register or variable, and bytes; a literal base is an absolute address."""

    base: RegisterName | VariableName | PtxLiteral
    offset: int


@dataclass(frozen=True)
class RegisterList:
    """Several operands: `{%f1, %f2}`, or the two results `%p1|%p2`."""

    items: tuple[PtxOperand, ...]


PtxOperand: TypeAlias = RegisterName | PtxLiteral | VariableName | MemoryOperand | RegisterList


@dataclass(frozen=True)
class PtxInstruction:
    """An instruction: its line, its text, the parts of its opcode, such as `("ld", "global", "f32")`, its operands, and
    the predicate register that guards it, negated or not."""

    line: int
    text: str
    parts: tuple[str, ...]
    operands: tuple[PtxOperand, ...]
    guard: str = ""
    negated: bool = False

    @property
    def opcode(self) -> str:
        """The whole opcode, such as `ld.global.f32`."""
        return ".".join(self.parts)

    def refused(self, reason: str = "") -> PtxError:
        """Return an error that names the instruction."""
        return PtxError(self.line, f"'{self.opcode}' is not implemented{reason and f': {reason}'}")


@dataclass(frozen=True)
class PtxVariable:
    """A variable: its state space (`global`, `const`, `shared`, `local`, `param`), size in bytes, alignment, and
    initial bytes, None if it has none; the size of a dynamic shared array is 0."""

    name: str
    space: str
    size: int
    alignment: int
    initial: bytes | None = None
    is_external: bool = False


@dataclass
class PtxFunction:
    """A kernel or a device function.

    parameters, results: variables of space `param`. body: the instructions. labels: positions in the body. registers:
    the type of each register by its name, without the dot. variables: those that the body declares.
    """

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
    """A text: its functions by name, and its variables outside of functions."""

    functions: dict[str, PtxFunction] = field(default_factory=dict)
    variables: list[PtxVariable] = field(default_factory=list)
