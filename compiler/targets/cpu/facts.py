"""`BuildFacts`: the groups, the memory and the build time of a kernel."""

from __future__ import annotations

from dataclasses import dataclass, field

RUN_ONCE = "run once"
"""The verdict of a group that runs once, when the kernel is built."""
RUN_AS_FALLBACK = "run where the guard of its other form fails"
"""The verdict of a group that runs only if the guard of its other form fails; it is compiled as written."""


@dataclass(frozen=True)
class GroupFacts:
    """A group of a kernel, with the number of its calls in main.

    hash: of its canonical program; empty if unknown. source: the origin of its schedule, "written" for the loops as
    lowered. verdict: of verify-schedule; without a schedule empty, or RUN_ONCE for a group of constants alone, or
    RUN_AS_FALLBACK. seconds: of its compilation; 0 if it was in the cache. law: the law that made its form, empty for
    the written form.
    """

    name: str
    hash: str
    occurrences: int
    source: str
    verdict: str
    seconds: float
    law: str = ""


@dataclass(frozen=True)
class BuildFacts:
    """Facts of a kernel's build; sizes in bytes.

    arena_bytes: temporaries between groups, which share memory, and scratch memory of the groups, for the kernel's
    count of threads. temporaries_bytes: all temporaries between groups without sharing. constant_bytes: constants and
    prepared arrays. build_seconds: from the program to the kernel. cached: whether all machine code, main's included,
    is from the cache of earlier builds.
    """

    groups: tuple[GroupFacts, ...] = field(default=())
    arena_bytes: int = 0
    temporaries_bytes: int = 0
    constant_bytes: int = 0
    build_seconds: float = 0.0
    cached: bool = False


UNKNOWN_FACTS = BuildFacts()
"""The facts of a kernel that was compiled elsewhere."""
