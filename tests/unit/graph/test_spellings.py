"""Laws that give equal programs one text: random places for each, bit for bit, and the list of equal programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import VerifyException

from benchmarks.equal_programs import FAMILIES, Law, Pair, pairs
from benchmarks.equal_programs.__main__ import common_text, error
from compiler.affine import linear as lin
from compiler.dialects.dominance import verify_module
from compiler.dialects.functions import functions
from compiler.fuzz.programs import arrays_for
from compiler.graph import simplification
from compiler.graph.canonical import canonical
from compiler.graph.laws import common_values, computed_views, images, literals, parts, permutations, reductions, splits
from compiler.graph.read import read
from compiler.graph.tree import Graph
from compiler.graph.write import write
from compiler.interpret.te import evaluate
from compiler.support.errors import StrataError
from tests import random_spellings
from tests.bitwise import results, same_bits
from tests.planted import Plant, assert_seen, in_place_of
from tests.random_spellings import KINDS, spelled
from tests.sample import some

SEEDS = 300 * len(KINDS)


def shows_fault(seed: int) -> bool:
    """Whether the canonical form of a random program is not what the program is, or has another one."""
    function = spelled(seed)
    arrays = arrays_for(function, seed)
    for array in arrays:
        array.reshape(-1)[seed % 3 :: 3] = (-0.0, np.inf, -0.0)[seed // len(KINDS) % 3]
    try:
        graph = canonical(read(functions(function.module)[0])).graph
        module = ModuleOp([write(graph)])
        verify_module(module)
        if str(write(canonical(graph).graph)) != str(write(graph)):
            return True
        return not all(map(same_bits, results(function.module, arrays), results(module, arrays)))
    except (StrataError, VerifyException, AssertionError, IndexError, KeyError, ValueError):
        return True


@pytest.mark.parametrize("seed", some(range(9 * len(KINDS)), 2))
def test_results_stay_bit_for_bit(seed: int) -> None:
    assert not shows_fault(seed)


TRIED = (
    "compute_parts",
    "split_axes",
    "compute_views",
    "straighten",
    "merge_reduce_axes",
    "turn_reduce_axes",
    "name_unit_axes",
    "simplify_arithmetic",
    "share_powers",
)
"""The laws that these programs have places for."""


def test_random_programs_have_places_for_each_law(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = Counter[str]()

    def counted(law: Callable[[Graph], Graph]) -> Callable[[Graph], Graph]:
        def rewrite(graph: Graph) -> Graph:
            new = law(graph)
            taken[law.__name__] += new is not graph
            return new

        return rewrite

    monkeypatch.setattr(simplification, "LAWS", tuple(map(counted, simplification.LAWS)))
    for seed in range(6 * len(KINDS)):
        canonical(read(functions(spelled(seed).module)[0]))
    assert all(taken[law] >= 2 for law in TRIED), taken


@in_place_of(splits, "through")
def condition_lost(right: Any, access: Any, view: Any, block: Any) -> Any:
    """splits: the padding of the source is not read"""
    return right(access, replace(view, access=replace(view.access, where=(), otherwise=None)), block)


def axis_too_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """reductions: the last element of two axes is left out"""
    right = reductions.axis_attribute
    monkeypatch.setattr(reductions, "axis_attribute", lambda label, size, reduce: right(label, size - 1, reduce))


@in_place_of(reductions, "_turned")
def turned_in_one_read(right: Any, block: Any) -> Any:
    """reductions: an axis is turned round in the first read only"""
    new = right(block)
    return new if new is block else replace(new, reads=(new.reads[0], *block.reads[1:]))


@in_place_of(computed_views, "_at_view")
def source_kept_by_others(right: Any, source: Any, view: Any, access: Any) -> Any:
    """computed views: the elements of a view stay where its source has them"""
    index = tuple(lin.variable(min(f.variables())) if f.variables() else f for f in access.index)
    return right(source, view, replace(access, index=index))


@in_place_of(permutations, "_reading")
def order_of_readers_ignored(right: Any, node: Any, orders: Any) -> Any:
    """permutations: readers that are no products keep the order of the former layout"""
    return right(node, orders) if permutations.is_plain_product(node.block) else node


@in_place_of(parts, "_reading")
def windows_overlap(right: Any, node: Any, known: Any) -> Any:
    """parts: each reader reads the part from its first element"""
    shifted = {name: replace(cut, dimension=0) for name, cut in known.items()}
    return right(node, shifted)


def zero_is_neutral(monkeypatch: pytest.MonkeyPatch) -> None:
    """literals: the sign of a zero does not count"""
    monkeypatch.setattr(literals, "_is", lambda value, wanted: literals._float(value) == wanted)


def third_has_a_reciprocal(monkeypatch: pytest.MonkeyPatch) -> None:
    """literals: a division by any literal is a product"""
    monkeypatch.setattr(literals, "frexp", lambda value: (0.5, 0))


@in_place_of(common_values, "_use")
def power_of_another(right: Any, node: Any, value: Any) -> Any:
    """common values: which value a function is of does not count"""
    use = right(node, value)
    return use and replace(use, key=use.key[0])


@in_place_of(images, "_with_taps")
def tap_of_another(right: Any, block: Any, graph: Graph) -> Any:
    """images: channels are read along the filters"""
    new = right(block, graph)
    weights = replace(new.reads[0], index=(new.reads[0].index[1], new.reads[0].index[0], *new.reads[0].index[2:]))
    return new if new is block else replace(new, reads=(weights, *new.reads[1:]))


FAULTS: dict[Plant, Callable[..., Any]] = {
    condition_lost: random_spellings.columns,
    axis_too_short: random_spellings.digits,
    turned_in_one_read: random_spellings.backwards,
    source_kept_by_others: random_spellings.viewed,
    order_of_readers_ignored: random_spellings.soft_columns,
    windows_overlap: random_spellings.joined,
    zero_is_neutral: random_spellings.arithmetic,
    third_has_a_reciprocal: random_spellings.arithmetic,
    power_of_another: random_spellings.powers_twice,
    tap_of_another: random_spellings.pointwise,
}
"""The programs that show each fault."""


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_planted_fault_is_seen(fault: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = range(KINDS.index(FAULTS[fault]), SEEDS, len(KINDS))
    assert_seen(fault, monkeypatch, shows_fault, seeds)


TEXTS = {Law.EXACT: "canonical", Law.CHOICE: "choice"}


@pytest.mark.sampled
@pytest.mark.parametrize("pair", list(pairs(FAMILIES)), ids=lambda pair: f"{pair.family.name}: {pair.name}")
def test_equal_programs_have_one_text_and_others_do_not(pair: Pair) -> None:
    """Small shapes in the interpreter, beside numpy; where they only look equal, results differ."""
    family, other = pair.family, pair.other
    made = pair.functions(family.small)
    assert common_text(made, family.policy) == TEXTS.get(other.law, "none")
    arrays = family.arrays(family.small, other.scale, other.shift)
    with np.errstate(all="ignore"):
        wanted = family.value(*arrays)
        first, second = (tuple(evaluate(function.module, arrays)) for function in made)
        assert error(first, wanted) < 1e-5
        assert error(second, wanted) > 1e-4 if other.law is Law.NONE else error(second, wanted) < 1e-5
