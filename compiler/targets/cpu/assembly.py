"""Assembly text to functions, basic blocks and loops."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from compiler.targets.cpu.instructions import Census, Instruction, census, parse_instruction

_LABEL = re.compile(r'("[^"]+"|[^\s":]+):')
UNKNOWN = "an address in a register"
"""Who is called where the text does not tell it."""
_LOCATION = re.compile(r"\.loc\s+\d+\s+(\d+)")


@dataclass(frozen=True)
class BasicBlock:
    """Instructions of which the last alone may jump; `label` is empty where only the block before leads to it."""

    label: str
    instructions: tuple[Instruction, ...]

    @property
    def last(self) -> Instruction | None:
        """The last instruction."""
        return self.instructions[-1] if self.instructions else None


@dataclass(frozen=True)
class MachineLoop:
    """A natural loop: the positions of its blocks, ascending; `header` is where it begins, `latches` jump there."""

    header: int
    blocks: tuple[int, ...]
    latches: tuple[int, ...]


@dataclass(frozen=True)
class AssemblyFunction:
    """A function of the assembly: its blocks in the order of the text."""

    name: str
    blocks: tuple[BasicBlock, ...]

    @cached_property
    def loops(self) -> tuple[MachineLoop, ...]:
        """The loops by the position of their headers; back edges to one header make one loop."""
        return _loops(self._successors)

    @cached_property
    def innermost(self) -> tuple[MachineLoop, ...]:
        """The loops that contain no other."""
        return tuple(one for one in self.loops if not any(_inside(other, one) for other in self.loops))

    def depth(self, loop: MachineLoop) -> int:
        """How many loops there are around a loop, itself included."""
        return 1 + sum(_inside(loop, other) for other in self.loops)

    def instructions(self, loop: MachineLoop) -> list[Instruction]:
        """The instructions of a loop in the order of the text."""
        return [i for position in loop.blocks for i in self.blocks[position].instructions]

    def census(self, loop: MachineLoop) -> Census:
        """The instructions of a loop, counted."""
        calls = [(p, i) for p in loop.blocks for i in self.blocks[p].instructions if "call" in i.kinds]
        return census(self.instructions(loop), self.frame, [self._callee(p, i) for p, i in calls])

    def owner(self, loop: MachineLoop) -> int:
        """The number, by its debug location, of the loop that a machine loop repeats; 0 where nothing tells it.

        It is that of the jump back; where that has none, that of most instructions.
        """
        jumps = [self.blocks[position].last for position in loop.latches]
        found = Counter(jump.loop for jump in jumps if jump is not None and jump.loop)
        found = found or Counter(i.loop for i in self.instructions(loop) if i.loop)
        return found.most_common(1)[0][0] if found else 0

    def text(self, loop: MachineLoop) -> str:
        """The assembly of a loop."""
        lines: list[str] = []
        for position in loop.blocks:
            block = self.blocks[position]
            lines += [f"{block.label}:"] if block.label else []
            lines += [f"    {instruction}" for instruction in block.instructions]
        return "\n".join(lines)

    @cached_property
    def frame(self) -> tuple[str, ...]:
        """The registers by which the stack is addressed: rbp too where it is set to the stack's address."""
        moved = any(str(i) == "movq %rsp, %rbp" for block in self.blocks for i in block.instructions)
        return ("%rsp", "%rbp") if moved else ("%rsp",)

    @cached_property
    def _successors(self) -> tuple[tuple[int, ...], ...]:
        at = {block.label: position for position, block in enumerate(self.blocks) if block.label}
        found = []
        for position, block in enumerate(self.blocks):
            last, following = block.last, [position + 1] if position + 1 < len(self.blocks) else []
            if last is not None and "branch" in last.kinds:
                taken = [at[last.target]] if last.target in at else []
                found.append((*taken, *(() if last.mnemonic.startswith("jmp") else following)))
            else:
                found.append(() if last is not None and last.mnemonic.startswith("ret") else tuple(following))
        return tuple(found)

    def _callee(self, position: int, call: Instruction) -> str:
        """Who is called in a block; a register is followed to the address that it was last given in the text."""
        if call.target is not None:
            return call.target
        register = call.operands[0].removeprefix("*") if call.operands else ""
        here = self.blocks[position].instructions
        before = [i for block in self.blocks[:position] for i in block.instructions]
        for i in reversed([*before, *here[: here.index(call)]]):
            if len(i.operands) == 2 and i.operands[1] == register:
                return i.operands[0].removeprefix("$") if _is_address(i) else UNKNOWN
        return UNKNOWN


