"""`PtxFault`: a wrong access or a divergence, with the line of the PTX, and the log that collects them."""

from __future__ import annotations

from dataclasses import dataclass, field

from compiler.targets.ptx.syntax import PtxInstruction

MAX_PTX_FAULTS = 20
"""The number of faults in a result; later ones are dropped."""


@dataclass(frozen=True)
class PtxFault:
    """A fault of a kernel at run time. kind: a phrase, such as "race of two writes". kernel: the kernel's name. line,
    text: of the PTX instruction. place: the memory and the byte offset in it, such as "A_shared+64", or "". block: the
    linear number of the block in the grid. threads: linear numbers in the block, one thread, or the two of a race."""

    kind: str
    kernel: str
    line: int
    text: str
    place: str
    block: int
    threads: tuple[int, ...]

    def __str__(self) -> str:
        at_place = f" at {self.place}" if self.place else ""
        threads = f"thread{'s' * (len(self.threads) > 1)} {' and '.join(map(str, self.threads))}"
        return f"{self.kind}{at_place}: {self.kernel}, block {self.block}, {threads}, PTX line {self.line}: {self.text}"


class DivergenceError(Exception):
    """Raised when the kernel cannot continue: threads wait for others that never arrive, or it runs too many steps. The
    fault is already in the log."""


@dataclass
class FaultLog:
    """The faults of a run in order, at most one for each kind, kernel and line of the PTX, and MAX_PTX_FAULTS in
    all."""

    faults: list[PtxFault] = field(default_factory=list)
    _reported: set[tuple[str, str, int]] = field(default_factory=set)

    def add(
        self, kind: str, kernel: str, instruction: PtxInstruction, place: str, block: int, threads: tuple[int, ...]
    ) -> None:
        """Append a fault, unless its line in the kernel has one of this kind already, or the log has MAX_PTX_FAULTS.
        The parameters are the fields of `PtxFault`; line and text are the instruction's."""
        key = (kind, kernel, instruction.line)
        if key not in self._reported and len(self.faults) < MAX_PTX_FAULTS:
            self._reported.add(key)
            self.faults.append(PtxFault(kind, kernel, instruction.line, instruction.text, place, block, threads))
