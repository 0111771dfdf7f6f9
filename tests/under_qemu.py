"""Libraries for AArch64, run on arrays by a small C program under qemu's user mode."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np

import strata
from compiler.targets.compilers import cross_command, run_compiler
from compiler.types.machines import Machine
from strata import te

ARCHITECTURE = "aarch64"
CPU = "neoverse-n1"
QEMU = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
ROOT = Path("/usr/aarch64-linux-gnu")
REASON = "qemu-aarch64 or a C compiler for AArch64 is missing (Debian: qemu-user, gcc-aarch64-linux-gnu)"
MODELS = ("cortex-a72", "neoverse-n1")
"""The processors that qemu has a model of."""
Array = np.ndarray[Any, Any]

RUNNER = r"""
#include <stdio.h>
#include <stdlib.h>
#include "net.h"
static void *aligned(size_t bytes) { return aligned_alloc(64, (bytes + 63) / 64 * 64 + 64); }
int main(int count, char **words) {
  /* words: the inputs' files, then the outputs' files with the bytes of each */
  const void *inputs[64];
  void *outputs[64];
  for (int i = 0; i < NET_INPUTS; ++i) {
    FILE *file = fopen(words[1 + i], "rb");
    fseek(file, 0, SEEK_END);
    size_t bytes = (size_t)ftell(file);
    rewind(file);
    void *memory = aligned(bytes);
    if (fread(memory, 1, bytes, file) != bytes) return 90;
    inputs[i] = memory;
  }
  char **rest = words + 1 + NET_INPUTS;
  for (int i = 0; i < NET_OUTPUTS; ++i) outputs[i] = aligned(strtoul(rest[2 * i + 1], 0, 10));
  void *constants = aligned(net_constants_bytes()), *workspace = aligned(net_workspace_bytes(1));
  int status = count ? net_prepare(0, constants, net_constants_bytes()) : 91;
  if (!status) status = net_run(constants, inputs, outputs, workspace, net_workspace_bytes(1), 1);
  for (int i = 0; !status && i < NET_OUTPUTS; ++i) {
    FILE *file = fopen(rest[2 * i], "wb");
    fwrite(outputs[i], 1, strtoul(rest[2 * i + 1], 0, 10), file);
    fclose(file);
  }
  return status;
}
"""


def cpu_model(machine: Machine) -> str:
    """qemu's model of a processor, or `max`, which has all features, with registers of SVE as wide as the machine's."""
    scale = machine.vector_scale or 1
    return machine.cpu if machine.cpu in MODELS else f"max,sve-max-vq={scale}"


@cache
def is_missing() -> bool:
    """Whether AArch64 code cannot be linked or run here."""
    return QEMU is None or cross_command(ARCHITECTURE) is None or not ROOT.is_dir()


def run(function: te.Function, arrays: Sequence[Array], outputs: Sequence[Array], **options: Any) -> list[Array]:
    """The results of a program for AArch64 on arrays; `outputs` have their shapes and dtypes, `options` are those of
    `strata.export`."""
    folder = Path(mkdtemp(prefix="strata-"))
    try:
        strata.export(function, folder / "net.o", cpus=(CPU,), threads=1, **options)
        (folder / "main.c").write_text(RUNNER)
        run_compiler(["-O1", "-o", "main", "main.c", "net.o", "-lm"], folder, ARCHITECTURE)
        words = [str(QEMU), "-L", str(ROOT), "./main"]
        for number, array in enumerate(arrays):
            (folder / f"in{number}").write_bytes(np.ascontiguousarray(array).tobytes())
            words.append(f"in{number}")
        for number, array in enumerate(outputs):
            words += [f"out{number}", str(array.nbytes)]
        subprocess.run(words, cwd=folder, check=True, timeout=120)
        payloads = [(folder / f"out{number}").read_bytes() for number in range(len(outputs))]
        return [np.frombuffer(p, a.dtype).reshape(a.shape) for p, a in zip(payloads, outputs, strict=True)]
    finally:
        shutil.rmtree(folder)
