"""The loops of mm_exp_mm in C, in the order of the expression, optimised by a C compiler only.

Each element has one accumulator in a local variable; extents are static, pointers are restrict, FLAGS allow reordering.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from compiler.bench.error_bounds import Array
from compiler.bench.workload import Step, Workload
from compiler.support.errors import TargetError

FLAGS = ("-O3", "-march=native", "-ffast-math", "-std=c11", "-fPIC")

SOURCE = """
#include <math.h>

void mm_exp_mm(const float A[restrict static M][K], const float B[restrict static K][L],
               const float E[restrict static L][N], float T[restrict static M][L], float C[restrict static M][N]) {
  for (int m = 0; m < M; ++m)
    for (int l = 0; l < L; ++l) {
      float sum = 0.0f;
      for (int k = 0; k < K; ++k) sum += A[m][k] * B[k][l];
      T[m][l] = sum;
    }
  for (int m = 0; m < M; ++m)
    for (int l = 0; l < L; ++l) T[m][l] = expf(T[m][l]);
  for (int m = 0; m < M; ++m)
    for (int n = 0; n < N; ++n) {
      float sum = 0.0f;
      for (int l = 0; l < L; ++l) sum += T[m][l] * E[l][n];
      C[m][n] = sum;
    }
}
"""


def find_gcc() -> str | None:
    """The path of gcc; None if it is not installed."""
    return shutil.which("gcc")


def version(gcc: str) -> str:
    """The version number of a gcc. Raises TargetError if it fails, cannot be run, or takes more than a minute."""
    return _said([gcc, "-dumpfullversion"]).strip()


def bind(gcc: str, workload: Workload, inputs: Sequence[Array], out: Array) -> Step:
    """Compile the loops for the extents of an mm_exp_mm, and return a step that runs them from `inputs` to `out`.
    Raises TargetError for a workload with other inputs, and if gcc fails, cannot be run, or takes more than a
    minute."""
    if [i.name for i in workload.inputs] != ["A", "B", "E"]:
        raise TargetError("gcc has the loops of mm_exp_mm only")
    a, _, e = inputs
    extents = {"M": a.shape[0], "K": a.shape[1], "L": e.shape[0], "N": e.shape[1]}
    function = _load(gcc, extents).mm_exp_mm
    middle = np.empty((extents["M"], extents["L"]), np.float32)
    addresses = [array.ctypes.data_as(ctypes.c_void_p) for array in (*inputs, middle, out)]

    def step() -> Array:
        function(*addresses)
        return out

    return step


def _load(gcc: str, extents: dict[str, int]) -> ctypes.CDLL:
    """Compile the loops with these extents, and load the library; its file is deleted. Raises TargetError if gcc fails
    or cannot be run.

    It is linked without -ffast-math, which would flush denormals to zero in the whole process.
    """
    with TemporaryDirectory() as folder:
        source, object, library = (Path(folder) / f"loops.{end}" for end in ("c", "o", "so"))
        source.write_text(SOURCE)
        defined = [f"-D{name}={extent}" for name, extent in extents.items()]
        _said([gcc, *FLAGS, *defined, "-c", str(source), "-o", str(object)])
        _said([gcc, "-shared", str(object), "-o", str(library), "-lm"])
        return ctypes.CDLL(str(library))


def _said(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    except subprocess.CalledProcessError as error:
        raise TargetError(f"gcc failed: {error.stderr.strip().splitlines()[0]}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TargetError(f"gcc could not be run ({type(error).__name__})") from error
    return done.stdout
