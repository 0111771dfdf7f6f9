"""What oclgrind reports of a run: each fault with its kernel and lines of the CUDA text."""

from __future__ import annotations

import re
from dataclasses import dataclass

KINDS = {
    "data race": "race",
    "Invalid read": "invalid read",
    "Invalid write": "invalid write",
    "not aligned": "misaligned access",
    "exceeds static array size": "index beyond an array",
    "ninitialized": "uninitialised value",
    "divergence": "divergent barrier",
}
"""The kind of a fault by words of oclgrind's sentence."""
_PLACE = re.compile(r"At line (\d+) \(column \d+\) of (\S+):")


@dataclass(frozen=True)
class Fault:
    """A fault: its kind, kernel, oclgrind's sentence, and lines of the text; none for what is in the prelude."""

    kind: str
    kernel: str
    sentence: str
    lines: tuple[tuple[int, str], ...]

    def __str__(self) -> str:
        where = "; ".join(f"line {number}: {line}" for number, line in self.lines)
        return f"{self.kind} in {self.kernel}: {self.sentence}" + (f" ({where})" if where else "")


def faults(report: str, text: str) -> list[Fault]:
    """The faults of a report, each kind at the same lines once."""
    collected: dict[tuple[object, ...], Fault] = {}
    for part in re.split(r"\n\s*\n(?=\S)", f"\n\n{report}"):
        if part.strip() and "suppressing further errors" not in part:
            fault = _fault(part.strip(), text.split("\n"))
            collected.setdefault((fault.kind, fault.kernel, frozenset(fault.lines)), fault)
    return list(collected.values())


def _fault(part: str, lines: list[str]) -> Fault:
    sentence = part.partition("\n")[0]
    kind = next((kind for words, kind in KINDS.items() if words in sentence), "other")
    kernel = re.search(r"Kernel: +(\w+)", part)
    places = [(int(number), lines[int(number) - 1].strip()) for number, file in _PLACE.findall(part) if file == "text"]
    return Fault(kind, kernel[1] if kernel else "", sentence, tuple(dict.fromkeys(places)))
