"""Queries to isl: samples of sets, inclusion, injectivity; cached, and with an operation limit so that none hangs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, lru_cache, reduce
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

from compiler.analysis.matrices import matrix

if TYPE_CHECKING:
    import islpy as isl

Answer = TypeVar("Answer")

MAX_OPERATIONS = 2_000_000


class Undecided(Exception):
    """A query that isl did not answer within its operation limit."""


OBSERVERS: list[Callable[[str, str, object, float, bool], None]] = []
"""Called after each query with its kind (sample, within, injective, or claim, a part of a proof), its text, its answer
(`...` for a query that raised), its seconds, and whether the answer is from the cache of former queries."""


def asked(kind: str, text: Callable[[], str], ask: Callable[[], Answer], hits: Callable[[], int] = int) -> Answer:
    """Return the answer of the query `ask`, and report it to the OBSERVERS by its `kind`, such as within; `text` is
    called only if there are some. hits: the number of answers from a cache so far; by default 0."""
    if not OBSERVERS:
        return ask()
    start, before = perf_counter(), hits()
    answer: object = ...
    try:
        answer = result = ask()
        return result
    finally:
        for observe in OBSERVERS:
            observe(kind, text(), answer, perf_counter() - start, hits() > before)


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
    """Return the answer of the query `ask`. Raises Undecided if it exceeds the operation limit, which begins anew, and
    isl.Error for an invalid query."""
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


def sample(text: str) -> tuple[int, ...] | None:
    """Return the lexicographically smallest point of a set in isl's syntax, any point if it is unbounded; None if
    empty. Raises Undecided beyond isl's operation limit."""
    # [x, y] : 0 <= x < 4 and 0 <= y < 4 and x + y = 5  ->  (2, 3)
    return asked("sample", lambda: text, lambda: cached_sample(text), _hits_of(cached_sample))


@lru_cache(maxsize=8192)
def cached_sample(text: str) -> tuple[int, ...] | None:
    """Answer `sample` from the cache of former queries, else by isl."""
    return limited(lambda: _sample(text))


def _hits_of(cached: Any) -> Callable[[], int]:
    """The number of answers from the cache of a function, an lru_cache, so far."""
    return lambda: cached.cache_info().hits


def _sample(text: str) -> tuple[int, ...] | None:
    import islpy as isl

    points = _set(text)
    if points.is_empty():
        return None
    smallest = points.detect_equalities().lexmin()
    point = (points if smallest.is_empty() else smallest).sample_point()
    count = points.dim(isl.dim_type.set)
    return tuple(int(point.get_coordinate_val(isl.dim_type.set, n).to_python()) for n in range(count))


def surely_within(inner: str, outer: str) -> bool:
    """Whether the set `inner` is a subset of `outer`, both in isl's syntax; False if undecided."""
    # [x] : x = 2  is within  [x] : 0 <= x <= 3;  [x] : x = 4  is not.
    return asked("within", lambda: f"{inner} within {outer}", lambda: _within(inner, outer), _hits_of(_within))


@lru_cache(maxsize=8192)
def _within(inner: str, outer: str) -> bool:
    try:
        return bool(limited(lambda: _set(inner).is_subset(_set(outer))))
    except Undecided:
        return False


def surely_injective(text: str) -> bool:
    """Whether a map in isl's syntax is injective, as [x] -> [x mod 4] : 0 <= x < 4 is; False if undecided."""
    return asked("injective", lambda: text, lambda: _injective(text), _hits_of(_injective))


@lru_cache(maxsize=8192)
def _injective(text: str) -> bool:
    try:
        return bool(limited(lambda: _map(text).is_injective()))
    except Undecided:
        return False
