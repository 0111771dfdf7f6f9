"""`load`: a library as a kernel."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from compiler.lowering.low_to_llvm.signature import Workspace
from compiler.support.errors import TargetError
from compiler.support.files import to_path
from compiler.support.unpicklable import Unpicklable
from compiler.targets.address import address
from compiler.targets.arena import arena
from compiler.targets.arguments import Argument, Array, check_input
from compiler.targets.cpu.facts import BuildFacts
from compiler.targets.cpu.kernel import FixedArguments, Interface, Kernel
from compiler.targets.cpu.library.description import HEADER_BYTES, argument_of, parsed
from compiler.targets.cpu.library.export import library_name
from compiler.targets.cpu.openmp import thread_count, usable_threads

_BYTE = Argument("constants", (1,), np.dtype(np.uint8))


class SharedLibrary(Unpicklable):
    """A library that the system has loaded, with the prefix `name` of its functions `NAME_...`, which are found by
    their names without it. Creating it raises TargetError for a path that cannot be loaded."""

    _refusal = "a loaded library cannot be pickled or copied: strata.load of its path loads it again"

    def __init__(self, path: Path, name: str) -> None:
        try:
            self._library = _open(path)
        except OSError as error:
            raise TargetError(f"{path} cannot be loaded: {error}") from error
        self.path, self.name = path, name

    def function(self, name: str, result: object, *arguments: object) -> Any:
        """The function `NAME_name`, with the ctypes of its result, None for none, and of its arguments. Raises
        TargetError if the library lacks it."""
        try:
            function = getattr(self._library, f"{self.name}_{name}")
        except AttributeError as error:
            sentence = f"{self.path} has no function {self.name}_{name}: state the library's name=, as in its header"
            raise TargetError(sentence) from error
        function.restype, function.argtypes = result, arguments
        return function

    def address(self, name: str) -> int:
        """The address of the native function of the version for this processor; `name` is not used. 0 if no version
        runs here."""
        native_address: int = self.function("function", ctypes.c_void_p)()
        return native_address

    def check(self, status: int) -> None:
        """Raise TargetError for a status other than 0."""
        if status:
            message = self.function("message", ctypes.c_char_p, ctypes.c_int)(status).decode()
            raise TargetError(f"{self.path}: {message}")


def _open(path: Path) -> ctypes.CDLL:
    """Open a library by a new name: for a name that is open already the system returns the library that the file had
    then."""
    with TemporaryDirectory(prefix="strata-") as folder:
        link = Path(folder) / path.name
        link.symlink_to(path.absolute())
        return ctypes.CDLL(os.fspath(link))


def load(path: object, weights: Mapping[str, object] | None = None, name: str | None = None) -> Kernel:
    """Load a shared library that `Kernel.export` or `strata build` wrote, as a kernel.

    `weights` are arrays by name that replace the library's; a library without weights needs them. `name` is the prefix
    of its functions: the file's name without `lib` and suffix by default. A file `NAME.safetensors` beside the library
    is read if the library was written with one. Runs the code of the file: load only what you trust. Raises TargetError
    for a file that is no such library, for wrong or missing weights, and if no version runs on this processor.

    >>> A = te.placeholder((4,), name="A")
    >>> kernel = build(te.function("double", [A], te.nn.add(A, A, name="B")), threads=1)
    >>> paths = kernel.export("libdouble.so")
    >>> load("libdouble.so")(np.ones(4, np.float32))
    array([2., 2., 2., 2.], dtype=float32)
    """
    file = to_path(path)
    library = SharedLibrary(file, library_name(file, name))
    facts = parsed(library.function("interface", ctypes.c_char_p)().decode(), str(file))
    cpu = library.function("version", ctypes.c_char_p)().decode()
    version = next((v for v in facts["versions"] if v["cpu"] == cpu), None)
    if version is None:
        cpus = ", ".join(v["cpu"] for v in facts["versions"])
        raise TargetError(f"{file}: no version runs on this processor (it has {cpus})")
    arrays = {kind: [argument_of(fields) for fields in facts[kind]] for kind in ("inputs", "outputs", "weights")}
    arguments, fixed = [], dict[int, int]()
    for position, (kind, number) in enumerate(version["arguments"]):
        if kind == "constant":
            fixed[position] = number
        arguments.append(_BYTE if kind == "constant" else arrays[f"{kind}s"][number])
    threads = usable_threads(thread_count(facts["threads"])) if version["takes_threads"] else None
    outputs = len(arrays["outputs"]) if facts["results"] else 0
    interface = Interface(facts["program"], tuple(arguments), outputs, Workspace(*version["workspace"]), threads)
    block = _constants(library, arrays["weights"], weights)
    views = {position: block[HEADER_BYTES + offset :] for position, offset in fixed.items()}
    build = BuildFacts(arena_bytes=interface.workspace.size(threads or 1), constant_bytes=version["constant_bytes"])
    return Kernel(interface, library, facts["policy"], {}, FixedArguments(views), build)


def _constants(library: SharedLibrary, expected: list[Any], weights: Mapping[str, object] | None) -> Array:
    """Return the constants of a library as read-only bytes, behind the library's header of HEADER_BYTES, filled from
    the weights `expected`, in `weights` by name, or for None from the file beside the library or from the library
    itself. Raises TargetError for an unknown, missing or wrong weight, and if the library reports an error."""
    size = library.function("constants_bytes", ctypes.c_size_t)()
    block = arena(size)[:size]
    if weights is None:
        status = _fill_from_file(library, block) if expected else None
        if status is None:
            prepare = library.function("prepare", ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
            status = prepare(None, address(block), size)
    else:
        unknown = next((name for name in weights if name not in {a.name for a in expected}), None)
        if unknown is not None:
            names = ", ".join(a.name for a in expected) or "none"
            raise TargetError(f"{library.name}: there is no weight '{unknown}' (there are {names})")
        arrays = [check_input(library.name, a, _weight(library, a.name, weights)) for a in expected]
        pointers = (ctypes.c_void_p * max(1, len(arrays)))(*map(address, arrays))
        prepare = library.function("prepare", ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
        status = prepare(pointers, address(block), size)
    library.check(status)
    block.flags.writeable = False
    return block


def _fill_from_file(library: SharedLibrary, block: Array) -> int | None:
    """Fill constants by the file beside a library; return the status of the library's function, None if the library was
    written without a file."""
    try:
        prepare = library.function("prepare_file", ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t)
    except TargetError:
        return None
    path = library.path.with_name(f"{library.name}.safetensors")
    status: int = prepare(os.fsencode(path), address(block), len(block))
    return status


def _weight(library: SharedLibrary, name: str, weights: Mapping[str, object]) -> object:
    if name not in weights:
        raise TargetError(f"{library.name}: the weight '{name}' is missing")
    return weights[name]
