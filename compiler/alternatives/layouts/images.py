"""Convolutions of a graph, and the sets of images that share a layout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from compiler.affine.linear import Linear, Quotient
from compiler.graph.grouping import Kind
from compiler.graph.grouping.facts import kind_of
from compiler.graph.tree import Compute, Graph, Node
from compiler.program.tree import Access, Block
from compiler.types.dtypes import TYPES


@dataclass(frozen=True)
class ImageConvolution:
    """A convolution Y[n, k, h, w] of X[n, c, h*S + r, w*S + q] and W[k, c, r, q] along one to three dimensions, or a
    transposed convolution. node: its compute. image: the read of X."""

    node: Compute
    image: Access

    @property
    def is_depthwise(self) -> bool:
        """Whether filter k reads only the channel k."""
        return 1 in self.image.index[1].variables() and not self.is_grouped

    @property
    def is_grouped(self) -> bool:
        """Whether each filter reads a group of the channels: the channel index has a quotient of the filter."""
        return _is_divided(self.image.index[1])

    @property
    def is_transposed(self) -> bool:
        """Whether an index along the image is divided by a stride, as in a transposed convolution."""
        return any(map(_is_divided, self.image.index[2:]))

    @property
    def taps(self) -> int:
        """The number of taps of a filter, along all dimensions."""
        return prod(axis.size for axis in self.node.block.axes[self.node.block.spatial + 1 :])

    @property
    def is_strided(self) -> bool:
        """Whether the stride along the last dimension of the image is not 1."""
        return self.image.index[-1].coefficient(self.node.block.spatial - 1) != 1


def image_convolution(node: object) -> ImageConvolution | None:
    """Match a compute as a convolution in the layout of te.nn, channels second; None for any other compute."""
    if not isinstance(node, Compute) or kind_of(node.block) is not Kind.CONTRACTION:
        return None
    block = node.block
    rank = block.spatial
    if rank < 3 or len(block.axes) != 2 * rank - 1 or len(block.reads) != 2:
        return None
    images = [access for access in block.reads if _is_image(access, rank)]
    weights = next((access for access in block.reads if access not in images), None)
    if len(images) != 1 or weights is None or 0 in set().union(*(form.variables() for form in weights.index)):
        return None
    return ImageConvolution(node, images[0])


def _is_image(access: Access, rank: int) -> bool:
    """Whether a read is a convolution's image: [n, channels, ...], with a form over an axis of the result and its tap
    in each further dimension."""
    moved = [form.variables() for form in access.index]
    along = all(d in axes and axes <= {d, rank + d - 1} for d, axes in enumerate(moved[2:], 2))
    return len(moved) == rank and along and moved[0] <= {0} and bool(moved[1]) and moved[1] <= {1, rank}


def _is_divided(form: Linear) -> bool:
    return any(isinstance(atom, Quotient) for atom, _ in form.terms)


def layout_sets(graph: Graph) -> list[frozenset[str]]:
    """Sets of values that have to share a layout: the result of an elementwise compute or a window, and the values that
    it reads at the indices of its result.

    Only sets with the result of a convolution are returned, and only if each member is a computed image of several
    pixels and channels.
    """
    parents: dict[str, str] = {}

    def root(name: str) -> str:
        while parents.setdefault(name, name) != name:
            name = parents[name]
        return name

    for node in graph.nodes:
        for name in _alike(node, graph):
            parents[root(name)] = root(node.results[0].name)
    sets: dict[str, set[str]] = {}
    for name in graph.values:
        sets.setdefault(root(name), set()).add(name)
    convolved = {node.results[0].name for node in graph.nodes if image_convolution(node) is not None}
    with_convolutions = (members for members in sets.values() if members & convolved)
    return [frozenset(members) for members in with_convolutions if all(_is_movable(name, graph) for name in members)]


def _is_movable(name: str, graph: Graph) -> bool:
    """Whether a value may be stored channels last: a float image of several pixels and channels, the only result of a
    compute, read only by computes that take either layout."""
    node, value = graph.producers.get(name), graph.values[name]
    is_computed = isinstance(node, Compute) and len(node.results) == 1 and node.block.table is None
    is_image = len(value.shape) > 2 and value.shape[1] > 1 and prod(value.shape[2:]) > 1
    is_float = value.element in (TYPES["f32"], TYPES["f64"])
    return is_computed and is_image and is_float and all(_reads_anyhow(node, name) for node in graph.consumers[name])


def _reads_anyhow(node: Node, name: str) -> bool:
    """Whether a node may read a value in either layout: a convolution, or a compute that is no contraction and does not
    gather from the value."""
    if not isinstance(node, Compute) or (node.block.table is not None and node.block.table.buffer == name):
        return False
    return kind_of(node.block) is not Kind.CONTRACTION or image_convolution(node) is not None


def _alike(node: object, graph: Graph) -> Iterator[str]:
    """The images that an elementwise compute or a window reads at the indices of its result; none for other nodes."""
    if not isinstance(node, Compute) or kind_of(node.block) not in (Kind.ELEMENTWISE, Kind.WINDOW):
        return
    for access in node.block.reads:
        shape = graph.values[access.buffer].shape
        if len(shape) == len(node.results[0].shape) > 2 and prod(shape[2:]) > 1 and _follows(access, node.block):
            yield access.buffer


def _follows(access: Access, block: Block) -> bool:
    moved: Sequence[set[int]] = [form.variables() & set(range(block.spatial)) for form in access.index]
    return len(moved) == block.spatial and all(axes <= {d} for d, axes in enumerate(moved))
