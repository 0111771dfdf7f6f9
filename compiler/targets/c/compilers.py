"""Compile a C text to a shared library by gcc or clang, and load it."""

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
TIMEOUT_SECONDS = 300
"""The time limit of a compilation, in seconds."""


@cache
def compiler_path() -> str | None:
    """Return the path of the first C compiler on the PATH, None without one; relative PATH entries are skipped."""
    paths = (shutil.which(name) for name in NAMES)
    return next((path for path in paths if path is not None and Path(path).is_absolute()), None)


def load_library(text: str, contracts: bool) -> ctypes.CDLL:
    """Compile a text, with contraction to fma if `contracts`, and load it. Raises TargetError without a compiler, for a
    text that it refuses, and after TIMEOUT_SECONDS."""
    path = compiler_path()
    if path is None:
        raise TargetError(MISSING)
    with TemporaryDirectory(prefix="strata-") as folder:
        source, library = Path(folder) / "kernel.c", Path(folder) / "kernel.so"
        source.write_text(text)
        flags = [*FLAGS, f"-ffp-contract={'fast' if contracts else 'off'}"]
        flags += ["-fopenmp"] if "#pragma omp parallel" in text else ["-fopenmp-simd"]
        command = [path, *flags, "-o", str(library), str(source), "-lm"]
        try:
            result = subprocess.run(
                command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, cwd=folder, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise TargetError(f"{path} cannot compile the text: {error}") from error
        if result.returncode:
            first_error = next((line for line in result.stderr.splitlines() if "error" in line), result.stderr.strip())
            raise TargetError(f"{path} refuses the text: {first_error}")
        return ctypes.CDLL(str(library))
