"""Compile a C text to a shared library, and load it."""

from __future__ import annotations

import ctypes
from pathlib import Path
from tempfile import TemporaryDirectory

from compiler.targets.compilers import run_compiler

FLAGS = ("-std=c11", "-O3", "-march=native", "-fPIC", "-shared", "-w")


def load_library(text: str, contracts: bool) -> ctypes.CDLL:
    """Compile a text for this processor, with contraction to fma if `contracts` and with OpenMP if it has parallel
    loops, and load it. Raises TargetError without a compiler, for a text that it refuses, and after the time limit."""
    with TemporaryDirectory(prefix="strata-") as folder:
        source, library = Path(folder) / "kernel.c", Path(folder) / "kernel.so"
        source.write_text(text)
        flags = [*FLAGS, f"-ffp-contract={'fast' if contracts else 'off'}"]
        flags += ["-fopenmp"] if "#pragma omp parallel" in text else ["-fopenmp-simd"]
        run_compiler([*flags, "-o", str(library), str(source), "-lm"], Path(folder))
        return ctypes.CDLL(str(library))
