"""`fingerprint`: what machine code depends on beside its program: the package's sources, and what compiles it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path

import compiler

_BEGAN = time.time()
"""When this process had read its first sources."""


@cache
def fingerprint() -> str | None:
    """A digest of all files of the package, sources and data, and of the versions of its compilers and libraries.

    None where the sources cannot be read, or one is younger than this process, which then may run another one.
    """
    digest = sha256(repr((sys.version, *_versions())).encode())
    root = str(Path(compiler.__file__).resolve().parent)
    try:
        sources = sorted(_files(root), key=lambda source: source.path)
        if not sources or max(source.stat().st_mtime for source in sources) > _BEGAN:
            return None
        for source in sources:
            with open(source.path, "rb", buffering=0) as file:
                text = file.readall()
            digest.update(f"{source.path.removeprefix(root)} {len(text)}\n".encode())
            digest.update(text)
    except OSError:
        return None
    return digest.hexdigest()


def _files(folder: str) -> Iterator[os.DirEntry[str]]:
    """All files below a folder but bytecode; pathlib takes three times as long, in every process that builds."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                if entry.is_file():
                    yield entry
            elif entry.name != "__pycache__":
                yield from _files(entry.path)


def _versions() -> tuple[str, ...]:
    import islpy
    import llvmlite
    import llvmlite.binding as llvm
    import numpy as np
    import xdsl

    isl = islpy.version.VERSION_TEXT
    return tuple(map(str, (llvm.llvm_version_info, llvmlite.__version__, xdsl.__version__, isl, np.__version__)))
