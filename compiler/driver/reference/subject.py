"""`Subject`: the program that candidates schedule."""

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
"""The vector FMAs that a core issues in a cycle."""
FASTEST = 8e9
"""An upper limit of the clock rate of any processor, in Hz."""
BYTES = 6
"""The bytes that a core reads from memory in a cycle: 20 GB/s at 3.3 GHz."""


@dataclass(frozen=True)
class Subject:
    """A program to schedule, and the settings of compiling, running and checking it.

    text: at the te or loop level. name: of the function; None if it is the only one.
    policy: of floating point: strict, contract or fast.
    threads: of parallel loops; the runner gets as many cores.
    seed: of the random inputs.
    target, arch: "cpu" for the host, or a GPU target and its architecture.
    timing: the place of the operands of timed calls: `warm` in the caches, or `network` in memory.
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
        from compiler.pipeline.loops import lower  # not needed by a runner, which gets machine code
        from compiler.pipeline.source import parse

        return lower(parse(self.text, "the program"))

    @cached_property
    def program(self) -> Program:
        """The function as a tree."""
        return read(find_function(self.module, self.name))

    def __getstate__(self) -> dict[str, object]:
        """The fields to pickle, without the cached `module` and `program`."""
        return {field: getattr(self, field) for field in self.__dataclass_fields__}


def ceiling(program: Program, machine: Machine) -> str:
    """The bound of a perfect implementation on a machine, for any schedule: `flops` or `bytes`.

    Compares operations per byte with the machine's balance. Bytes are the arguments', each counted once; integer
    operations count if there are no floating-point ones. With 8 lanes the balance is 2 * 2 * 8 / 6 = 5.3 operations a
    byte: an f32 matmul of n = 1024 has 2 n^3 / (3 * 4 n^2) = 171, so flops.
    """
    moved = sum(map(_bytes, program.arguments))
    balance = 2 * FMAS * (machine.vector_bits // 32) / BYTES
    return "flops" if _operations(program) > balance * moved else "bytes"


def work(program: Program, machine: Machine) -> float | None:
    """The work of a perfect implementation: the bytes of its arguments if its ceiling is bytes, else its floating-point
    operations. These are None if an argument is not f32, since the ceiling's probe is f32 FMA."""
    if ceiling(program, machine) == "bytes":
        return float(sum(map(_bytes, program.arguments)))
    if any(buffer.element != f32 for buffer in program.arguments):
        return None
    from compiler.analysis.cost import total_flops

    return float(total_flops(program, program.body))


def cycles(program: Program, machine: Machine | Gpu) -> float:
    """The approximate cycles of one core of a perfect implementation: to move its bytes or to do its operations,
    whichever takes longer."""
    moved = sum(map(_bytes, program.arguments))
    return max(moved / BYTES, _operations(program) / (2 * FMAS * machine.lanes))


def least_seconds(program: Program, machine: Machine, threads: int) -> float:
    """A lower bound of the seconds of a call on any machine with these vectors.

    It assumes FASTEST cycles a second and 4 times the FMAs that current processors issue in a cycle; 64 times for other
    elements than f32 and f64, which have separate execution units.
    """
    is_wide = all(buffer.element in (f32, f64) for buffer in program.arguments)
    per_cycle = 2 * FMAS * (machine.vector_bits // 32) * (4 if is_wide else 64)
    return _operations(program) / per_cycle / (FASTEST * threads)


def share(program: Program, machine: Machine, cost: float) -> float | None:
    """The share of its ceiling that a candidate of a cost above 0 reaches; 1 is a perfect implementation. None if
    `work` is."""
    operations = work(program, machine)
    return None if operations is None else operations / cost


def _bytes(buffer: Buffer) -> int:
    return prod(buffer.shape) * element_bytes(buffer.element)


def _operations(program: Program) -> int:
    from compiler.analysis.cost import instances, total_flops

    reductions = [block for block in blocks_in(*program.body) if block.combiners]
    return total_flops(program, program.body) or sum(2 * instances(program, block) for block in reductions)
