"""`remembered`: a kernel from the cache, or one that is compiled and kept there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain

import numpy as np
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute

from compiler.dialects.dense import Dense, DenseAttr, constants_in
from compiler.dialects.functions import find_function
from compiler.dialects.numbers import Array, array_of
from compiler.driver.cache import entries
from compiler.driver.inputs import Face, all_constants, by_name, checked_arrays
from compiler.driver.main.linked import Linked, load_linked
from compiler.driver.nests import load_unit
from compiler.driver.recipe import Recipe, Texts
from compiler.driver.units.unit import BuildSettings, Unit
from compiler.support.gc import paused
from compiler.targets.arena import Allocate, arena
from compiler.targets.cpu import Kernel
from compiler.targets.cpu.facts import GroupFacts
from compiler.targets.cpu.kernel import Text
from compiler.types.machines import host


@dataclass(frozen=True)
class Request:
    """What is to be built: what the caller gave, its verified module, the function that is meant, arrays of constants,
    the settings, and further words that decide about the machine code, such as where schedules are from."""

    x: object
    module: ModuleOp
    name: str | None
    constants: Mapping[str, object] | None
    settings: BuildSettings
    words: Sequence[object] = ()


@dataclass(frozen=True)
class _Elements:
    """The elements of a constant of the program: the digest of the module's constant with the same bytes, or else the
    bytes."""

    name: str
    element: Attribute
    shape: tuple[int, ...]
    digest: str
    data: bytes | None


@dataclass(frozen=True)
class _Program:
    """What the cache keeps of a program: all that makes a kernel of it but arrays. It is of one unit or linked."""

    face: Face | None
    known: tuple[_Elements, ...]
    levels: tuple[str, ...]
    levels_before: tuple[str, ...]
    linked: Linked | None
    unit: Unit | None
    group: GroupFacts | None


def remembered(request: Request, recipe: Callable[[], Recipe]) -> Kernel:
    """The kernel of a request: from the cache, or else by its recipe, and then cached.

    Of a kernel from the cache texts are made by the recipe, when they are first asked for. Raises what that does, and
    InputError for arrays that are not those of its constants.
    """
    with paused():
        words = _words(request) if entries.kept() else ()
    kept = entries.get(_Program, words)
    if kept is not None:
        stated = _known(kept.known, request.module)
        arrays = _arrays(request, kept.face, stated)
        linked = kept.linked and replace(kept.linked, groups=tuple(replace(g, seconds=0.0) for g in kept.linked.groups))
        return _loaded(request, replace(kept, linked=linked), arrays, stated, _made_again(kept, recipe), True)
    made = recipe()
    arrays = _arrays(request, made.face, made.known)
    code, texts = made.compiled(), made.texts()
    linked, unit = (code, None) if isinstance(code, Linked) else (None, code)
    levels, elements = tuple(texts.main), _elements(made.known, request.module)
    program = _Program(made.face, elements, levels, tuple(texts.preparation), linked, unit, made.group)
    entries.put(program, words)
    return _loaded(request, program, arrays, made.known, texts, False, made.allocate)


def _loaded(
    request: Request,
    program: _Program,
    arrays: Mapping[str, Array],
    elements: Mapping[str, DenseAttr],
    texts: Texts,
    cached: bool,
    allocate: Allocate = arena,
) -> Kernel:
    start = request.settings.start
    if program.linked is not None:
        return load_linked(program.linked, arrays, texts.main, start, cached, allocate)
    assert program.unit is not None
    return load_unit(program.unit, program.face, arrays, elements, texts, program.group, start, cached)


def _words(request: Request) -> Sequence[object]:
    """All that the machine code depends on and that a process does not; names as the caller and the program have them,
    since text may number what is named alike."""
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


def _arrays(request: Request, face: Face | None, elements: Mapping[str, DenseAttr]) -> dict[str, Array]:
    """The constants by their names: arguments as arrays of their shapes and dtypes, and inner constants."""
    if face is None:
        return {}
    inner = elements.keys() - {buffer.name for buffer in face.arguments}
    given = all_constants(by_name(request.x, face, request.constants or {}), elements)
    return checked_arrays(face, given) | {name: array_of(elements[name].data) for name in inner}


def _made_again(kept: _Program, recipe: Callable[[], Recipe]) -> Texts:
    @cache
    def texts() -> Texts:
        return recipe().texts()

    def main(level: str) -> str:
        return _text(texts().main[level])

    def before(level: str) -> str:
        return _text(texts().preparation[level])

    return Texts({n: partial(main, n) for n in kept.levels}, {n: partial(before, n) for n in kept.levels_before})


def _text(text: Text) -> str:
    return text if isinstance(text, str) else text()


def _elements(stated: Mapping[str, DenseAttr], module: ModuleOp) -> tuple[_Elements, ...]:
    """The constants of a program; those with the same bytes as a constant of the source module are stored as its
    digest."""
    constants = list(constants_in(module))
    digests = {_place(constant): constant.digest for constant in constants} | {
        constant.digest: constant.digest for constant in constants
    }

    def elements(name: str, constant: Dense) -> _Elements:
        digest = digests.get(_place(constant)) or digests.get(constant.digest, "")
        payload = None if digest else bytes(constant.data)
        return _Elements(name, constant.type.element_type, constant.shape, digest, payload)

    return tuple(elements(name, value.data) for name, value in stated.items())


def _place(constant: Dense) -> tuple[int, int]:
    """The address and the size of elements: views of another shape, such as canonical ones, share them."""
    return np.frombuffer(constant.data, np.uint8).ctypes.data, len(constant.data)


def _known(kept: Sequence[_Elements], module: ModuleOp) -> dict[str, DenseAttr]:
    """The constants of a program by their names, with the bytes of the module's own."""
    by_digest = {constant.digest: constant.data for constant in constants_in(module)}

    def dense(elements: _Elements) -> DenseAttr:
        payload = by_digest[elements.digest] if elements.data is None else elements.data
        return DenseAttr(Dense(TensorType(elements.element, elements.shape), payload))

    return {elements.name: dense(elements) for elements in kept}
