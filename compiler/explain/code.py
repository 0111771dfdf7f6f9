"""The innermost loops of the machine code: their source loops, instruction counts and cycle estimates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from compiler.explain.builds import Builds
from compiler.explain.nests import LoopNest, paths, preorder
from compiler.lowering.low_to_llvm.signature import symbol
from compiler.support.errors import TargetError
from compiler.targets.cpu.assembly import SYNTAXES, AssemblyFunction, MachineLoop, parse_assembly
from compiler.targets.cpu.instructions import InstructionCounts
from compiler.targets.cpu.throughput import Estimate, estimate
from compiler.types.machines import Machine, host


@dataclass(frozen=True)
class LoopCode:
    """An innermost loop of the machine code.

    number: its position among the innermost loops, from 1. function: its symbol. label: that of its first basic block.
    depth: the number of machine loops around it, plus 1. path: the source loops around it, outermost first, its own
    last; empty if unknown. unrolled: the loops inside its source loop whose bodies it contains. census, estimate: of
    an iteration. percent: of peak operations, by the estimate; None without operations. text: its assembly.
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
    """The number of instructions of a source loop, or of none (None), that are outside the innermost machine loops."""

    nest: LoopNest | None
    instructions: int


@dataclass(frozen=True)
class MachineCode:
    """The innermost machine loops in the order of the assembly, and the instructions outside, largest count first."""

    loops: tuple[LoopCode, ...]
    outside: tuple[Outside, ...]


def machine_code(b: Builds, loop_nests: Sequence[LoopNest]) -> MachineCode:
    """Analyse the machine code of a kernel's function and of those split from it; `loop_nests` are its source loops.
    Raises TargetError for the assembly of an architecture that has no parser."""
    machine = host()
    if machine.architecture not in SYNTAXES:
        raise TargetError(f"the assembly of {machine.architecture} cannot be explained: only {' and '.join(SYNTAXES)}")
    paths_by_number, main_symbol = paths(loop_nests), symbol(b.kernel.name)
    codes: list[LoopCode] = []
    outside: Counter[int] = Counter()
    for function in parse_assembly(b.assembly, machine.architecture, machine.vector_scale):
        if function.name != main_symbol and not function.name.startswith(f"{main_symbol}."):
            continue
        for loop in function.innermost:
            path = paths_by_number.get(loop.owner, ())
            codes.append(_code(len(codes) + 1, function, loop, path, machine))
        outside.update(i.loop for i in function.outside)
    outside_counts = [
        Outside(paths_by_number[n][-1] if n in paths_by_number else None, count) for n, count in outside.most_common()
    ]
    return MachineCode(tuple(codes), tuple(outside_counts))


def group_copies(codes: Sequence[LoopCode]) -> list[list[LoopCode]]:
    """Group adjacent machine loops that are copies of one: with the same source loop, vector width and called
    functions, and the same counts of arithmetic, of stores outside the stack, of shuffles and gathers. The order is
    unchanged."""

    def key(code: LoopCode) -> object:
        c = code.census
        owner = code.path[-1].number if code.path else 0
        return owner, c.width, c.flops, c.fma, c.stores - c.stack_stores, c.shuffles, c.gathers, c.calls

    return [list(group) for _, group in groupby(codes, key)]


def _code(
    number: int, function: AssemblyFunction, loop: MachineLoop, path: tuple[LoopNest, ...], machine: Machine
) -> LoopCode:
    counted, estimated = function.count_instructions(loop), estimate(loop.instructions, machine.architecture)
    inside = {n.number: n for n in preorder(path[-1].inner)} if path else {}
    present = {i.loop for i in loop.instructions}
    return LoopCode(
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
