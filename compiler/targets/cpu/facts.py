"""`BuildFacts`: the groups, the memory and the build time of a kernel."""

from __future__ import annotations

from dataclasses import dataclass, field

from compiler.targets.groups import GroupFacts


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
