"""`Subject`: what candidates are candidates of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from xdsl.dialects.builtin import ModuleOp, f32, f64

from compiler.database.outcome import WARM
from compiler.dialects.functions import find_function
from compiler.program.read import read
from compiler.program.tree import Buffer, Program, blocks_in
from compiler.types.elements import element_bytes
from compiler.types.machines import Gpu, Machine

FMAS = 2
"""Vector FMA that a core issues in a cycle."""
FASTEST = 8e9
"""Cycles in a second that no processor has."""
BYTES = 6
"""Bytes that a core gets from memory in a cycle: 20 GB/s at 3.3 GHz."""


@dataclass(frozen=True)
class Subject:
    """A program to be scheduled: its text at the te or loop level, and how it is compiled, run and checked.

    name: which of several functions.
    policy: the liberties of floating point: strict, contract or fast.
    threads: how many threads parallel loops run on; the runner gets as many cores.
    seed: of the random inputs.
    target, arch: what it is compiled for: the CPU at hand, or a GPU of some architecture.
    timing: where calls find their operands: see `compiler.database.outcome`.
    """

    text: str
    name: str | None = None
    policy: str = "contract"
    threads: int = 1
    seed: int = 0
    target: str = "cpu"
    arch: str = ""
    timing: str = WARM

    @cached_property
    def module(self) -> ModuleOp:
        """The unscheduled loops. Raises ParseError, VerifyException or InputError for text that is no such program."""
        from compiler.pipeline import lower, parse  # a runner, which gets machine code, does without them

        return lower(parse(self.text, "the program"))

    @cached_property
    def program(self) -> Program:
        """The function as a tree."""
        return read(find_function(self.module, self.name))

    def __getstate__(self) -> dict[str, object]:
        """The stated fields, without derived ones."""
        return {field: getattr(self, field) for field in self.__dataclass_fields__}


def ceiling(program: Program, machine: Machine) -> str:
    """`flops` or `bytes`: what bounds a perfect implementation, by the machine's balance; the same for each schedule.

    Bytes are the arguments', each counted once. Integer operations count if there are no floating-point ones.
    """
    moved = sum(map(_bytes, program.arguments))
    balance = 2 * FMAS * (machine.vector_bits // 32) / BYTES
    return "flops" if _operations(program) > balance * moved else "bytes"


def work(program: Program, machine: Machine) -> float | None:
    """The cost of a perfect implementation: the bytes or operations that its ceiling counts. None if its operations
    differ from the ceiling's probe, which is float32 FMA."""
    if ceiling(program, machine) == "bytes":
        return float(sum(map(_bytes, program.arguments)))
    if any(buffer.element != f32 for buffer in program.arguments):
        return None
    from compiler.analysis.cost import total_flops

    return float(total_flops(program, program.body))


def cycles(program: Program, machine: Machine | Gpu) -> float:
    """About how many cycles of one core a perfect implementation takes: what moves its bytes or does its operations,
    whichever takes longer."""
    moved = sum(map(_bytes, program.arguments))
    return max(moved / BYTES, _operations(program) / (2 * FMAS * machine.lanes))


def least_seconds(program: Program, machine: Machine, threads: int) -> float:
    """Less than what any call takes on a machine: four times the multiply-adds that processors of today issue in a
    cycle, 64 times for other elements than f32 and f64, which have units of their own; FASTEST cycles a second."""
    is_wide = all(buffer.element in (f32, f64) for buffer in program.arguments)
    each = 2 * FMAS * (machine.vector_bits // 32) * (4 if is_wide else 64)
    return _operations(program) / each / (FASTEST * threads)


def share(program: Program, machine: Machine, cost: float) -> float | None:
    """The share of its ceiling that a candidate of some cost reaches: 1 is a perfect implementation. None where it
    has no ceiling."""
    operations = work(program, machine)
    return None if operations is None else operations / cost


def _bytes(buffer: Buffer) -> int:
    return prod(buffer.shape) * element_bytes(buffer.element)


def _operations(program: Program) -> int:
    from compiler.analysis.cost import instances, total_flops

    reductions = [block for block in blocks_in(*program.body) if block.combiners]
    return total_flops(program, program.body) or sum(2 * instances(program, block) for block in reductions)
