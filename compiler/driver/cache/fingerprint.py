"""`fingerprint`: what machine code depends on beside its program: the package's sources, what compiles it, plugins."""

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
"""The kinds of parts of plugins on which schedules depend."""
_BEGAN = time.time()
"""When this process had read its first sources."""


def fingerprint() -> str | None:
    """A digest of all files of the package, sources and data, of the versions of its compilers and libraries, and of
    the files of plugins that take part in scheduling.

    None where sources cannot be read, or one is younger than this process, which then may run another one.
    """
    functions = [part.value for kind in SCHEDULING for part in plugins.parts(kind).values()]
    own = _of_package()
    added = _of_functions(tuple(map(inspect.unwrap, functions))) if functions else ""
    return None if own is None or added is None else own + added


@cache
def _of_functions(functions: Sequence[object]) -> str | None:
    """A digest of the files that functions are in, and of all modules of their packages."""
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
