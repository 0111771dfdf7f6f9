"""The innermost loops of the machine code: their loops of the program, their instructions, their speed limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from compiler.explain.builds import Builds
from compiler.explain.nests import LoopNest, every, paths
from compiler.lowering.low_to_llvm.signature import symbol
from compiler.support.errors import TargetError
from compiler.targets.cpu.assembly import AssemblyFunction, MachineLoop, parse_assembly
from compiler.targets.cpu.instructions import InstructionCounts
from compiler.targets.cpu.throughput import Estimate, estimate
from compiler.types.machines import Machine, host


@dataclass(frozen=True)
class Code:
    """An innermost loop of the machine code.

    number: its place among them, from 1. label: of its first block. depth: how many machine loops there are around
    it, itself included. path: the loops of the program around what it repeats, outermost first, that one last.
    unrolled: the loops inside that one whose bodies it contains. text: its assembly.
    """

    number: int
    function: str
    label: str
    depth: int
    path: tuple[LoopNest, ...]
    unrolled: tuple[LoopNest, ...]
    census: InstructionCounts
    estimate: Estimate
    percent: float | None
    text: str


@dataclass(frozen=True)
class Outside:
    """Instructions outside the innermost machine loops that are of one loop of the program, or of none."""

    nest: LoopNest | None
    instructions: int


@dataclass(frozen=True)
class MachineCode:
    """The innermost machine loops of a function in the order of the assembly, and the instructions outside, most
    first."""

    loops: tuple[Code, ...]
    outside: tuple[Outside, ...]


def machine_code(b: Builds, loop_nests: Sequence[LoopNest]) -> MachineCode:
    """Take the machine code of the explained function apart.

    Raises TargetError for a machine whose assembly is not x86.
    """
    machine = host()
    assembly = b.assembly
    if not is_x86(assembly):
        raise TargetError(f"the assembly of {machine.cpu} is not that of x86, which is all that can be explained")
    around, main_symbol = paths(loop_nests), symbol(b.kernel.name)
    made: list[Code] = []
    outside: Counter[int] = Counter()
    for function in parse_assembly(assembly):
        if function.name != main_symbol and not function.name.startswith(f"{main_symbol}."):
            continue
        for loop in function.innermost:
            path = around.get(loop.owner, ())
            made.append(_code(len(made) + 1, function, loop, path, machine))
        outside.update(i.loop for i in function.outside)
    elsewhere = [Outside(around[n][-1] if n in around else None, count) for n, count in outside.most_common()]
    return MachineCode(tuple(made), tuple(elsewhere))


def is_x86(assembly: str) -> bool:
    """Whether registers are written as x86 has them."""
    return any(name in assembly for name in ("%rsp", "%rdi", "%rsi", "%rax", "%xmm", "retq"))


def alike(codes: Sequence[Code]) -> list[list[Code]]:
    """Neighbours that repeat the same loop by the same arithmetic and stores, together: copies of one."""

    def key(code: Code) -> object:
        c = code.census
        owner = code.path[-1].number if code.path else 0
        return owner, c.width, c.flops, c.fma, c.stores - c.stack_stores, c.shuffles, c.gathers, c.calls

    return [list(group) for _, group in groupby(codes, key)]


def _code(
    number: int, function: AssemblyFunction, loop: MachineLoop, path: tuple[LoopNest, ...], machine: Machine
) -> Code:
    counted, estimated = function.count_instructions(loop), estimate(loop.instructions)
    inside = {n.number: n for n in every(path[-1].inner)} if path else {}
    present = {i.loop for i in loop.instructions}
    return Code(
        number=number,
        function=function.name,
        label=loop.label,
        depth=loop.depth,
        path=path,
        unrolled=tuple(nest for number, nest in inside.items() if number in present),
        census=counted,
        estimate=estimated,
        percent=estimated.percent_of_peak(counted.flops, counted.float_bits, machine),
        text=loop.text,
    )
