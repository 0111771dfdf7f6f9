"""`GroupFacts`: a group of a kernel, and the origin of its schedule."""

from __future__ import annotations

from dataclasses import dataclass

RUN_ONCE = "run once"
"""The verdict of a group that runs once, when the kernel is built."""
RUN_AS_FALLBACK = "run where the guard of its other form fails"
"""The verdict of a group that runs only if the guard of its other form fails; it is compiled as written."""


@dataclass(frozen=True)
class GroupFacts:
    """A group of a kernel. occurrences: the number of its calls in main.

    hash: of its canonical program; empty if unknown. source: the origin of its schedule, such as a record, or "written"
    for the loops as lowered. verdict: of verify-schedule; without a schedule empty, or RUN_ONCE for a group of
    constants alone, or RUN_AS_FALLBACK. seconds: of its compilation; 0 if it was in the cache. law: the law that made
    its form, empty for the written form.
    """

    name: str
    hash: str
    occurrences: int
    source: str
    verdict: str
    seconds: float
    law: str = ""
