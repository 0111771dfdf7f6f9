"""The number of processors for this process: its affinity mask, and the CPU quotas of its control groups."""

from __future__ import annotations

import os
from collections.abc import Iterator
from math import inf
from pathlib import Path

ROOT = Path("/")


def processors() -> int:
    """The number of processors that this process can keep busy, at least 1; a quota is rounded down."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(max(1, min(allowed, quota())))


def quota(root: Path = ROOT) -> float:
    """The CPU quota of this process's control groups, in processors; infinite without a limit.

    Version 2 has it in `cpu.max`, version 1 in `cpu.cfs_quota_us`; the limits of enclosing groups apply, too.
    """
    return min(_limits(root), default=inf)


def _limits(root: Path) -> Iterator[float]:
    groups = [line.split(":", 2) for line in _lines(root / "proc/self/cgroup") if line.count(":") >= 2]
    for mount in _lines(root / "proc/self/mounts"):
        _, folder, kind, options, *_ = [*mount.split(), "", "", "", ""]
        for _, controllers, group in groups:
            if kind == "cgroup2" and not controllers:
                yield from map(_unified, _enclosing(root / folder.lstrip("/"), group))
            elif kind == "cgroup" and "cpu" in options.split(",") and "cpu" in controllers.split(","):
                yield from map(_first_version, _enclosing(root / folder.lstrip("/"), group))


def _enclosing(mount: Path, group: str) -> Iterator[Path]:
    """Yield the folders of a control group and its enclosing groups, up to the mount, which in a container may be the
    group itself."""
    folder = mount / group.lstrip("/")
    yield from (parent for parent in (folder, *folder.parents) if parent.is_relative_to(mount))


def _unified(group: Path) -> float:
    """The limit in processors in a group's `cpu.max`, such as 1.5 for `150000 100000`; infinite for `max 100000`."""
    return _ratio(*[*" ".join(_lines(group / "cpu.max")).split(), "", ""][:2])


def _first_version(group: Path) -> float:
    return _ratio(*(" ".join(_lines(group / f"cpu.cfs_{name}_us")) for name in ("quota", "period")))


def _ratio(quota: str, period: str) -> float:
    """The limit in processors of a quota and a period, both as text; infinite for -1, `max` and empty text."""
    return int(quota) / int(period) if quota.isdecimal() and period.isdecimal() and int(period) else inf


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
