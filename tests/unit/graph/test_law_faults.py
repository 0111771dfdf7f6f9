"""Faults planted into the laws of graphs: random programs must show each of them."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from xdsl.utils.exceptions import VerifyException

from compiler.dialects.dominance import verify_module
from compiler.fuzz.programs import arrays_for, program
from compiler.graph import hashing
from compiler.graph.canonical import canonicalize
from compiler.graph.laws import concatenations, dead_nodes, equal_nodes, extents, identities, views
from compiler.graph.tree import Compute
from compiler.program.body import Read
from compiler.support.errors import StrataError
from tests.bitwise import results, same_bits
from tests.planted import Plant, assert_seen, in_place_of

SEEDS = 200


@in_place_of(dead_nodes, "_needed_part")
def results_mixed_up(right: Any, node: Any, needed: Any) -> Any:
    """dead: a compute that loses a result keeps the wrong body"""
    part = right(node, needed)
    return (
        part if part is node else Compute(replace(part.block, body=node.block.body[-len(part.results) :]), part.results)
    )


def negative_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """extents: the sum of -0.0 alone is -0.0"""
    monkeypatch.setattr(extents, "_single", lambda block: replace(block, combiners=()))


@in_place_of(extents, "_without")
def dimension_of_another(right: Any, node: Any, free: Any, shapes: Any) -> Any:
    """extents: readers drop the first dimension instead of that of extent 1"""
    new = right(node, free, shapes)
    for value in new.results:
        if value.name in shapes:
            shapes[value.name] = list(range(1, 1 + len(shapes[value.name])))
    return new


@in_place_of(identities, "copied")
def permutation_as_copy(right: Any, node: Any, position: Any, graph: Any) -> Any:
    """identities: where to read does not count"""
    value = node.block.body[position]
    if node.block.combiners or node.block.table is not None or not isinstance(value, Read):
        return None
    access = node.block.reads[value.position]
    same = graph.values[access.buffer].shape == node.results[position].shape
    return access.buffer if same and not access.where else None


@in_place_of(views, "composed")
def condition_lost(right: Any, access: Any, view: Any, block: Any) -> Any:
    """views: the condition of the view is not composed"""
    same = replace(view.access, where=()) if access.where else view.access
    return right(access, replace(view, access=same), block)


@in_place_of(views, "composed")
def value_lost(right: Any, access: Any, view: Any, block: Any) -> Any:
    """views: which value is read outside does not count"""
    same = replace(view.access, otherwise=access.otherwise) if access.where and view.where else view.access
    return right(access, replace(view, access=same), block)


@in_place_of(views, "_table_through")
def table_cut(right: Any, table: Any, block: Any, view: Any, node: Any) -> Any:
    """views: a table that is cut is taken for whole, where indices beyond it are inside the original"""

    def whole(access: Any, node: Any) -> Any:
        seen = view(access, node)
        return None if seen is None else replace(seen, shape=seen.source.shape)

    return right(table, block, whole, node)


def other_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """concatenations: an undecided comparison counts as decided"""
    right = concatenations.truth_at
    monkeypatch.setattr(concatenations, "truth_at", lambda *given: right(*given) is not False)


@in_place_of(equal_nodes, "_key")
def combiner_ignored(right: Any, node: Any, colours: Any) -> Any:
    """equal: reductions that differ by their combiner are one"""
    key = right(node, colours)
    return (*key[:3], *key[4:]) if isinstance(node, Compute) else key


@in_place_of(equal_nodes, "_key")
def value_ignored(right: Any, node: Any, colours: Any) -> Any:
    """equal: reads that differ by their value outside are one"""
    if isinstance(node, Compute):
        reads = tuple(replace(access, otherwise=None) for access in node.block.reads)
        node = replace(node, block=replace(node.block, reads=reads))
    return right(node, colours)


def difference_swapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """normal form: a - b is b - a"""
    also = {"arith.subf", "arith.subi"}
    monkeypatch.setattr(hashing, "_COMMUTATIVE", hashing._COMMUTATIVE | also)


def predicate_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """normal form: a > b is b > a"""
    same = {name: tuple(range(len(row))) for name, row in hashing._SWAPPED.items()}
    monkeypatch.setattr(hashing, "_SWAPPED", same)


FAULTS: tuple[Plant, ...] = (
    results_mixed_up,
    negative_zero,
    dimension_of_another,
    permutation_as_copy,
    condition_lost,
    value_lost,
    table_cut,
    other_part,
    combiner_ignored,
    value_ignored,
    difference_swapped,
    predicate_kept,
)


def shows_fault(seed: int) -> bool:
    """Whether a random program is not what it was."""
    rng = random.Random(seed)
    function = program(rng, rng.randint(2, 12), dtype="f32" if seed % 2 else None, views=True)
    arrays = arrays_for(function, seed)
    for array in arrays:
        if array.dtype.kind not in "iu":
            array.reshape(-1)[:: rng.randint(1, 3)] = -0.0
    try:
        module = canonicalize(function.module)
        verify_module(module)
        pairs = zip(results(function.module, arrays), results(module, arrays), strict=True)
        return not all(same_bits(a, b) for a, b in pairs)
    except (StrataError, VerifyException, AssertionError, IndexError):
        return True


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_planted_fault_is_seen(fault: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_seen(fault, monkeypatch, shows_fault, range(SEEDS))


def test_the_comparison_sees_a_bit() -> None:
    a = np.array([0.0, np.nan, 1.0], np.float32)
    assert same_bits(a, a.copy()) and same_bits(a, np.array([0.0, -np.nan, 1.0], np.float32))
    assert not same_bits(a, np.array([-0.0, np.nan, 1.0], np.float32))
    assert not same_bits(a, a.astype(np.float64))
