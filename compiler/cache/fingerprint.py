"""`fingerprint`: what machine code depends on beside its program: the package's sources, and what compiles it."""

from __future__ import annotations

import sys
import time
from functools import cache
from hashlib import sha256
from pathlib import Path

import compiler

_BEGAN = time.time()
"""When this process had read its first sources."""


@cache
def fingerprint() -> str | None:
    """A digest of all files of the package, sources and data, and of the versions of what it compiles with.

    None where the sources cannot be read, or one is younger than this process, which then may run another one.
    """
    found = sha256(repr((sys.version, *_versions())).encode())
    root = Path(compiler.__file__).resolve().parent
    try:
        sources = sorted(path for path in root.rglob("*") if path.is_file() and path.parent.name != "__pycache__")
        if not sources or max(source.stat().st_mtime for source in sources) > _BEGAN:
            return None
        for source in sources:
            text = source.read_bytes()
            found.update(f"{source.relative_to(root)} {len(text)}\n".encode())
            found.update(text)
    except OSError:
        return None
    return found.hexdigest()


def _versions() -> tuple[str, ...]:
    import islpy
    import llvmlite
    import llvmlite.binding as llvm
    import numpy as np
    import xdsl

    isl = islpy.version.VERSION_TEXT
    return tuple(map(str, (llvm.llvm_version_info, llvmlite.__version__, xdsl.__version__, isl, np.__version__)))
