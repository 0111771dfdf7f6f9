"""Parse assembly text into functions, basic blocks and innermost loops, from LLVM's comments."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from compiler.targets.cpu.aarch64_instructions import parse_aarch64
from compiler.targets.cpu.instructions import Instruction, InstructionCounts, count_instructions, parse_instruction

_LABEL = re.compile(r'("[^"]+"|[^\s":]+):')
_BLOCK = re.compile(r"(?:\.L(BB\d+_\d+):|(?:#|//) %bb\.\d+:)")
_INNER = re.compile(r"This Inner Loop Header: Depth=(\d+)")
_MEMBER = re.compile(r"in Loop: Header=(BB\d+_\d+) Depth=\d+")
_LOCATION = re.compile(r"\.loc\s+\d+\s+(\d+)")
UNKNOWN = "an address in a register"
"""The callee of a call through a register that no instruction sets to an address."""


@dataclass(frozen=True)
class BasicBlock:
    """A basic block; its name is LLVM's label, empty without one. header: the name of the header of its innermost loop,
    its own name for a header, empty outside of loops. inner: for the header of an innermost loop its depth, else 0."""

    name: str
    header: str
    inner: int
    instructions: tuple[Instruction, ...]


@dataclass(frozen=True)
class MachineLoop:
    """An innermost loop: the name of its header, its depth, and its blocks in the order of the text."""

    header: str
    depth: int
    blocks: tuple[BasicBlock, ...]

    @property
    def label(self) -> str:
        """The assembly label of its header."""
        return f".L{self.header}"

    @property
    def instructions(self) -> list[Instruction]:
        """Its instructions in the order of the text, without unconditional jumps out of it."""
        names = {f".L{block.name}" for block in self.blocks}
        instructions = (i for block in self.blocks for i in block.instructions)
        return [i for i in instructions if not i.is_jump or i.target in names or i.target is None]

    @property
    def owner(self) -> int:
        """The number, by debug locations, of the source loop of a machine loop; 0 without locations. It is the location
        of most back edges, or if these have none that of most instructions."""
        counts = Counter(i.loop for i in self.instructions if i.loop and "branch" in i.kinds and i.target == self.label)
        counts = counts or Counter(i.loop for i in self.instructions if i.loop)
        return counts.most_common(1)[0][0] if counts else 0

    @property
    def text(self) -> str:
        """Its assembly."""
        lines: list[str] = []
        for block in self.blocks:
            lines += [f".L{block.name}:"] if block.name else []
            lines += [f"    {instruction}" for instruction in block.instructions]
        return "\n".join(lines)


@dataclass(frozen=True)
class AssemblyFunction:
    """A function of the assembly: its blocks in the order of the text."""

    name: str
    blocks: tuple[BasicBlock, ...]

    @cached_property
    def innermost(self) -> tuple[MachineLoop, ...]:
        """The innermost loops, in the order of their headers."""
        return tuple(
            MachineLoop(first.name, first.inner, tuple(b for b in self.blocks if b.header == first.name))
            for first in self.blocks
            if first.inner
        )

    @property
    def outside(self) -> list[Instruction]:
        """The instructions outside of innermost loops, those of outer loops included, in the order of the text."""
        inner = {loop.header for loop in self.innermost}
        return [i for block in self.blocks if block.header not in inner for i in block.instructions]

    def count_instructions(self, loop: MachineLoop) -> InstructionCounts:
        """Count the instructions of an iteration of an innermost loop of this function, and resolve its callees,
        UNKNOWN for an address that is not known."""
        calls = [self._callee(i) for i in loop.instructions if "call" in i.kinds]
        return count_instructions(loop.instructions, self._frame, calls)

    @cached_property
    def _instructions(self) -> list[Instruction]:
        return [i for block in self.blocks for i in block.instructions]

    @cached_property
    def _frame(self) -> tuple[str, ...]:
        """The registers that address the stack: rbp or x29 too if it is a frame pointer."""
        pointers = {"movq %rsp, %rbp": "%rbp", "mov x29, sp": "x29", "add x29, sp": "x29"}
        starts = (",".join(str(i).split(",")[:2]) for i in self._instructions)
        return ("%rsp", "sp", *{pointers[start] for start in starts if start in pointers})

    def _callee(self, call: Instruction) -> str:
        """Return the callee of a call; a register is resolved to the address that the last instruction before it in the
        text with this destination moves into it, UNKNOWN if that is no address or there is none."""
        if call.target is not None:
            return call.target
        register = call.operands[0].removeprefix("*") if call.operands else ""
        position = next(n for n, i in enumerate(self._instructions) if i is call)
        for i in reversed(self._instructions[:position]):
            if len(i.operands) == 2 and i.operands[1] == register:
                return i.operands[0].removeprefix("$") if _is_address(i) else UNKNOWN
        return UNKNOWN


def _is_address(instruction: Instruction) -> bool:
    return instruction.mnemonic.startswith("mov") and bool(re.match(r"\$[A-Za-z_.]", instruction.operands[0]))


@dataclass(frozen=True)
class AssemblySyntax:
    """The syntax of an architecture: the mark that begins a comment, and the parser of an instruction, from its text
    and the number of its source loop."""

    comment: str
    parse: Callable[[str, int], Instruction]

    def bare(self, line: str) -> str:
        """Return a line without its comment."""
        return re.sub(rf"\s{self.comment}.*", "", line)


SYNTAXES = {"x86_64": AssemblySyntax("#", parse_instruction), "aarch64": AssemblySyntax("//", parse_aarch64)}
"""Map each architecture whose assembly can be parsed to its syntax: AT&T's for x86."""


