"""Structural digests of affine forms, accesses, bodies and computes, independent of names.

The caller assigns colours to sources and axes: digests that are equal for values that it does not distinguish.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute

from compiler.affine.condition import Condition
from compiler.affine.linear import Linear
from compiler.dialects.dense_elements import Dense
from compiler.program import body
from compiler.program.body import Apply, Index, Read, Scalar
from compiler.program.combiner import Combiner, Joint
from compiler.program.tree import Access, Block, Buffer

Colours = Mapping[str, bytes]
"""Map the name of each value to its colour."""

_COMMUTATIVE = frozenset(
    (
        "arith.addi",
        "arith.muli",
        "arith.andi",
        "arith.ori",
        "arith.xori",
        "arith.minsi",
        "arith.maxsi",
        "arith.minui",
        "arith.maxui",
        "arith.addf",
        "arith.mulf",
        "arith.maximumf",
        "arith.minimumf",
        "arith.addui_extended",
        "arith.mulsi_extended",
        "arith.mului_extended",
        "math.fma",
    )
)
"""The operations whose first two operands may be swapped."""

_SWAPPED = {
    "arith.cmpi": (0, 1, 4, 5, 2, 3, 8, 9, 6, 7),
    "arith.cmpf": (0, 1, 4, 5, 2, 3, 6, 7, 8, 11, 12, 9, 10, 13, 14, 15),
}
"""Map the number of a comparison's predicate to the predicate for swapped operands: `a < b` is `b > a`."""


SAMPLE, SAMPLES = 64, 256
"""The bytes of a sample of a constant, and about the number of samples at equal distances; the first and the last bytes
are two further samples."""


def digest(*parts: object) -> bytes:
    """The 16-byte digest of numbers, strings, digests, and tuples or lists of them."""
    return blake2b(repr(parts).encode(), digest_size=16).digest()


@lru_cache(maxsize=8192)
def text_of(attribute: Attribute) -> str:
    """The printed form of an attribute; it determines the attribute."""
    return str(attribute)


def constant_digest(constant: Dense) -> bytes:
    """The digest of a constant's type and of all its bytes, which are read once."""
    return digest("constant", text_of(constant.type), constant.digest)


