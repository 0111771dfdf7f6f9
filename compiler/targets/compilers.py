"""C compilers: gcc or clang of the PATH, else that of the package ziglang."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from compiler.support.errors import TargetError
from compiler.types.machines import architecture

NAMES = ("gcc", "clang", "cc")
MISSING = "there is no C compiler: install gcc or clang, or the package ziglang"
TIMEOUT_SECONDS = 300
"""The time limit of a compilation, in seconds."""


@cache
def compiler_command() -> tuple[str, ...] | None:
    """Return the command of gcc, clang or cc, the first that the PATH has, else of the package ziglang; None without
    one. Relative PATH entries are skipped."""
    paths = (shutil.which(name) for name in NAMES)
    path = next((path for path in paths if path is not None and Path(path).is_absolute()), None)
    if path is not None:
        return (path,)
    return (sys.executable, "-m", "ziglang", "cc") if find_spec("ziglang") is not None else None


def cross_command(target: str) -> tuple[str, ...] | None:
    """Return the command of a C compiler for Linux on the architecture `target`, such as aarch64: `compiler_command`
    for this computer's own, else ARCH-linux-gnu-gcc of the PATH, else that of ziglang; None without one."""
    if target == architecture():
        return compiler_command()
    path = shutil.which(f"{target}-linux-gnu-gcc")
    if path is not None and Path(path).is_absolute():
        return (path,)
    has_zig = find_spec("ziglang") is not None
    return (sys.executable, "-m", "ziglang", "cc", "-target", f"{target}-linux-gnu") if has_zig else None


def run_compiler(arguments: Sequence[str], folder: Path, target: str | None = None) -> None:
    """Run the C compiler for the architecture `target`, by default this computer's, with arguments in a folder. Raises
    TargetError if there is no compiler, and if it cannot be run, exceeds TIMEOUT_SECONDS or fails, with its first
    error."""
    command = compiler_command() if target is None else cross_command(target)
    if command is None:
        raise TargetError(MISSING if target in (None, architecture()) else f"{MISSING}, or {target}-linux-gnu-gcc")
    run([*command, *arguments], folder)


def run(command: Sequence[str], folder: Path) -> None:
    """Run a program in a folder. Raises TargetError if it cannot be run, exceeds TIMEOUT_SECONDS or fails; the
    message of a failure has the first line of stderr with "error", or else all of stderr."""
    try:
        result = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, cwd=folder, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TargetError(f"{command[0]} cannot be run: {error}") from error
    if result.returncode:
        first_error = next((line for line in result.stderr.splitlines() if "error" in line), result.stderr.strip())
        raise TargetError(f"{command[0]} refuses the text: {first_error}")


def binary_tool(name: str, target: str | None = None) -> str | None:
    """Return the absolute path of a program of binutils, such as `ar`, for the architecture `target`, by default this
    computer's, else of LLVM's, such as `llvm-ar`; None if the PATH has neither, or the first one found by a relative
    entry."""
    own = target in (None, architecture())
    path = (shutil.which(name) if own else shutil.which(f"{target}-linux-gnu-{name}")) or shutil.which(f"llvm-{name}")
    return path if path is not None and Path(path).is_absolute() else None
