"""The user's names of the parts of a graph whose names are canonical."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True)
class Provenance:
    """The user's name of each canonical one; empty for a graph that has the user's names.

    blocks: of labels of computes. axes: of the axes of each compute, by its canonical label. values: of inputs and
    results of nodes.
    """

    blocks: Mapping[str, str] = field(default_factory=dict)
    axes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)

    def after(self, earlier: Provenance) -> Provenance:
        """The composition with an earlier renaming: from the names of this one to those before the earlier one.

        A name that the earlier renaming lacks stays.
        """
        axes = {
            label: {new: earlier.axes.get(self.blocks[label], {}).get(old, old) for new, old in names.items()}
            for label, names in self.axes.items()
        }
        return Provenance(_through(self.blocks, earlier.blocks), axes, _through(self.values, earlier.values))

    @cached_property
    def labels(self) -> Mapping[str, str]:
        """The user's names of values and of labels of computes, together."""
        return {**self.values, **self.blocks}

    def with_user_names(self, text: str) -> str:
        """A text for people, such as `product0: gebp ab`, with the user's names of computes and values."""
        return _WORD.sub(lambda word: self.labels.get(word[0], word[0]), text)


_WORD = re.compile(r"[A-Za-z]+\d+")
"""The pattern of canonical names: a word and a number."""


def renamed_prefix(name: str, names: Mapping[str, str]) -> str:
    """A name with its part before the first dot renamed: of `product0.init`, which a primitive derived, `product0`."""
    stem, dot, suffix = name.partition(".")
    return f"{names.get(stem, stem)}{dot}{suffix}"


def _through(names: Mapping[str, str], earlier: Mapping[str, str]) -> Mapping[str, str]:
    return {new: earlier.get(old, old) for new, old in names.items()}