def _is_address(instruction: Instruction) -> bool:
    return instruction.mnemonic.startswith("mov") and bool(re.match(r"\$[A-Za-z_.]", instruction.operands[0]))


def parse_assembly(text: str) -> list[AssemblyFunction]:
    """The functions of AT&T assembly as LLVM emits it; what directives say is left out, but for locations."""
    return [AssemblyFunction(name, tuple(_blocks(lines))) for name, lines in _functions(text)]


def _functions(text: str) -> Iterator[tuple[str, list[str]]]:
    names = {_plain(name) for name in re.findall(r'^\s*\.type\s+("[^"]+"|[^\s,"]+),\s*@function', text, re.MULTILINE)}
    name, lines = "", list[str]()
    for raw in text.splitlines():
        line = re.sub(r"(^|\s)#.*", "", raw).strip()
        label = _LABEL.fullmatch(line)
        if label is not None and _plain(label[1]) in names:
            name, lines = _plain(label[1]), []
        elif name and label is not None and label[1].startswith(".Lfunc_end"):
            yield name, lines
            name = ""
        elif name and line:
            lines.append(line)


def _plain(name: str) -> str:
    """A symbol without the quotes and escapes by which the text spells it."""
    return re.sub(r"\\(.)", r"\1", name[1:-1]) if name.startswith('"') else name


def _blocks(lines: Sequence[str]) -> Iterator[BasicBlock]:
    targets = {word for line in lines if re.match(r"j\w+\s", line) for word in line.split()[1:]}
    label, held, loop = "", list[Instruction](), 0
    for line in lines:
        found, location = _LABEL.fullmatch(line), _LOCATION.match(line)
        if location is not None:
            loop = int(location[1])
        elif found is not None:
            if found[1] in targets:
                if held or label:
                    yield BasicBlock(label, tuple(held))
                label, held = found[1], []
        elif not line.startswith("."):
            held.append(parse_instruction(line, loop))
            if "branch" in held[-1].kinds or held[-1].mnemonic.startswith("ret"):
                yield BasicBlock(label, tuple(held))
                label, held = "", []
    if held or label:
        yield BasicBlock(label, tuple(held))


def _inside(inner: MachineLoop, outer: MachineLoop) -> bool:
    return inner is not outer and inner.header in outer.blocks and inner.header != outer.header


def _loops(successors: Sequence[Sequence[int]]) -> tuple[MachineLoop, ...]:
    """Natural loops: a back edge leads to a block that dominates where it comes from."""
    before: list[list[int]] = [[] for _ in successors]
    for position, following in enumerate(successors):
        for other in following:
            before[other].append(position)
    dominators, reached = _dominators(before), _reached(successors)
    latches: dict[int, list[int]] = {}
    for position in reached:
        for other in successors[position]:
            if dominators[position] >> other & 1:
                latches.setdefault(other, []).append(position)
    return tuple(MachineLoop(h, _body(h, latches[h], before), tuple(latches[h])) for h in sorted(latches))


def _reached(successors: Sequence[Sequence[int]]) -> list[int]:
    """The blocks to which a way leads from the first, ascending."""
    found, waiting = set[int](), [0] if successors else []
    while waiting:
        block = waiting.pop()
        if block not in found:
            found.add(block)
            waiting += successors[block]
    return sorted(found)


def _dominators(before: Sequence[Sequence[int]]) -> list[int]:
    """For each block the set, as bits, of blocks that every way to it passes; all of them where there is no way."""
    every = (1 << len(before)) - 1
    found = [1, *[every] * (len(before) - 1)] if before else []
    changed = True
    while changed:
        changed = False
        for block in range(1, len(before)):
            common = every
            for other in before[block]:
                common &= found[other]
            common |= 1 << block
            changed |= common != found[block] and bool(before[block])
            found[block] = common if before[block] else found[block]
    return found


def _body(header: int, latches: Sequence[int], before: Sequence[Sequence[int]]) -> tuple[int, ...]:
    body, waiting = {header}, list(latches)
    while waiting:
        block = waiting.pop()
        if block not in body:
            body.add(block)
            waiting += before[block]
    return tuple(sorted(body))
