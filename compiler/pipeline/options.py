"""Parse the options of a pass to the fields of the pass."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, get_type_hints

from compiler.pipeline.text import STRING, Substring
from compiler.support.errors import InputError
from compiler.support.text import unknown

if TYPE_CHECKING:
    from xdsl.passes import ModulePass
    from xdsl.utils.arg_spec import ParameterListType, ParameterType

_KEY = re.compile(r"\s*([\w-]+)(=)?")
_VALUE = re.compile(rf'({STRING}|[^\s",={{}}]+)(,)?')
_INTEGER = re.compile(r"[-+]?\d{1,4000}")
_FLOAT = re.compile(r"[-+]?\d+\.\d*(?:[eE][-+]?\d+)?")
_ESCAPES = {"n": "\n", "t": "\t"}


@dataclass(frozen=True)
class Option:
    """A parsed option: its key, its values, and the text of all values, for errors."""

    key: Substring
    values: ParameterListType
    text: Substring

    @property
    def field(self) -> str:
        """The name of the pass's field: the key with underscores."""
        return str(self.key).replace("-", "_")


def build_pass(kind: type[ModulePass], name: Substring, text: Substring) -> ModulePass:
    """Construct a pass of the class `kind` from the text of its options, `key=value ...`. Raises InputError for unknown
    options and invalid values."""
    from xdsl.utils.arg_spec import ArgSpec

    fields_set: dict[str, ParameterListType] = {}
    for option in _options(name, text):
        if option.field in fields_set:
            raise option.key.refusal(f"the option '{option.key}' of the pass '{name}' is given twice")
        fields_set[option.field] = _value(kind, option)
    try:
        return kind.from_spec(ArgSpec(str(name), fields_set))
    except (TypeError, ValueError) as error:
        raise name.refusal(f"the pass '{name}' does not take these options: {error}") from error


def _options(name: Substring, text: Substring) -> list[Option]:
    """Parse `key=value,value key ...`. Raises InputError at the first invalid character."""
    options: list[Option] = []
    position, characters = 0, str(text)
    while characters[position:].strip():
        key = _KEY.match(characters, position)
        if key is None or (position and not characters[position].isspace()):
            raise _unreadable(name, text, position, "expected an option, such as key=value")
        position = key.end()
        values = list[str]()
        has_more = key[2] is not None
        while has_more:
            value = _VALUE.match(characters, position)
            if value is None:
                raise _unreadable(name, text, position, f"expected a value of '{key[1]}'")
            values.append(value[1])
            has_more, position = value[2] is not None, value.end()
        stated = text[key.end() : position] if values else text.group(key, 1)
        options.append(Option(text.group(key, 1), tuple(map(_parameter, values)), stated))
    return options


def _unreadable(name: Substring, text: Substring, position: int, expected: str) -> InputError:
    """Return an InputError at a position in the text of a pass's options; `expected` ends its sentence."""
    return text[position : position + 1].refusal(
        f"the options '{text}' of the pass '{name}' cannot be read: {expected}"
    )


def _parameter(text: str) -> ParameterType:
    """Convert the text of a value to a boolean, a number, or a string, with or without quotes."""
    if text.startswith('"'):
        return re.sub(r"\\(.)", lambda escape: _ESCAPES.get(escape[1], escape[1]), text[1:-1], flags=re.DOTALL)
    if text in ("true", "false"):
        return text == "true"
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def _value(kind: type[ModulePass], option: Option) -> ParameterListType:
    """Return the values of an option, checked against the type of the pass's field; a bare flag is true. Raises
    InputError for an unknown option, and for values of another type."""
    from xdsl.utils.hints import isa, type_repr

    hints = get_type_hints(kind)
    field_names = [field.name for field in fields(kind) if field.init]
    refused = f"the pass '{kind.name}' does not take these options"
    if option.field not in field_names:
        raise option.key.refusal(f"{refused}: {unknown('option', option.field, field_names)}")
    hint, values = hints[option.field], option.values
    if not values and hint is bool:
        return (True,)
    if isa(values, hint) or (len(values) == 1 and isa(values[0], hint)) or (not values and isa(None, hint)):
        return values
    shown = ",".join(str(value) for value in values)
    fault = f"which '{shown}' is not" if values else "and has no value"
    raise option.text.refusal(f"{refused}: '{option.field}' is of type {type_repr(hint)}, {fault}")
