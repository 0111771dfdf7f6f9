"""Queries to isl: samples of sets, inclusion, injectivity; cached, and with an operation limit so that none hangs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, lru_cache, reduce
from typing import TYPE_CHECKING, TypeVar

from compiler.analysis.matrices import matrix

if TYPE_CHECKING:
    import islpy as isl

Answer = TypeVar("Answer")

MAX_OPERATIONS = 2_000_000


class Undecided(Exception):
    """A query that isl did not answer within its operation limit."""


@cache
def context() -> isl.Context:
    """The isl context of all sets, with an operation limit."""
    import islpy as isl

    limited_context = isl.Context()
    limited_context.set_max_operations(MAX_OPERATIONS)
    return limited_context


def points(variables: Iterable[str], constraints: Iterable[str], exists: Iterable[str] = ()) -> str:
    """Print the set of points at which constraints hold for some values of the variables `exists`, in isl's syntax."""
    holds, some = " and ".join(constraints) or "true", ", ".join(exists)
    return f"[{', '.join(variables)}] : {f'exists {some} : ({holds})' if some else holds}"


def mapping(variables: Iterable[str], results: Iterable[str], constraints: Iterable[str]) -> str:
    """Print the map from the points at which constraints hold to results, in isl's syntax."""
    return f"[{', '.join(variables)}] -> [{', '.join(results)}] : {' and '.join(constraints) or 'true'}"


def union_set(text: str = "") -> isl.UnionSet:
    """Parse a set in isl's syntax without braces, parts of one space, as a union set; "" is the empty set."""
    import islpy as isl

    return _set(text).to_union_set() if text else isl.UnionSet("{ }", context())


def union_map(text: str = "") -> isl.UnionMap:
    """Parse a map of one part in isl's syntax without braces as a union map; "" is the empty map."""
    import islpy as isl

    return _map(text).to_union_map() if text else isl.UnionMap("{ }", context())


def _set(text: str) -> isl.Set:
    """Parse a set in isl's syntax without braces: parts of one space, separated by semicolons."""
    return reduce(lambda whole, part: whole.union(part), map(_conjunction, text.split("; ")))


def _conjunction(text: str) -> isl.Set:
    import islpy as isl

    translated = matrix(text)
    if translated is None:
        return isl.Set(f"{{ {text} }}", context())
    points = isl.Set(translated.text, context())
    return points.set_tuple_name(translated.domain) if translated.domain else points


def _map(text: str) -> isl.Map:
    """Parse a map of one part in isl's syntax without braces."""
    import islpy as isl

    translated = matrix(text)
    if translated is None:
        return isl.Map(f"{{ {text} }}", context())
    pairs = isl.Map(translated.text, context())
    for dims, name in ((isl.dim_type.in_, translated.domain), (isl.dim_type.out, translated.range)):
        pairs = pairs.set_tuple_name(dims, name) if name else pairs
    return pairs


def limited(ask: Callable[[], Answer]) -> Answer:
    """Return the answer of the query `ask`. Raises Undecided if it exceeds the operation limit, which begins anew."""
    import islpy as isl

    context().reset_operations()
    try:
        return ask()
    except isl.Error as error:
        if _exhausted():
            raise Undecided from error
        raise


def _exhausted() -> bool:
    """Whether the operation limit is reached: then any query fails. Below it a syntax error fails, for example."""
    import islpy as isl

    try:
        isl.Set("{ [0] }", context())
    except isl.Error:
        return True
    return False


@lru_cache(maxsize=8192)
def sample(text: str) -> tuple[int, ...] | None:
    """Return the lexicographically smallest point of a set in isl's syntax, any point if it is unbounded; None if
    empty. Raises Undecided beyond isl's operation limit."""
    # [x, y] : 0 <= x < 4 and 0 <= y < 4 and x + y = 5  ->  (2, 3)
    return limited(lambda: _sample(text))


def _sample(text: str) -> tuple[int, ...] | None:
    import islpy as isl

    points = _set(text)
    if points.is_empty():
        return None
    smallest = points.detect_equalities().lexmin()
    point = (points if smallest.is_empty() else smallest).sample_point()
    count = points.dim(isl.dim_type.set)
    return tuple(int(point.get_coordinate_val(isl.dim_type.set, n).to_python()) for n in range(count))


@lru_cache(maxsize=8192)
def surely_within(inner: str, outer: str) -> bool:
    """Whether the set `inner` is a subset of `outer`, both in isl's syntax; False if undecided."""
    # [x] : x = 2  is within  [x] : 0 <= x <= 3;  [x] : x = 4  is not.
    try:
        return bool(limited(lambda: _set(inner).is_subset(_set(outer))))
    except Undecided:
        return False


@lru_cache(maxsize=8192)
def surely_injective(text: str) -> bool:
    """Whether a map in isl's syntax is injective, as [x] -> [x mod 4] : 0 <= x < 4 is; False if undecided."""
    try:
        return bool(limited(lambda: _map(text).is_injective()))
    except Undecided:
        return False
