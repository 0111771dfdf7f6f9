"""gcc or clang, where there is one: a text of C to a library that is loaded."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from compiler.support.errors import TargetError

NAMES = ("gcc", "clang", "cc")
MISSING = "there is no C compiler (gcc, clang) on the PATH to run it with: its text is there"
FLAGS = ("-std=c11", "-O3", "-march=native", "-fPIC", "-shared", "-w")
SECONDS = 300
"""The longest that a text is compiled."""


@cache
def compiler() -> str | None:
    """The path of the compiler, in a folder that the PATH names in full."""
    paths = (shutil.which(name) for name in NAMES)
    return next((path for path in paths if path is not None and Path(path).is_absolute()), None)


def loaded(text: str, contracts: bool) -> ctypes.CDLL:
    """The library of a text. Raises TargetError where there is no compiler, or it refuses the text."""
    path = compiler()
    if path is None:
        raise TargetError(MISSING)
    with TemporaryDirectory(prefix="strata-") as folder:
        source, library = Path(folder) / "kernel.c", Path(folder) / "kernel.so"
        source.write_text(text)
        flags = [*FLAGS, f"-ffp-contract={'fast' if contracts else 'off'}"]
        flags += ["-fopenmp"] if "#pragma omp parallel" in text else ["-fopenmp-simd"]
        command = [path, *flags, "-o", str(library), str(source), "-lm"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, cwd=folder, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise TargetError(f"{path} cannot compile the text: {error}") from error
        if done.returncode:
            first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip())
            raise TargetError(f"{path} refuses the text: {first}")
        return ctypes.CDLL(str(library))
