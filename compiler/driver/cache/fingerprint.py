"""`fingerprint`: a digest of the compiler itself: the package's sources, its libraries, scheduling plugins."""

from __future__ import annotations

import inspect
import os
import sys
import time
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

import compiler
from compiler.support import plugins

SCHEDULING = ("primitive", "search rule", "grouping rule")
"""The kinds of plugin parts on which schedules depend."""
_BEGAN = time.time()
"""The time at which this process imported this file; sources that changed later may differ from the running code."""


def fingerprint() -> str | None:
    """Return a digest of the package's files, of the versions of its libraries, and of the files of plugins that affect
    scheduling. None if a file cannot be read, or is younger than this process, which may run an older version of it."""
    functions = [part.value for kind in SCHEDULING for part in plugins.parts(kind).values()]
    package_digest = _of_package()
    plugin_digest = _of_functions(tuple(map(inspect.unwrap, functions))) if functions else ""
    return None if package_digest is None or plugin_digest is None else package_digest + plugin_digest


@cache
def _of_functions(functions: Sequence[object]) -> str | None:
    """A digest of the files that define functions, and of all modules of their top-level packages; None if a file
    cannot be read or is younger than this process."""
    digest, files = sha256(), set[Path]()
    try:
        for function in functions:
            path = Path(inspect.getfile(function))  # type: ignore[arg-type]
            inner = function.__module__.count(".") if (path.parent / "__init__.py").exists() else None
            files |= {path} if inner is None else set(path.parents[max(0, inner - 1)].rglob("*.py"))
        for file in sorted(files):
            if file.stat().st_mtime > _BEGAN:
                return None
            digest.update(f"{file} ".encode() + file.read_bytes())
    except (OSError, TypeError):
        return None
    return digest.hexdigest()


@cache
def _of_package() -> str | None:
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
    """Yield all files below a folder except bytecode. pathlib takes three times as long, in every building process."""
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
