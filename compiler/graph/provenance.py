"""The user's names of the blocks, axes and values of a graph with canonical names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True)
class Provenance:
    """Maps from canonical names to the user's names; empty for a graph that has the user's names.

    blocks: labels of computes. axes: for each canonical label of a compute, the names of its axes. values: names of
    inputs and results of nodes.
    """

    blocks: Mapping[str, str] = field(default_factory=dict)
    axes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)

    def after(self, earlier: Provenance) -> Provenance:
        """Compose with an earlier renaming: map the canonical names of this renaming to the names before the earlier.

        A name that the earlier renaming lacks stays.
        """
        axes = {
            label: {new: earlier.axes.get(self.blocks[label], {}).get(old, old) for new, old in names.items()}
            for label, names in self.axes.items()
        }
        return Provenance(_through(self.blocks, earlier.blocks), axes, _through(self.values, earlier.values))

    @cached_property
    def labels(self) -> Mapping[str, str]:
        """Map the canonical names of values and the labels of computes to the user's names; labels take precedence."""
        return {**self.values, **self.blocks}

    def with_user_names(self, text: str) -> str:
        """Replace canonical names of computes and values in a text, such as `product0: gebp ab`, by the user's
        names."""
        return _WORD.sub(lambda word: self.labels.get(word[0], word[0]), text)


_WORD = re.compile(r"[A-Za-z]+\d+")
"""The pattern of canonical names: a word and a number."""


def renamed_prefix(name: str, names: Mapping[str, str]) -> str:
    """Rename the part of a name before the first dot by `names`: `product0` in `product0.init`, the name of a block
    that a primitive derived."""
    stem, dot, suffix = name.partition(".")
    return f"{names.get(stem, stem)}{dot}{suffix}"


def _through(names: Mapping[str, str], earlier: Mapping[str, str]) -> Mapping[str, str]:
    return {new: earlier.get(old, old) for new, old in names.items()}