def sample_digest(constant: Dense) -> bytes:
    """The digest of a constant's type and of samples of its bytes. Constants of different digests differ; those of
    equal digests may differ too."""
    content, size = constant.data, len(constant.data)
    samples = [content[:SAMPLE], content[size - SAMPLE :]] if size > SAMPLE else [content]
    step = max(SAMPLE, size // SAMPLES)
    samples += [content[start : start + SAMPLE] for start in range(0, size, step)]
    return digest("sample", text_of(constant.type), b"".join(samples))


class NameColours(dict[str, bytes]):
    """Colours that distinguish all values: each is the digest of the value's name, made at the first look-up."""

    def __missing__(self, name: str) -> bytes:
        colour = self[name] = digest(name)
        return colour


@lru_cache(maxsize=4096)
def axis_colour(size: int, is_reduce: bool, place: object) -> bytes:
    """Return the colour of an axis of `size` iterations, spatial or reduce. `place`: its position in the canonical
    order of the axes, "" before it is ordered."""
    return digest("axis", size, is_reduce, place)


def input_colour(value: Buffer, position: object) -> bytes:
    """The colour of an input: the digest of its type and `position`, a constant if the order of inputs is free."""
    return digest("input", text_of(value.element), value.shape, position)


def swapped(node: Apply) -> Scalar | None:
    """The equal operation with its first two operands swapped; None if a swap changes the value.

    NaN payloads are ignored. `maxnumf` and `minnumf` are not commutative: of zeros of both signs they return either.
    """
    properties, name = dict(node.properties), node.kind.name
    if name in _SWAPPED:
        predicate = properties["predicate"]
        assert isinstance(predicate, IntegerAttr)
        properties["predicate"] = IntegerAttr(_SWAPPED[name][predicate.value.data], predicate.type)
    elif name not in _COMMUTATIVE:
        return None
    first, second, *later = node.operands
    return body.apply(node.kind, (second, first, *later), properties, node.types, node.result)


@dataclass
class Digests:
    """Digests of the forms, accesses and scalars of one compute, whose accesses are `reads`, from the colours of its
    operands, `sources`, and of its axes, the first `spatial` of which are spatial."""

    reads: Sequence[Access]
    sources: Colours
    axes: Sequence[bytes]
    spatial: int = 0
    _scalars: dict[int, bytes] = field(default_factory=dict)
    _moved: dict[int, frozenset[int]] = field(default_factory=dict)

    def form(self, form: Linear) -> bytes:
        """The digest of an affine form over axes, independent of the order of its terms."""
        terms = []
        for atom, factor in form.terms:
            if isinstance(atom, int):
                terms.append((self.axes[atom], factor))
            else:
                terms.append((digest("quotient", self.form(atom.form), atom.divisor, atom.is_mod), factor))
        return digest("form", form.constant, sorted(terms))

    def condition(self, condition: Condition) -> bytes:
        """The digest of a condition."""
        return digest("condition", self.form(condition.form), condition.equal)

    def access(self, access: Access) -> bytes:
        """The digest of a read, independent of the order of its conditions."""
        where = sorted(map(self.condition, access.where))
        otherwise = "" if access.otherwise is None else text_of(access.otherwise)
        return digest("read", self.sources[access.buffer], list(map(self.form, access.index)), where, otherwise)

    def scalar(self, node: Scalar) -> bytes:
        """The digest of an expression, independent of the order of commutative operands."""
        digest = self._scalars.get(id(node))
        if digest is None:
            digest = self._scalars[id(node)] = self._scalar(node)
        return digest

    def _scalar(self, node: Scalar) -> bytes:
        match node:
            case Read(position, type):
                if position < len(self.reads):
                    return digest("value", self.access(self.reads[position]), text_of(type))
                return digest("argument", position, text_of(type))
            case Index(axis):
                return digest("index", self.axes[axis])
        node = self.ordered(node)
        operands = [self.scalar(operand) for operand in node.operands]
        properties = [(name, text_of(value)) for name, value in node.properties]
        return digest(node.kind.name, operands, properties, list(map(text_of, node.types)), node.result)

    def ordered(self, node: Apply) -> Apply:
        """The operation with its first two operands in canonical order, if they may be swapped; else as it is.

        Operands that depend on spatial axes come first, in the order of the axes: the rows of a product before its
        columns. Operands that depend on no spatial axis follow, then literals. Digests break ties.
        """
        if node.kind.name not in _COMMUTATIVE and node.kind.name not in _SWAPPED:
            return node
        order = self._compared(*node.operands[:2])
        reverse = swapped(node) if order >= 0 else None
        if not isinstance(reverse, Apply) or (order == 0 and str(node.properties) <= str(reverse.properties)):
            return node
        return reverse

    def _compared(self, first: Scalar, second: Scalar) -> int:
        """Negative if the first operand precedes the second in canonical order, positive if it follows, else 0. Digests
        are compared last: they are slow."""
        ranks = self._rank(first), self._rank(second)
        if ranks[0] != ranks[1]:
            return -1 if ranks[0] < ranks[1] else 1
        digests = self.scalar(first), self.scalar(second)
        return (digests[0] > digests[1]) - (digests[0] < digests[1])

    def _rank(self, node: Scalar) -> tuple[bool, bool, list[int]]:
        moved = sorted(self._moved_by(node))
        return isinstance(node, Apply) and not node.operands, not moved, moved

    def _moved_by(self, node: Scalar) -> frozenset[int]:
        """Return the spatial axes on which the value of an expression depends."""
        moving_axes = self._moved.get(id(node))
        if moving_axes is None:
            axes: set[int] = set()
            match node:
                case Read(position) if position < len(self.reads):
                    access = self.reads[position]
                    forms = (*access.index, *(condition.form for condition in access.where))
                    axes.update(*(form.variables() for form in forms))
                case Index(axis):
                    axes.add(axis)
                case Apply(operands=operands):
                    axes.update(*map(self._moved_by, operands))
            moving_axes = self._moved[id(node)] = frozenset(axis for axis in axes if axis < self.spatial)
        return moving_axes


def compute_digest(block: Block, elements: Iterable[Attribute], sources: Colours, axes: Sequence[bytes]) -> bytes:
    """Return the digest of a compute or gather. elements: the dtypes of its results; sources: the colours of the values
    that it reads; axes: the colours of its axes."""
    digests = Digests(block.reads, sources, axes, block.spatial)
    return digest(
        "gather" if block.table is not None else "compute",
        [(axis.size, axis.is_reduce) for axis in block.axes[: block.spatial]],
        sorted((axes[n], axis.size) for n, axis in enumerate(block.axes) if axis.is_reduce),
        list(map(digests.scalar, block.body)) if block.table is None else _gather(block, digests),
        [_combiner(combiner) for combiner in block.combiners],
        list(map(text_of, elements)),
        [(name, text_of(value)) for name, value in block.attributes],
    )


def _gather(block: Block, digests: Digests) -> list[object]:
    table = block.table
    assert table is not None
    index = [digests.access(block.reads[d]) if isinstance(d, int) else digests.form(d) for d in table.index]
    return [digests.sources[table.buffer], index, text_of(table.otherwise)]


@lru_cache(maxsize=1024)
def _combiner(combiner: Combiner) -> bytes:
    if not isinstance(combiner, Joint):
        return digest(combiner)
    digests = Digests((), {}, ())
    return digest(list(map(text_of, combiner.identities)), list(map(digests.scalar, combiner.body)), combiner.part)
