"""Underline the wrong argument of a command line in an error message."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from compiler.support.spans import underlined

_QUOTED = re.compile(r"'([^']*)'|\"([^\"]*)\"")
_OPTION = re.compile(r"\bargument (-[\w/-]*)")
_UNKNOWN = "unrecognized arguments: "
_MISSING = re.compile(r"arguments are required|it is not said what")


@dataclass(frozen=True)
class _Word:
    text: str
    column: int
    length: int


def underlined_argument(name: str, arguments: Sequence[str], sentence: str) -> list[str]:
    """Return the command line of `name`, and a line with a caret under the argument that the sentence of an error
    names, or at the end if an argument is missing; an empty list if the sentence does neither."""
    line = shlex.join([name, *arguments])
    words = list(_words(name, arguments))
    word = _refused_word(words, sentence)
    if word is not None:
        return underlined(line, word.column, word.length)
    return underlined(f"{line} ", len(line) + 2, 1) if _MISSING.search(sentence) else []


def _words(name: str, arguments: Sequence[str]) -> Iterator[_Word]:
    """Yield the arguments, and option and value of --option=value, with their columns in the command line, from 1."""
    column = len(shlex.quote(name)) + 2
    for argument in arguments:
        shown = shlex.quote(argument)
        yield _Word(argument, column, len(shown))
        option, equals, value = argument.partition("=")
        if equals and option.startswith("-"):
            yield _Word(option, column, len(option))
            yield _Word(value, column + shown.index(equals) + 1, max(1, len(shown) - len(option) - 1))
        column += len(shown) + 1


def _refused_word(words: Sequence[_Word], sentence: str) -> _Word | None:
    """Find the argument that a sentence refuses: a quoted argument, at or after the option that the sentence names;
    else that option; else an argument that is a long option in the sentence, or its first word; else the last
    file that the sentence names, or in which a path of the sentence would be; else the first unrecognized argument.
    None if there is none."""
    option = _OPTION.search(sentence)
    option_index = next((n for n, word in enumerate(words) if option and word.text in option[1].split("/")), None)
    quoted = {single or double for single, double in _QUOTED.findall(sentence)}
    for word in words[option_index or 0 :]:
        if word.text in quoted:
            return word
    if option_index is not None:
        return words[option_index]
    sentence_words = [text.rstrip(",:;)") for text in sentence.split()]
    for word in words:
        if (word.text.startswith("--") and word.text in sentence_words) or sentence_words[:1] == [word.text]:
            return word
    for word in reversed(words):
        if Path(word.text).suffix and any(Path(word.text) in (p, *p.parents) for p in map(Path, sentence_words)):
            return word
    unknown = sentence.partition(_UNKNOWN)[2]
    return next((word for word in words if unknown and unknown.startswith(word.text)), None)
