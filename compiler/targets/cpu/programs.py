"""`load_linked`: the kernel of a compiled program; `LoadedProgram`: its pickle, and its library."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from types import MappingProxyType

import numpy as np

from compiler.certificate.text import Certificate, version
from compiler.dialects.numbers import dtype_of
from compiler.graph.main import size
from compiler.support.errors import InputError
from compiler.support.files import to_path
from compiler.targets.address import address
from compiler.targets.arena import Allocate, arena
from compiler.targets.arguments import Array
from compiler.targets.cpu.compile import LoadedCode, load_objects
from compiler.targets.cpu.facts import BuildFacts
from compiler.targets.cpu.kernel import FixedArguments, Kernel, LevelText, LevelTexts
from compiler.targets.cpu.library.description import describe
from compiler.targets.cpu.library.export import TEXTS, Weights, export_program, library_name, native_texts
from compiler.targets.cpu.linked import ConstantBlock, Linked, Preparation
from compiler.targets.cpu.openmp import usable_threads
from compiler.targets.cpu.tiles import permit_tiles
from compiler.types.machines import missing_features
from compiler.types.records import from_bytes, to_bytes


@dataclass(frozen=True)
class LoadedProgram:
    """A compiled program with its block of constants, the bytes that `fill_constants` returns, for `Kernel.export` and
    pickle."""

    linked: Linked
    block: Array

    def reduced(self) -> tuple[Callable[[bytes], Kernel], tuple[bytes]]:
        """The value of a kernel's `__reduce_ex__`: the function `restored`, and the machine code and the block of
        constants as its argument."""
        return restored, (to_bytes(_Pickled(self.linked, self.block.tobytes())),)

    def export(self, path: object, weights: str, name: str | None, texts: Sequence[LevelTexts]) -> list[Path]:
        """Write the program as a library and return the paths; weights: the place of the constants, `library`, `file`
        or `none`. name: the prefix of the functions, by default that of the file. texts: by level, of the kernel and,
        if there is one, of its preparation. Raises InputError for a path or word that `Kernel.export` refuses, and for
        one that ends in .c, .ll or .s; TargetError without a C compiler. A path with a suffix has no texts written
        beside it."""
        file = to_path(path)
        if file.suffix in (".c", *TEXTS):
            raise InputError(f"a kernel is written as a library, '{file.name}' is written by strata.export")
        evidence = texts[0].get("certificate")
        description = describe(library_name(file, name), [self.linked])
        arrays = {f"constants for {self.linked.machine.cpu}": self.block} if description.weights else {}
        certificate = None
        if evidence is not None:
            stated = evidence if isinstance(evidence, str) else evidence()
            certificate = Certificate(description.name, [version(stated)])
        main, before = (*texts, {})[:2]
        written = {} if file.suffix else native_texts(description.name, main, before)
        return export_program(description, Weights(arrays, True, weights), file, certificate, written)


def load_linked(
    linked: Linked,
    arrays: Mapping[str, Array],
    texts: Mapping[str, LevelText],
    start: float,
    cached: bool = False,
    allocate: Allocate = arena,
    texts_before: Mapping[str, LevelText] = MappingProxyType({}),
) -> Kernel:
    """Load a program as a kernel, and fill its block of constants.

    arrays: of the constants, by name. texts: of the program, by level. start: of the build, in seconds on perf_counter.
    cached: whether the program is from the cache. allocate: allocates the block. texts_before: of the preparation of a
    program of one function. Raises TargetError if no library here has a function that the program calls, or if the
    system refuses tile registers.
    """
    library = _load_code(linked)
    block = fill_constants(linked.block, arrays, library, usable_threads(linked.threads), allocate)
    return _kernel(linked, library, block, texts, start, cached, texts_before)


@dataclass(frozen=True)
class _Pickled:
    linked: Linked
    block: bytes


def restored(payload: bytes) -> Kernel:
    """Load the kernel of a pickle's payload; it has no texts, and counts as cached. Raises TargetError if no library
    here has a function that it calls, or if the system refuses tile registers."""
    program = from_bytes(_Pickled, payload)
    block = arena(len(program.block))[: len(program.block)]
    block[:] = np.frombuffer(program.block, np.uint8)
    block.flags.writeable = False
    return _kernel(program.linked, _load_code(program.linked), block, {}, perf_counter(), True, {})


def _load_code(linked: Linked) -> LoadedCode:
    if linked.tiles and not missing_features(linked.machine):
        permit_tiles()
    return load_objects(linked.objects, linked.machine)


def _kernel(
    linked: Linked,
    library: LoadedCode,
    block: Array,
    texts: Mapping[str, LevelText],
    start: float,
    cached: bool,
    texts_before: Mapping[str, LevelText],
) -> Kernel:
    interface = linked.interface
    before = None
    if not linked.callees and linked.block.preparations:
        before = Kernel(linked.block.preparations[0].interface, library, linked.policy, texts_before)
    seconds, groups = perf_counter() - start, linked.groups
    if not linked.callees:
        groups = tuple(replace(group, seconds=0.0 if cached else seconds) for group in groups)
    facts = BuildFacts(
        groups,
        arena_bytes=interface.workspace.size(interface.threads or 1),
        temporaries_bytes=linked.temporaries_bytes,
        constant_bytes=linked.block.bytes,
        build_seconds=seconds,
        cached=cached,
    )
    fixed = FixedArguments(_views(linked, block), before)
    loaded = LoadedProgram(linked, block)
    return Kernel(interface, library, linked.policy, texts, fixed, facts, linked.callees, loaded)


def _views(linked: Linked, block: Array) -> dict[int, Array]:
    """Return the arrays that each call passes, as views in the block of constants, by their positions among the native
    arguments."""
    arguments = linked.interface.arguments
    slices = {n: block[offset : offset + arguments[n].size] for n, offset in linked.fixed}
    return {n: bytes.view(arguments[n].dtype).reshape(arguments[n].shape) for n, bytes in slices.items()}


def fill_constants(
    block: ConstantBlock, given: Mapping[str, Array], library: LoadedCode, threads: int, allocate: Allocate = arena
) -> Array:
    """Allocate a block of constants by `allocate` and fill it; return it as read-only bytes. given: arrays by name, of
    the constants and of other inputs of the preparations, with the shapes of their buffers; the preparations fill the
    other constants. They run in order, each on `threads` threads; prepared buffers that are not in the block are freed
    after this call."""
    memory = allocate(block.bytes)[: block.bytes]
    arrays = dict(given)
    for constant in block.constants:
        stretch = memory[constant.offset : constant.offset + size(constant.buffer)]
        array = stretch.view(dtype_of(constant.buffer.element)).reshape(constant.buffer.shape)
        if constant.buffer.name in given:
            array[...] = given[constant.buffer.name]
        arrays[constant.buffer.name] = array
    scratch = arena(max((p.interface.workspace.size(threads) for p in block.preparations), default=0))
    for preparation in block.preparations:
        for name in preparation.outputs:
            if name not in arrays:
                arrays[name] = arena(size(block.prepared[name]))
        addresses = [address(arrays[name]) for name in (*preparation.inputs, *preparation.outputs)]
        _run(preparation, [*addresses, address(scratch)], library, threads)
    memory.flags.writeable = False
    return memory


def _run(preparation: Preparation, pointers: Sequence[int], library: LoadedCode, threads: int) -> None:
    interface = preparation.interface
    count = [] if interface.threads is None else [ctypes.c_int32]
    native = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(pointers), *count)(library.address(interface.symbol))
    native(*pointers, *([threads] if count else []))
