"""`replay`: rebuild a search from its log, without hardware."""

from __future__ import annotations

import json
from collections.abc import Callable

from compiler.autotune.search.log import warm_start_of
from compiler.autotune.search.options import MOST, Options
from compiler.autotune.search.search import Search
from compiler.database.outcome import Outcome
from compiler.database.record import Json, outcome_faults
from compiler.space.candidates import Space
from compiler.support.errors import InputError
from compiler.support.validation import integer

Call = Callable[[Search], object]


def replay(space: Space, log: str) -> Search:
    """Repeat the calls of a log on a new search, and return it in the same state.

    `space` must be a new instance of the log's space: one that evaluates candidates lazily depends on the order of
    requests. Raises InputError for text that is no log, and if a result differs from the log, because the space or the
    code has changed.
    """
    lines = log.splitlines()
    try:
        header, *calls = map(json.loads, lines)
        seed, options = integer("its seed", header["search"]["seed"], 0), Options(**header["search"]["options"])
        warm_starts = [warm_start_of(past_task) for past_task in header["search"]["past"]]
        todo = [_call(call) for call in calls]
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise InputError(f"this is not the log of a search: {error}") from error
    search = Search(space, seed, options, warm_starts)
    if search.log() != lines[0] + "\n":
        raise InputError("the log is of a search in another space")
    for number, call in enumerate(todo, 1):
        call(search)
        if search.log_lines(number) != lines[number : number + 1]:
            raise InputError(f"line {number + 1} of the log is not what the search answers now")
    return search


def _call(entry: Json) -> Call:
    """Decode a line of a log into a call of a search. Raises InputError, KeyError, TypeError or ValueError."""
    if "propose" in entry:
        count = integer("a number of proposals", entry["propose"], 0, MOST)
        return lambda search: search.propose(count)
    if "update" in entry:
        sketch, positions = entry["update"]
        candidate = (
            integer("a sketch", sketch, 0),
            tuple(integer("a position", position, 0) for position in positions),
        )
        lists = {name: tuple(map(float, entry["outcome"][name])) for name in ("seconds", "rates")}
        outcome = Outcome(**{**entry["outcome"], **lists})
        for wrong in outcome_faults(outcome):
            raise InputError(f"an outcome of the log is damaged: {wrong}")
        return lambda search: search.update(candidate, outcome)
    return {"descend": Search.descend, "release": Search.release}[entry["call"]]
