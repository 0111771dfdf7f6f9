"""`Facts`: what a build says of its kernel: its groups, its memory, and how long it took."""

from __future__ import annotations

from dataclasses import dataclass, field

RUN_ONCE = "run once"
"""The verdict of a group that runs once, when the kernel is made."""
RUN_SELDOM = "run where the guard of its other form fails"
"""The verdict of a group that a guard skips as a rule; it is compiled as written."""


@dataclass(frozen=True)
class GroupFacts:
    """A function that the kernel's main function calls, one however often it is called.

    hash: of its canonical program; empty where it has none. source: where its schedule is from, "written" for the loops
    as they were lowered. verdict: what verify-schedule said of the schedule; for what was not scheduled empty, or
    RUN_ONCE where it depends on constants alone, RUN_SELDOM where a guard skips it. law: the name of the law that
    gave its form, empty for the written one.
    seconds: what it took to compile; 0 where the cache had it.
    """

    name: str
    hash: str
    occurrences: int
    source: str
    verdict: str
    seconds: float
    law: str = ""


@dataclass(frozen=True)
class Facts:
    """Facts about a kernel; sizes in bytes.

    arena_bytes: temporaries between groups, which share memory, and scratch memory of the groups, for the kernel's
    count of threads. temporaries_bytes: all temporaries between groups, if none shared memory. constant_bytes:
    constants and what was prepared of them. build_seconds: from the program to the kernel. cached: whether its machine
    code, main's included, is from the cache of earlier builds.
    """

    groups: tuple[GroupFacts, ...] = field(default=())
    arena_bytes: int = 0
    temporaries_bytes: int = 0
    constant_bytes: int = 0
    build_seconds: float = 0.0
    cached: bool = False


UNKNOWN = Facts()
"""The facts of a kernel that was not built here, such as one that another process has compiled."""
