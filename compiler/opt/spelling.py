"""The spelling of a command line: mlir-opt's forms become the one form that `command_line.arguments` takes."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from compiler import universe
from compiler.opt.command_line import ALIASES, OPTIONAL
from compiler.pipeline.passes import PIPELINES
from compiler.support.errors import InputError
from compiler.support.text import suggestion

TRUTHS = {
    "true": True,
    "TRUE": True,
    "True": True,
    "1": True,
    "false": False,
    "FALSE": False,
    "False": False,
    "0": False,
}
"""The values of a switch, as LLVM spells them."""


def normalized(words: Sequence[str], parser: argparse.ArgumentParser) -> list[str]:
    """Spell the words of a command line in the form of `parser`. Raises InputError for an unknown option.

    A long option may have one dash or two, and mlir- before its name; a switch may have a value (`--timing=false`); a
    pass is an option, whose value is its options. A value in a separate word is not changed.

        -mlir-timing --tile="block=C axes=m sizes=8" -verify-each=0
      ->
        --timing --passes tile{block=C axes=m sizes=8} --no-verify-each
    """
    return list(_Spelling(parser).spelled(words))


class _Spelling:
    """The options of a parser by name, and how each is spelled for it."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self._actions = parser._option_string_actions

    def spelled(self, words: Sequence[str]) -> Iterator[str]:
        """Yield the words in the form of the parser: passes and options with or without a value; other words, and all
        from `--` on, are unchanged."""
        position = 0
        while position < len(words):
            word = words[position]
            position += 1
            if word == "--":
                yield from words[position - 1 :]
                return
            if word == "-" or not word.startswith("-"):
                yield word
                continue
            name, equals, value = word.partition("=")
            option = self._option(name)
            if option is None:
                yield from self._pass(word, name.lstrip("-"), value)
            elif self._actions[option].nargs == 0:
                yield from self._switch(option, value) if equals else [option]
            elif equals:
                yield f"{option}={value}"
            else:
                following = words[position : position + 1]
                if option[2:] in OPTIONAL and (option != "--help" or not following or following[0].startswith("-")):
                    yield f"{option}={OPTIONAL[option[2:]]}"
                else:
                    yield from (option, *following)
                    position += 1

    def _option(self, name: str) -> str | None:
        """The option of the parser that a word names; None for a pass or an unknown option."""
        bare = name.lstrip("-")
        if name in self._actions and len(bare) == 1:
            return "--help" if bare == "h" else name
        for candidate in (bare, bare.removeprefix("mlir-")):
            option = f"--{ALIASES.get(candidate, candidate)}"
            if len(candidate) > 1 and option in self._actions:
                return option
        return None

    def _switch(self, option: str, value: str) -> list[str]:
        """Spell a switch with a value: false is --no-NAME, or nothing. Raises InputError for a value not in TRUTHS."""
        if value not in TRUTHS:
            raise InputError(f"argument {option}: '{value}' is neither true nor false")
        if TRUTHS[value]:
            return [option]
        opposite = f"--no-{option[2:]}"
        return [opposite] if opposite in self._actions else []

    def _pass(self, word: str, name: str, options: str) -> list[str]:
        """Return the words `--passes NAME{OPTIONS}` for a pass or a named pipeline. Raises InputError, about the whole
        `word`, if neither has this name."""
        if name not in PIPELINES and (len(name) == 1 or universe.find_pass(name) is None):
            known = [option for option in self._actions if option.startswith("--")]
            passes = [f"--{known_pass}" for known_pass in universe.pass_names()]
            near = suggestion(f"--{word.partition('=')[0].lstrip('-')}", [*known, *passes])
            raise InputError(f"unrecognized arguments: {word}{near} (strata-opt --help says more)")
        inner = options[1:-1] if options.startswith("{") and options.endswith("}") else options
        return ["--passes", f"{name}{{{inner}}}" if inner else name]
