"""Composites, loops of a known number of iterations, branches."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import SymbolRefAttr

from compiler.dialects.upstream.stablehlo.attributes import word
from compiler.lowering.stablehlo_to_te.call import HloCall
from compiler.lowering.stablehlo_to_te.operators.elementwise import pointwise
from compiler.lowering.stablehlo_to_te.scalars import FUNCTIONS
from compiler.lowering.stablehlo_to_te.table import HANDLERS, HloResults, handles
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr
from compiler.te.index import Index
from compiler.te.tensor import Tensor

MAX_TRIPS = 1024
"""The most iterations of a loop that is unrolled."""


@handles("composite")
def _composite(call: HloCall) -> HloResults:
    """Return the results of a composite: by the te function of its name if there is one, else its decomposition,
    inlined."""
    name = word(call.attribute("name"))
    if name in FUNCTIONS:
        return pointwise(call, lambda operands: FUNCTIONS[name](*operands))
    if name == "chlo.top_k":
        return HANDLERS[name](call)
    return call.conversion.call(call.op, _decomposition(call), call.operands)


def _decomposition(call: HloCall) -> str:
    """Return the name of the function that decomposes a composite. Raises LoweringError without one."""
    symbol = call.attribute("decomposition")
    if not isinstance(symbol, SymbolRefAttr):
        raise call.refused("has no decomposition")
    return str(symbol.string_value())


@handles("while")
def _while(call: HloCall) -> Sequence[Tensor]:
    """Unroll a loop whose condition is known in each iteration; return its final state. Raises LoweringError for a
    condition that depends on inputs, for more than MAX_TRIPS iterations, and for an unsupported op in a region."""
    condition, body = (region.block for region in call.op.regions)
    state = list(call.operands)
    for _ in range(MAX_TRIPS + 1):
        (holds,) = call.conversion.run(condition, state, call.scope)
        array = call.array(holds)
        if array is None:
            raise call.refused("runs as often as data decide: loops of a known number of iterations are unrolled")
        if not bool(array):
            return state
        state = call.conversion.run(body, state, call.scope)
    raise call.refused(f"runs more than {MAX_TRIPS} times: unrolled, it would be too large")


@handles("case", "if")
def _branch(call: HloCall) -> Sequence[Tensor]:
    """Return the results of the branch that a known index selects. An i1 selects the first branch if it is true. A
    known index out of range selects the last branch. Of an unknown index, convert all branches, and select between
    their results element by element."""
    selector = call.operands[0]
    blocks = [region.block for region in call.op.regions]
    array, last = call.array(selector), len(blocks) - 1
    if array is not None:
        number = int(array)
        taken = (0 if number else 1) if selector.dtype == "i1" else number if 0 <= number < last else last
        return call.conversion.run(blocks[taken], [], call.scope)
    results = [call.conversion.run(block, [], call.scope) for block in blocks]
    if selector.dtype == "i1":
        return [_chosen(call, selector, *pair) for pair in zip(*results, strict=True)]
    return [_by_number(call, selector, parts) for parts in zip(*results, strict=True)]


def _chosen(call: HloCall, condition: Tensor, then: Tensor, otherwise: Tensor) -> Tensor:
    return compute(then.shape, lambda *i: e.select(condition[()], call.at(then, *i), call.at(otherwise, *i)), call.name)


def _by_number(call: HloCall, selector: Tensor, parts: Sequence[Tensor]) -> Tensor:
    """Return the tensor of `parts` at the position that `selector` has at run time; the last one for positions out of
    range."""

    def element(*i: Index) -> Expr:
        value = call.at(parts[-1], *i)
        for number, part in reversed([*enumerate(parts[:-1])]):
            value = e.select(e.equal(selector[()], number), call.at(part, *i), value)
        return value

    return compute(parts[0].shape, element, call.name)
