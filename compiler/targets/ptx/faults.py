"""`PtxFault`: a wrong access or a divergence, with the line of the PTX, and the log that collects them."""

from __future__ import annotations

from dataclasses import dataclass, field

from compiler.targets.ptx.syntax import PtxInstruction

MAX_PTX_FAULTS = 20
"""The number of faults in a result; later ones are dropped."""


@dataclass(frozen=True)
class PtxFault:
    """A fault of a kernel.

    kind: in words. kernel: its name. line, text: of the PTX instruction. place: the memory and the byte in it, if any.
    block: the linear number of the block in the grid. threads: linear numbers in the block; of a race two.
    """

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
    """Threads wait for others that do not come: the kernel cannot go on. The fault is in the log."""


@dataclass
class FaultLog:
    """The faults so far, one of each kind for each instruction."""

    faults: list[PtxFault] = field(default_factory=list)
    _reported: set[tuple[str, str, int]] = field(default_factory=set)

    def add(self, kind: str, kernel: str, at: PtxInstruction, place: str, block: int, threads: tuple[int, ...]) -> None:
        """Add a fault, unless the instruction has one of this kind, or there are MAX_PTX_FAULTS."""
        key = (kind, kernel, at.line)
        if key not in self._reported and len(self.faults) < MAX_PTX_FAULTS:
            self._reported.add(key)
            self.faults.append(PtxFault(kind, kernel, at.line, at.text, place, block, threads))
