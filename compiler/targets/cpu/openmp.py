"""The OpenMP runtime of parallel loops: found, loaded, told not to spin for long; and how many threads it gets.

A process should have one libgomp, or idle threads of one spin beside working threads of the other. So the one that is
loaded already is taken (torch and scikit-learn carry copies of their own), else scikit-learn's, else the system's.

A child of fork() has none of its parent's threads, and libgomp waits for them for ever. So in a child that was forked
while a libgomp was loaded parallel loops run serially, with a warning. Children that are spawned are not affected.
"""

from __future__ import annotations

import ctypes
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from operator import index
from pathlib import Path

import llvmlite.binding as llvm

from compiler.support.errors import TargetError
from compiler.types.processors import processors

SYMBOLS = ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads")
"""What native code calls of the runtime."""

PROCESSORS = ("sched_getcpu", "sched_getaffinity", "sched_setaffinity", "sched_yield")
"""What native code calls of the C library to have a team's threads on processors of their own; Linux has them."""

SPIN_COUNT = "5000"
"""How often an idle thread looks for work before it sleeps, where the user has not said so.

That is 0.1 ms, as long as waking it takes (45 to 150 us on the virtual machine where it was measured; a region whose
threads are awake costs 1 to 2 us, and none at all with one thread). libgomp's own default is 6 ms, in which the thread
is in the way of those of numpy and torch.
"""

_STATED = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
_forked = False
_nothing = ctypes.CFUNCTYPE(None)(lambda: None)
_unknown = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: -1)


def cores() -> int:
    """The processors that this process may use."""
    return processors()


ALWAYS_ACCEPTED = 64
"""A count that is accepted on any machine, without a look at the system's files."""


def most_threads() -> int:
    """The largest count that is accepted: libgomp ends the process where the system refuses it a thread."""
    return max(ALWAYS_ACCEPTED, 4 * cores())


DIGITS = 10
"""Digits of OMP_NUM_THREADS that are no count any more."""


def thread_count(threads: object) -> int:
    """A stated count; for None what OMP_NUM_THREADS says, or the cores that the process may use.

    Raises TargetError for a value that is no integer from 1 to `most_threads()`.
    """
    if threads is None:
        stated = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
        count = int(stated) if stated.isdecimal() and len(stated) < DIGITS else 0
        return min(count, most_threads()) if count else cores()
    try:
        count = 0 if isinstance(threads, bool) else index(threads)  # type: ignore[arg-type]
    except TypeError:
        count = 0
    if not (1 <= count <= ALWAYS_ACCEPTED or 1 <= count <= most_threads()):
        raise TargetError(f"threads={threads!r}: expected an integer from 1 to {most_threads()}")
    return count


def usable(threads: int) -> int:
    """As many threads as a parallel loop can have of those asked for: one where there is no runtime to rely on."""
    if threads == 1:
        return 1
    if _forked:
        return _alone("this process was forked from one with an OpenMP runtime, whose threads it lacks")
    if runtime() is None:
        return _alone("there is no OpenMP runtime (libgomp)")
    return threads


def _alone(reason: str) -> int:
    warnings.warn(f"{reason}: parallel loops run on one thread", RuntimeWarning, stacklevel=5)
    return 1


def define_symbols() -> None:
    """Make known to LLVM the runtime's functions, which are never called where there is none, and those for processors,
    which say that they do not know where the system has none."""
    library = runtime()
    for name in SYMBOLS:
        function = _nothing if library is None else getattr(library, name)
        llvm.add_symbol(name, ctypes.cast(function, ctypes.c_void_p).value)
    process = ctypes.CDLL(None)
    for name in PROCESSORS:
        llvm.add_symbol(name, ctypes.cast(getattr(process, name, _unknown), ctypes.c_void_p).value)


@cache
def runtime() -> ctypes.CDLL | None:
    """The runtime's library, or None; it stays loaded."""
    for path in [*loaded(), *_of_scikit_learn(), "libgomp.so.1"]:
        try:
            with _short_spin():
                return ctypes.CDLL(path)
        except OSError:
            continue
    return None


def loaded() -> list[str]:
    """The paths of the copies of libgomp in this process, in the order of their addresses."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return []
    paths = [line.split(maxsplit=5)[5] for line in lines if "libgomp" in line]
    return list(dict.fromkeys(path for path in paths if Path(path).name.startswith("libgomp")))


def _of_scikit_learn() -> list[str]:
    """The copy in scikit-learn's wheel; scikit-learn itself is not imported."""
    spec = find_spec("sklearn")
    if spec is None or spec.origin is None:
        return []
    folder = Path(spec.origin).parents[1] / "scikit_learn.libs"
    return sorted(str(path) for path in folder.glob("libgomp-*.so*"))


@contextmanager
def _short_spin() -> Iterator[None]:
    """Where the user has stated nothing, GOMP_SPINCOUNT while the library loads, which is when it is read."""
    if any(name in os.environ for name in _STATED):
        yield
        return
    os.environ["GOMP_SPINCOUNT"] = SPIN_COUNT
    try:
        yield
    finally:
        del os.environ["GOMP_SPINCOUNT"]


def _after_fork() -> None:
    global _forked
    _forked = bool(loaded())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
