"""online: compute the maximum and the sums of an online softmax in two passes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, prod
from typing import Any

from xdsl.dialects.builtin import Float32Type, Float64Type, FloatAttr

from compiler import te
from compiler.affine import linear as lin
from compiler.affine.linear import Linear
from compiler.alternatives.cost import gain
from compiler.alternatives.exponentials import Exponent, OrderCase, Sum, UnknownValueError
from compiler.alternatives.law import Conditions, Form, Law, LawScope, rounding_of_sums
from compiler.alternatives.splice import splice_function
from compiler.dialects.access import axis_attribute
from compiler.graph.normal_form import with_axes
from compiler.graph.tree import Compute, Graph
from compiler.program.body import Apply, Index, Read, Scalar, leaves, read, rewrite
from compiler.program.combiner import Joint
from compiler.program.names import Names
from compiler.program.tree import Access, Block, Buffer


def _forms(graph: Graph, conditions: Conditions) -> Iterator[Form]:
    """Compute the maximum first, then sums weighted by the exponentials of differences from it.

        %M, %S = te.compute "M" [i = 64, reduce k = 1024]
            combine (%m = -inf, %s = 0.0) with (%n, %t) { max(%m, %n), %s * exp(%m - max) + %t * exp(%n - max) }
            (%x = %X[i, k] ...) { %x, 1.0 }
      ->
        %M = te.compute "M" [i = 64, reduce k = 1024] combine [max] (%x = %X[i, k] ...) { %x }
        %S = te.compute "S" [i = 64, reduce k = 1024] combine [add] (%x = %X[i, k] ..., %m = %M[i] ...) { exp(%x - %m) }

    The combiner may have several weighted sums, as in attention, in any spelling: it is evaluated symbolically where
    either maximum is greater, and where they are equal. It applies to f32 and f64, not under `strict`.

    Rounding: a term is rounded once for each time that the sum is scaled, and for each addition: 2 N times, here N + 1.
    NaN gives NaN in both forms. Infinities are as in one of the orders in which the combiner may be applied; but
    inf - inf is NaN. A combiner that does not scale the sum of the greater maximum has no such NaN: then the power of
    an element equal to the maximum is 1, without a difference.
    Source: Milakov and Gimelshein, Online normalizer calculation for softmax, 2018.
    """
    for node in graph.nodes:
        online = _online(node) if conditions.policy != "strict" else None
        if online is not None:
            new = _in_two_passes(graph, online)
            unit = 2.0 ** -(24 if isinstance(online.compute.results[0].element, Float32Type) else 53)
            count = prod(axis.size for axis in online.compute.block.axes[online.compute.block.spatial :])
            where = f"{online.compute.block.label} is a maximum, and then sums"
            bounds = rounding_of_sums([count + 1], unit), rounding_of_sums([2 * count], unit)
            yield Form(new, gain(graph, new, conditions), *bounds, where=where)


@dataclass(frozen=True)
class Online:
    """A joint reduction to a maximum, the result at position `maximum`, and to sums. `scales`: whether the combiner
    multiplies the sum of the greater maximum by exp(m - m), which is NaN for an infinite m."""

    compute: Compute
    maximum: int
    scales: bool


def _online(node: object) -> Online | None:
    """Match a node as an online softmax; None for any other node."""
    if not isinstance(node, Compute) or node.block.table is not None:
        return None
    first, count = next(iter(node.block.combiners), None), len(node.results)
    if not isinstance(first, Joint) or not isinstance(node.results[0].element, Float32Type | Float64Type):
        return None
    identities = [each.value.data for each in first.identities if isinstance(each, FloatAttr)]
    position = identities.index(-inf) if -inf in identities else 0
    if count < 2 or identities != [-inf if n == position else 0.0 for n in range(count)]:
        return None
    if _stated(node.block.body[position]) is not None:
        return None
    cases = [OrderCase(position, position + count, order) for order in (1, -1, 0, None)]
    try:
        agree = all(_agrees(case, first, position, count) for case in cases)
    except UnknownValueError:
        return None
    return Online(node, position, any(case.cancels for case in cases[:2])) if agree else None


def _agrees(case: OrderCase, combiner: Joint, position: int, count: int) -> bool:
    """Whether a combiner of `count` results equals that of an online softmax with its maximum at `position` in one case
    of the order of the maxima, or yields NaN in the case of NaN. Raises UnknownValueError if it cannot be evaluated."""
    values = [case.value(value) for value in combiner.body]
    if case.order is None:
        sums = (value for n, value in enumerate(values) if n != position)
        return case.cancels or all(any(power for _, power in value) for value in sums)
    accumulated, added = position, position + count
    greater = accumulated if case.order >= 0 else added
    power: Exponent = () if case.order == 0 else ((accumulated, -case.order), (added, case.order))
    for n, value in enumerate(values):
        kept_term, scaled_term = (n, n + count) if case.order >= 0 else (n + count, n)
        expected: Sum = (
            {((kept_term,), ()): 1.0, ((scaled_term,), power): 1.0} if n != position else case.variable(greater)
        )
        if value != expected:
            return False
    return True


def _in_two_passes(graph: Graph, online: Online) -> Graph:
    """Replace an online softmax in a graph by a maximum, and sums that read it."""
    compute, block = online.compute, online.compute.block
    names = Names([*graph.values, *(node.block.label for node in graph.nodes if isinstance(node, Compute))])
    written: list[Compute] = []
    elements: list[_Elements] = []
    for number, value in enumerate(block.body):
        literal, axes = _stated(value), _moved(value, block)
        tensor = None
        if literal is None:
            written.append(_elementwise(compute, number, axes, names.fresh(f"{block.label}.{number}")))
            buffer = written[-1].results[0]
            dtype = "f64" if isinstance(buffer.element, Float64Type) else "f32"
            tensor = te.placeholder(buffer.shape, dtype, name=buffer.name)
        elements.append(_Elements(axes, tensor, literal or 0.0))
    position = graph.nodes.index(compute)
    widened = graph.with_nodes([*graph.nodes[:position], *written, *graph.nodes[position:]])
    inputs = [each.tensor for each in elements if each.tensor is not None]
    return splice_function(widened, compute, te.function("form", inputs, _passes(online, elements)))


def _stated(value: Scalar) -> float | None:
    """The number of a float literal; None for any other value."""
    literal = dict(value.properties).get("value") if isinstance(value, Apply) and not value.operands else None
    return literal.value.data if isinstance(literal, FloatAttr) else None


def _moved(value: Scalar, block: Block) -> list[int]:
    """The spatial axes that a value of a block depends on, and all reduce axes."""
    used = leaves([value])
    forms = [form for leaf in used if isinstance(leaf, Read) for form in _forms_of(block.reads[leaf.position])]
    axes = {leaf.axis for leaf in used if isinstance(leaf, Index)}.union(*(form.variables() for form in forms))
    return sorted({*(n for n in axes if n < block.spatial), *range(block.spatial, len(block.axes))})


def _forms_of(access: Access) -> list[Linear]:
    return [*access.index, *(condition.form for condition in access.where)]


def _elementwise(compute: Compute, number: int, axes: Sequence[int], name: str) -> Compute:
    """A separate elementwise compute `name` over `axes` for the elements that a reduction reduces to result
    `number`."""
    block = compute.block
    used = sorted({leaf.position for leaf in leaves([block.body[number]]) if isinstance(leaf, Read)})
    value = rewrite(block.body[number], {n: read(position, block.read_types[n]) for position, n in enumerate(used)})
    reads, types = tuple(block.reads[n] for n in used), tuple(block.read_types[n] for n in used)
    new = replace(block, label=name, reads=reads, read_types=types, body=(value,), combiners=())
    spatial = [axis_attribute(block.axes[n].label, block.axes[n].size) for n in axes]
    new = with_axes(new, spatial, {n: lin.variable(position) for position, n in enumerate(axes)})
    return Compute(new, (Buffer(name, tuple(axis.size for axis in spatial), compute.results[number].element),))


@dataclass(frozen=True)
class _Elements:
    """The elements that are reduced to a result: a tensor indexed by `axes` of the compute, or a literal if None."""

    axes: Sequence[int]
    tensor: te.Tensor | None
    literal: float = 0.0

    def at(self, index: Mapping[int, Any]) -> Any:
        """The element at `index`, which maps axes of the compute to values."""
        return self.literal if self.tensor is None else self.tensor[tuple(index[n] for n in self.axes)]


def _passes(online: Online, elements: Sequence[_Elements]) -> list[te.Tensor]:
    """The results of an online softmax as te: the maximum, and sums of elements times exp(x - maximum)."""
    block = online.compute.block
    sizes, x = [axis.size for axis in block.axes], elements[online.maximum]
    rows = [n for n in x.axes if n < block.spatial]
    top = _Elements(rows, _reduced(rows, block, te.max, x.at, "top"))

    def raised(index: Mapping[int, Any]) -> Any:
        element, greatest = x.at(index), top.at(index)
        power = te.exp(element - greatest)
        return power if online.scales else te.select(te.equal(element, greatest), 1.0, power)

    power, sums = raised, [n for n in range(len(elements)) if n != online.maximum]
    if any(elements[n].tensor is not None for n in sums):
        shape = [sizes[n] for n in x.axes]
        power = _Elements(x.axes, te.compute(shape, lambda *i: raised(dict(zip(x.axes, i, strict=True))), "power")).at
    totals = {online.maximum: top}
    for number in sums:
        weight = elements[number]
        axes = sorted({*rows, *(n for n in weight.axes if n < block.spatial)})

        def term(index: Mapping[int, Any], weight: _Elements = weight) -> Any:
            return power(index) if weight.tensor is None and weight.literal == 1.0 else weight.at(index) * power(index)

        totals[number] = _Elements(axes, _reduced(axes, block, te.sum, term, f"sum{number}"))
    shape = sizes[: block.spatial]
    return [te.compute(shape, lambda *i, n=n: totals[n].at(dict(enumerate(i))), f"y{n}") for n in sorted(totals)]


def _reduced(axes: Sequence[int], block: Block, combine: Any, element: Any, name: str) -> te.Tensor:
    """Reduce `element`, a function of an index, by `combine`, such as te.sum, along all reduce axes of a block, into a
    tensor over the spatial `axes`."""
    along = {n: te.reduce_axis(block.axes[n].size, f"r{n}") for n in range(block.spatial, len(block.axes))}

    def reduction(*i: Any) -> Any:
        return combine(element({**dict(zip(axes, i, strict=True)), **along}), axis=list(along.values()))

    tensor: te.Tensor = te.compute([block.axes[n].size for n in axes], reduction, name)
    return tensor


ONLINE = Law("online", LawScope.PROGRAM, _forms)
