"""Examples of recipes, from tools/recipe_examples.toml: a call on a small program, and the loops after it."""

import inspect
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import strata
from strata import recipes

PROGRAMS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))["program"]
RETURNING = {inspect.signature(getattr(recipes, n)).return_annotation: n for n in recipes.__all__ if n.islower()}
"""Map the name of each class that a recipe returns to the recipe."""


@cache
def example(name: str) -> str:
    """The example of a recipe, or of a class that a recipe takes or returns, as a session of Python: its first call in
    the table. Empty without one. Raises AssertionError if the schedule is not proved."""
    called = [f"recipes.{recipe}(" for recipe in (name, RETURNING.get(name))]
    calls = ((program, call) for text in called for program in PROGRAMS for call in program["calls"] if text in call)
    program, call = next(calls, (None, ""))
    if program is None:
        return ""
    blocks = [f'{block} = s.get_block("{block}")' for block in "CD" if re.search(rf"\b{block}[,)]", call)]
    inputs = program["tensors"].partition(" =")[0]
    lines = [program["tensors"], f's = Schedule(te.function("f", [{inputs}], {program["result"]}))', *blocks, call]
    names: dict[str, Any] = {"Schedule": strata.Schedule, "recipes": recipes, "te": strata.te}
    exec("\n".join(lines), names)
    assert names["s"].verify(), name
    session = [f">>> {line}" for line in (*lines, "print(strata.schedule.outline(s.program))")]
    return "\n".join([*session, strata.schedule.outline(names["s"].program)])
