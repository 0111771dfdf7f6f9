"""MLIR's bytecode, read and written by mlir-opt."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from compiler.support.errors import InputError
from compiler.support.files import to_path, write_errors

MAGIC = b"ML\xefR"
"""The first bytes of a file of bytecode."""
TOOLS = ("mlir-opt", "mlir-opt-22", "mlir-opt-21", "mlir-opt-20")
"""The names of mlir-opt in PATH."""
TOOL = "STRATA_MLIR_OPT"
"""The environment variable with the absolute path of mlir-opt."""


def to_text(bytecode: bytes, name: str) -> str:
    """Convert bytecode to text with locations. Raises InputError if `name`, the file, is damaged, or without
    mlir-opt."""
    return _converted(bytecode, name, ("--mlir-print-debuginfo",)).decode()


def from_text(generic: str) -> bytes:
    """Convert text in generic form to bytecode. Raises InputError if mlir-opt does not take it, or without mlir-opt."""
    return _converted(generic.encode(), "the output", ("--emit-bytecode",))


def write_bytes(name: str | None, content: bytes) -> None:
    """Write bytes to a file, or to standard output for None and `-`. Raises InputError if that fails."""
    if name is None or name == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        return
    path = to_path(name)
    with write_errors(path):
        path.write_bytes(content)


def _converted(content: bytes, name: str, flags: tuple[str, ...]) -> bytes:
    paths = [os.environ.get(TOOL), *map(shutil.which, TOOLS)]
    tool = next((path for path in paths if path and os.path.isabs(path)), None)
    if tool is None:
        raise InputError(f"MLIR's bytecode needs mlir-opt, which is not in PATH; {TOOL} may have its path")
    words = [tool, "-", "--allow-unregistered-dialect", *flags]
    try:
        done = subprocess.run(words, input=content, capture_output=True, check=False)
    except OSError as error:
        raise InputError(f"{tool} cannot be run: {error.strerror}") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise InputError(f"{tool} does not take {name}: {said[0] if said else f'exit status {done.returncode}'}")
    return done.stdout