def parse_assembly(text: str, architecture: str = "x86_64", vector_scale: int = 0) -> list[AssemblyFunction]:
    """Parse assembly with LLVM's comments into functions; directives other than locations are dropped, and so are
    labels that are no functions. architecture: a key of SYNTAXES. vector_scale: the bits of SVE's registers divided by
    128; 0 without SVE."""
    syntax = SYNTAXES[architecture]
    if vector_scale:
        syntax = replace(syntax, parse=partial(parse_aarch64, scale=vector_scale))
    return [AssemblyFunction(name, tuple(_blocks(lines, syntax))) for name, lines in _functions(text, syntax)]


def _functions(text: str, syntax: AssemblySyntax) -> Iterator[tuple[str, list[str]]]:
    names = {
        _unquoted(name) for name in re.findall(r'^\s*\.type\s+("[^"]+"|[^\s,"]+),\s*@function', text, re.MULTILINE)
    }
    name, lines = "", list[str]()
    for raw in text.splitlines():
        label = _LABEL.fullmatch(syntax.bare(raw).strip())
        if label is not None and _unquoted(label[1]) in names:
            name, lines = _unquoted(label[1]), []
        elif name and label is not None and label[1].startswith(".Lfunc_end"):
            yield name, lines
            name = ""
        elif name:
            lines.append(raw.strip())


def _unquoted(name: str) -> str:
    return re.sub(r"\\(.)", r"\1", name[1:-1]) if name.startswith('"') else name


def _blocks(lines: Sequence[str], syntax: AssemblySyntax) -> Iterator[BasicBlock]:
    loop = 0
    starts = [n for n, line in enumerate(lines) if _BLOCK.match(line)]
    for start, end in zip([0, *starts], [*starts, len(lines)], strict=True):
        instructions = []
        for line in lines[start:end]:
            location = _LOCATION.match(line)
            if location is not None:
                loop = int(location[1])
            elif line and line[0] not in ".#/" and _LABEL.fullmatch(line) is None:
                instructions.append(syntax.parse(syntax.bare(line), loop))
        head = "\n".join(line for line in lines[start:end] if syntax.comment in line)
        named, inner, member = _BLOCK.match(lines[start]) if lines else None, _INNER.search(head), _MEMBER.search(head)
        name = (named[1] if named else None) or ""
        header = name if inner or "This Loop Header" in head else member[1] if member else ""
        if instructions or name:
            yield BasicBlock(name, header, int(inner[1]) if inner else 0, tuple(instructions))
