"""`cached_program`: a program from the cache, or one that is compiled and then cached."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain

import numpy as np
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute

from compiler.dialects.dense import DenseAttr, constants_in
from compiler.dialects.dense_elements import Dense
from compiler.dialects.functions import find_function
from compiler.dialects.numbers import Array, array_of
from compiler.driver.cache import entries
from compiler.driver.inputs import Signature, checked_arrays, merged_constants, renamed_constants
from compiler.driver.recipe import Recipe, Texts, text_of
from compiler.driver.units.unit import BuildSettings
from compiler.support.gc import paused
from compiler.targets.arena import Allocate, arena
from compiler.targets.cpu import Kernel
from compiler.targets.cpu.linked import Linked
from compiler.targets.cpu.perf import SymbolLabel, labelled
from compiler.targets.cpu.programs import load_linked
from compiler.types.machines import host


@dataclass(frozen=True)
class BuildRequest:
    """The input of a build. x: the caller's program. module: its verified module. name: of the function to build; None
    for the only one. constants: arrays by the names of inputs. words: more of the cache's key, such as the origin of
    schedules."""

    x: object
    module: ModuleOp
    name: str | None
    constants: Mapping[str, object] | None
    settings: BuildSettings
    words: Sequence[object] = ()


@dataclass(frozen=True)
class CachedElements:
    """A constant of a cached program. digest: of the constant of the source module with the same bytes; "" without one,
    and then `data` has the bytes."""

    name: str
    element: Attribute
    shape: tuple[int, ...]
    digest: str
    data: bytes | None


@dataclass(frozen=True)
class _Program:
    """The cached form of a program: its code, signature and constants by digest, but no arrays, and of the texts only
    their levels (`levels_before`: those of the preparation)."""

    signature: Signature | None
    stated_constants: tuple[CachedElements, ...]
    levels: tuple[str, ...]
    levels_before: tuple[str, ...]
    linked: Linked


@dataclass(frozen=True)
class CompiledProgram:
    """A compiled program that is not loaded.

    arrays: of its constants, by name. texts: by level. start: of the build, on perf_counter. cached: whether its code
    is from the cache. allocate: allocates the memory of the constants, by bytes. labels: the parts of the model by the
    names of groups, for perf.
    """

    linked: Linked
    arrays: Mapping[str, Array]
    texts: Texts
    start: float
    cached: bool = False
    allocate: Allocate = arena
    labels: Callable[[], Mapping[str, str]] = dict

    def load(self) -> Kernel:
        """Load the code and fill the constants. Raises TargetError if no library here has a function that the program
        calls, or if the system refuses tile registers."""
        texts = self.texts
        with labelled(self._symbol_labels):
            return load_linked(
                self.linked, self.arrays, texts.main, self.start, self.cached, self.allocate, texts.preparation
            )

    def _symbol_labels(self) -> dict[str, SymbolLabel]:
        """The labels by symbol: of main and of the units, of which `group_3.1` is `group_3` with other constants."""
        parts, main = self.labels(), self.linked.interface
        units = {interface.symbol: name for name, interface in self.linked.callees.items()}
        names = {main.symbol: main.name, **units}
        return {
            symbol: SymbolLabel(n, parts.get(n) or parts.get(n.partition(".")[0], "")) for symbol, n in names.items()
        }


def cached_program(request: BuildRequest, recipe: Callable[[], Recipe]) -> CompiledProgram:
    """The program of a request, from the cache, or by its recipe and then cached. The texts of a cached one are made by
    the recipe when first requested. Raises InputError for constants that are no inputs or that the program states,
    TargetError for those of another shape or dtype, and the ScheduleError, LoweringError or TargetError of a program
    that the recipe cannot compile."""
    start = request.settings.start
    with paused():
        words = request_words(request) if entries.is_enabled() else ()
    cached = entries.get(_Program, words)
    if cached is not None:
        constants = known_elements(cached.stated_constants, request.module)
        arrays = arrays_of(request, cached.signature, constants)
        groups = tuple(replace(g, seconds=0.0) for g in cached.linked.groups)
        linked = replace(cached.linked, groups=groups)
        return CompiledProgram(linked, arrays, _lazy_texts(cached, recipe), start, cached=True)
    fresh = recipe()
    arrays = arrays_of(request, fresh.signature, fresh.stated_constants)
    linked, texts = fresh.compiled(), fresh.texts()
    levels, elements = tuple(texts.main), cached_elements(fresh.stated_constants, request.module)
    program = _Program(fresh.signature, elements, levels, tuple(texts.preparation), linked)
    entries.put(program, words)
    return CompiledProgram(linked, arrays, texts, start, allocate=fresh.allocate)


def request_words(request: BuildRequest) -> Sequence[object]:
    """Return the key of a request: all dependencies of its machine code except the compiler. Names of values are listed
    beside the text, since printing renames values of equal names."""
    module, blocks = request.module, find_function(request.module, request.name).body.blocks
    ends = (block.last_op.operands if block.last_op is not None else () for block in blocks)
    return (
        [*map(str, module.ops), *(f"{name} {value}" for name, value in module.attributes.items())],
        [constant.digest for constant in constants_in(module)],
        [value.name_hint for value in chain(*(block.args for block in blocks), *ends)],
        [tensor.name for tensor in getattr(request.x, "inputs", ())] if request.constants else None,
        request.name,
        request.constants if request.constants is None else sorted(map(repr, request.constants)),
        replace(request.settings, start=0.0),
        host(),
        *request.words,
    )


def arrays_of(
    request: BuildRequest, signature: Signature | None, elements: Mapping[str, DenseAttr]
) -> dict[str, Array]:
    """The arrays of constants by name: the caller's and the program's for its arguments, checked, and those inside the
    program; none without a signature. Raises InputError for constants that are no inputs or in both, TargetError for
    those of another shape or dtype."""
    if signature is None:
        return {}
    inner = elements.keys() - {buffer.name for buffer in signature.arguments}
    arrays_by_name = merged_constants(renamed_constants(request.x, signature, request.constants or {}), elements)
    return checked_arrays(signature, arrays_by_name) | {name: array_of(elements[name].data) for name in inner}


def _lazy_texts(cached: _Program, recipe: Callable[[], Recipe]) -> Texts:
    """The texts of a cached program; the first one requested runs the recipe."""

    @cache
    def texts() -> Texts:
        return recipe().texts()

    def main(level: str) -> str:
        return text_of(texts().main[level])

    def before(level: str) -> str:
        return text_of(texts().preparation[level])

    return Texts({n: partial(main, n) for n in cached.levels}, {n: partial(before, n) for n in cached.levels_before})


def cached_elements(constants: Mapping[str, DenseAttr], module: ModuleOp) -> tuple[CachedElements, ...]:
    """Return constants in cached form: by digest if a constant of the source module has the same bytes, else with their
    bytes."""
    sources = list(constants_in(module))
    digests = {_memory(source): source.digest for source in sources} | {
        source.digest: source.digest for source in sources
    }

    def elements(name: str, constant: Dense) -> CachedElements:
        digest = digests.get(_memory(constant)) or digests.get(constant.digest, "")
        payload = None if digest else bytes(constant.data)
        return CachedElements(name, constant.type.element_type, constant.shape, digest, payload)

    return tuple(elements(name, value.data) for name, value in constants.items())


def _memory(constant: Dense) -> tuple[int, int]:
    """The address and the size of a constant's bytes; views of other shapes, such as canonical ones, share them."""
    return np.frombuffer(constant.data, np.uint8).ctypes.data, len(constant.data)


def known_elements(cached: Sequence[CachedElements], module: ModuleOp) -> dict[str, DenseAttr]:
    """Return constants by name, the inverse of `cached_elements`; the bytes of those with a digest are the source
    module's."""
    by_digest = {constant.digest: constant.data for constant in constants_in(module)}

    def dense(elements: CachedElements) -> DenseAttr:
        payload = by_digest[elements.digest] if elements.data is None else elements.data
        return DenseAttr(Dense(TensorType(elements.element, elements.shape), payload))

    return {elements.name: dense(elements) for elements in cached}
