"""The OpenMP runtime of parallel loops: find and load libgomp, shorten its spinning, and choose the thread count.

With two copies of libgomp in a process idle threads of one spin beside working threads of the other. So a copy that is
already loaded is used (torch and scikit-learn carry their own), else scikit-learn's, else the system's.

A child of fork() has none of its parent's threads, and libgomp waits for them for ever. So in a child that was forked
with libgomp loaded parallel loops run serially, with a warning. Spawned children are not affected.
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

from compiler.support.errors import TargetError
from compiler.types.processors import processors

SYMBOLS = ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads")
"""The runtime functions that native code calls."""

AFFINITY_SYMBOLS = ("sched_getcpu", "sched_getaffinity", "sched_setaffinity", "sched_yield")
"""The functions of the C library that pin a team's threads to distinct processors; Linux has them."""

SPIN_COUNT = "5000"
"""The spin count of an idle thread before it sleeps, unless the user has set one.

It takes 0.1 ms, the time of waking a thread (45 to 150 us on the virtual machine of the measurement; a region with
awake threads costs 1 to 2 us). libgomp's own default is 6 ms, in which idle threads compete with those of numpy and
torch.
"""

_SPIN_VARIABLES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
_forked = False
_no_op = ctypes.CFUNCTYPE(None)(lambda: None)
_unavailable = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: -1)


def cores() -> int:
    """Return the number of processors that this process may use."""
    return processors()


ALWAYS_ACCEPTED = 64
"""Thread counts up to this one are accepted on any machine, without reading the system's files."""


def max_threads() -> int:
    """Return the largest accepted thread count: libgomp ends the process if the system refuses it a thread."""
    return max(ALWAYS_ACCEPTED, 4 * cores())


MAX_DIGITS = 10
"""Values of OMP_NUM_THREADS with this many digits or more are ignored."""


def thread_count(threads: object) -> int:
    """Return a requested thread count; for None that of OMP_NUM_THREADS, at most `max_threads()`, or without a positive
    one the cores that the process may use. Raises TargetError for another value that is no integer, or is a bool, or
    not from 1 to `max_threads()`.
    """
    if threads is None:
        variable = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
        count = int(variable) if variable.isdecimal() and len(variable) < MAX_DIGITS else 0
        return min(count, max_threads()) if count else cores()
    try:
        count = 0 if isinstance(threads, bool) else index(threads)  # type: ignore[arg-type]
    except TypeError:
        count = 0
    if not (1 <= count <= ALWAYS_ACCEPTED or 1 <= count <= max_threads()):
        raise TargetError(f"threads={threads!r}: expected an integer from 1 to {max_threads()}")
    return count


def usable_threads(threads: int) -> int:
    """Return the thread count of parallel loops for a requested one: the same, or 1 with a RuntimeWarning if there is
    no usable runtime."""
    if threads == 1:
        return 1
    if _forked:
        return _fall_back_to_one("this process was forked from one with an OpenMP runtime, whose threads it lacks")
    if runtime() is None:
        return _fall_back_to_one("there is no OpenMP runtime (libgomp)")
    return threads


def _fall_back_to_one(reason: str) -> int:
    warnings.warn(f"{reason}: parallel loops run on one thread", RuntimeWarning, stacklevel=5)
    return 1


def symbols() -> dict[str, int]:
    """Return the addresses of the runtime's functions and of those of AFFINITY_SYMBOLS, by name; missing ones are
    stubs, which are never called or return -1."""
    library, process = runtime(), ctypes.CDLL(None)
    functions = {name: _no_op if library is None else getattr(library, name) for name in SYMBOLS}
    functions |= {name: getattr(process, name, _unavailable) for name in AFFINITY_SYMBOLS}
    return {name: ctypes.cast(function, ctypes.c_void_p).value or 0 for name, function in functions.items()}


@cache
def runtime() -> ctypes.CDLL | None:
    """Load the OpenMP runtime once and return it: a copy in the process, else scikit-learn's, else the system's; None
    if there is none."""
    for path in [*loaded_runtimes(), *_scikit_learn_copies(), "libgomp.so.1"]:
        try:
            with _short_spin():
                return ctypes.CDLL(path)
        except OSError:
            continue
    return None


def loaded_runtimes() -> list[str]:
    """Return the paths of the copies of libgomp in this process, in the order of their addresses; none on a system
    without /proc."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return []
    paths = [line.split(maxsplit=5)[5] for line in lines if "libgomp" in line]
    return list(dict.fromkeys(path for path in paths if Path(path).name.startswith("libgomp")))


def _scikit_learn_copies() -> list[str]:
    """Return the paths of libgomp in scikit-learn's wheel, without links, as in the maps of a process; scikit-learn is
    not imported."""
    spec = find_spec("sklearn")
    if spec is None or spec.origin is None:
        return []
    folder = Path(spec.origin).parents[1] / "scikit_learn.libs"
    return sorted(str(path.resolve()) for path in folder.glob("libgomp-*.so*"))


@contextmanager
def _short_spin() -> Iterator[None]:
    """Set GOMP_SPINCOUNT, unless the user has set a spin variable, while the library loads and reads it."""
    if any(name in os.environ for name in _SPIN_VARIABLES):
        yield
        return
    os.environ["GOMP_SPINCOUNT"] = SPIN_COUNT
    try:
        yield
    finally:
        del os.environ["GOMP_SPINCOUNT"]


def _after_fork() -> None:
    global _forked
    _forked = bool(loaded_runtimes())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
