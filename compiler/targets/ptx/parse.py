"""Parse PTX as NVRTC writes it.

@%p1 ld.global.nc.f32   %f1, [%rd2+4];
  ->
PtxInstruction(parts=("ld", "global", "nc", "f32"), operands=(RegisterName("%f1"), MemoryOperand(...)), guard="%p1")
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from compiler.targets.ptx.syntax import (
    MemoryOperand,
    PtxError,
    PtxFunction,
    PtxInstruction,
    PtxLiteral,
    PtxOperand,
    PtxProgram,
    PtxVariable,
    RegisterList,
    RegisterName,
    VariableName,
)

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_LINE_DIRECTIVES = (".version", ".target", ".address_size", ".file", ".loc ", ".loc\t")
_HEADER = re.compile(r"\.(entry|func)\b")
_LABEL = re.compile(r"[\w$]+:(?!:)")
_GUARDED = re.compile(r"@(!?)([%\w$]+)\s+(.*)", re.DOTALL)
_NUMBER = re.compile(r"-?(0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}|0[xX][0-9a-fA-F]+|\d+)U?")
_ADDRESS = re.compile(r"([%\w$.]+)\s*(?:\+\s*(-?\w+))?")
_SPACES = "global|const|shared|local|param"
_VARIABLE = re.compile(
    rf"(?P<linkage>(?:\.(?:visible|extern|weak)\s+)*)\.(?P<space>{_SPACES})\s+(?:\.align\s+(?P<align>\d+)\s+)?"
    r"\.(?P<type>\w+)\s+(?P<name>[\w$%]+)\s*(?P<array>\[\d*\])?\s*(?:=\s*(?P<initial>.*))?",
    re.DOTALL,
)
_REGISTERS = re.compile(r"\.reg\s+\.(\w+)\s+(.*)", re.DOTALL)


def parse_ptx(text: str) -> PtxProgram:
    """Parse a PTX module. Raises PtxError, with the line, for syntax that NVRTC does not write for kernels."""
    program, reader = PtxProgram(), None
    for line, statement in _statements(_COMMENT.sub(_blank, text)):
        if reader is not None:
            if reader.read(line, statement):
                reader = None
        elif statement.endswith("{") or (_HEADER.search(statement) and statement.endswith(";")):
            function = _header(line, statement)
            if statement.endswith("{"):
                program.functions[function.name] = function
                reader = _BodyReader(function)
        elif statement == "}":
            raise PtxError(line, "a '}' without a function")
        elif not statement.startswith(_LINE_DIRECTIVES):
            program.variables.append(_variable(line, statement.rstrip(";")))
    if reader is not None:
        raise PtxError(line, "the text ends inside of a function")
    return program


def _blank(comment: re.Match[str]) -> str:
    return "\n" * comment[0].count("\n")


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield the first line number and the text of each statement, which ends with `;`, a brace of a scope, a label's
    colon, or the line of a directive."""
    position, line = 0, 1
    while match := re.compile(r"\s*").match(text, position):
        line += match[0].count("\n")
        position = match.end()
        if position == len(text):
            return
        end = _end(text, position)
        statement = text[position:end]
        yield line, statement
        line += statement.count("\n")
        position = end


def _end(text: str, start: int) -> int:
    """Return the position behind the statement that begins at `start`; the end of the text for one that does not
    end."""
    if text[start] in "{}":
        return start + 1
    if text.startswith(_LINE_DIRECTIVES, start):
        return _index(text, "\n", start)
    if label := _LABEL.match(text, start):
        return label.end()
    semicolon, brace = _index(text, ";", start), _index(text, "{", start)
    is_header = text[start] == "." and _HEADER.search(text, start, min(semicolon, brace)) is not None
    return min(semicolon, brace if is_header else semicolon) + 1


def _index(text: str, character: str, start: int) -> int:
    found = text.find(character, start)
    return len(text) if found < 0 else found


def _header(line: int, statement: str) -> PtxFunction:
    """Parse the head of a function, such as `.visible .entry f(.param .u64 f_param_0)` or `.func (.param .b32 result)
    g(...)`. Return a function without a body. Raises PtxError for other text."""
    match = re.search(r"\.(entry|func)\s*(?:\(([^)]*)\))?\s*([\w$]+)\s*(?:\(([^)]*)\))?", statement, re.DOTALL)
    if match is None:
        raise PtxError(line, "the head of a function is not understood")
    kind, results, name, parameters = match.groups()
    function = PtxFunction(name, kind == "entry")
    function.parameters = [_variable(line, part) for part in _split(parameters or "")]
    function.results = [_variable(line, part) for part in _split(results or "")]
    return function


def _variable(line: int, text: str) -> PtxVariable:
    match = _VARIABLE.fullmatch(text.strip())
    if match is None:
        raise PtxError(line, f"'{text.strip()[:60]}' is not understood")
    element = int(match["type"][1:]) // 8
    count = match["array"]
    size = element * (int(count[1:-1] or 0) if count else 1)
    initial = None
    if match["initial"]:
        values = [_integer(line, item) for item in _split(match["initial"].strip().strip("{}"))]
        initial = b"".join((value % (1 << 8 * element)).to_bytes(element, "little") for value in values)
        initial = initial.ljust(size, b"\0")
    alignment = int(match["align"] or element)
    return PtxVariable(match["name"], match["space"], size, alignment, initial, ".extern" in match["linkage"])


def _integer(line: int, text: str) -> int:
    try:
        return int(text.strip().rstrip("U"), 0)
    except ValueError:
        raise PtxError(line, f"'{text.strip()[:40]}' is no number") from None


def _split(text: str) -> list[str]:
    """Split at the commas outside of brackets; parts are stripped, and an empty last part is dropped, other empty parts
    stay."""
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        depth += (character in "[{(") - (character in "]})")
        if character == "," and not depth:
            parts.append(text[start:position].strip())
            start = position + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


class _BodyReader:
    """A parser of a function's body, statement by statement. It extends the function; names declared in inner scopes
    get a unique suffix."""

    def __init__(self, function: PtxFunction) -> None:
        self._function = function
        self._scopes: list[dict[str, str]] = [{}]

    def read(self, line: int, statement: str) -> bool:
        """Parse a statement into the function; return whether it was the brace that ends the body. `.pragma` is
        skipped. Raises PtxError, with the line, for a variable or an operand that NVRTC does not write for kernels."""
        text = statement.rstrip(";").strip()
        if text == "{":
            self._scopes.append({})
        elif text == "}":
            self._scopes.pop()
            return not self._scopes
        elif registers := _REGISTERS.fullmatch(text):
            for name in _split(registers[2]):
                self._declare(name, registers[1])
        elif _VARIABLE.fullmatch(text) and text.startswith("."):
            variable = _variable(line, text)
            self._function.variables.append(replace(variable, name=self._unique(variable.name)))
        elif text.endswith(":"):
            self._function.labels[text[:-1]] = len(self._function.body)
        elif text and not text.startswith(".pragma"):
            self._function.body.append(self._instruction(line, text))
        return False

    def _declare(self, name: str, type_: str) -> None:
        many = re.fullmatch(r"([%\w$]+)<(\d+)>", name)
        names = [f"{many[1]}{number}" for number in range(int(many[2]))] if many else [name]
        for each in names:
            self._function.registers[self._unique(each)] = type_

    def _unique(self, name: str) -> str:
        if len(self._scopes) > 1:
            self._scopes[-1][name] = f"{name}#{len(self._function.body)}"
        return self._renamed(name)

    def _renamed(self, name: str) -> str:
        return next((scope[name] for scope in reversed(self._scopes) if name in scope), name)

    def _instruction(self, line: int, text: str) -> PtxInstruction:
        guard, negated, words = "", False, text
        if match := _GUARDED.fullmatch(text):
            guard, negated, words = self._renamed(match[2]), match[1] == "!", match[3]
        opcode, _, operands = re.sub(r"\s+", " ", words).partition(" ")
        parts = tuple(part for part in re.split(r"\.(?=\w)", opcode) if part)
        items = tuple(self._operand(line, item) for item in _split(operands))
        return PtxInstruction(line, re.sub(r"\s+", " ", text), parts, items, guard, negated)

    def _operand(self, line: int, text: str) -> PtxOperand:
        if text[0] == "{" or text[0] == "(":
            return RegisterList(tuple(self._operand(line, item) for item in _split(text[1:-1])))
        if "|" in text:
            return RegisterList(tuple(self._operand(line, item.strip()) for item in text.split("|")))
        if text[0] == "[":
            match = _ADDRESS.fullmatch(text[1:-1].strip())
            if match is None:
                raise PtxError(line, f"'{text}' is no address")
            base = self._operand(line, match[1])
            assert isinstance(base, RegisterName | VariableName | PtxLiteral)
            return MemoryOperand(base, _integer(line, match[2] or "0"))
        if _NUMBER.fullmatch(text):
            return PtxLiteral(text)
        name = self._renamed(text)
        is_register = text[0] == "%" or name in self._function.registers or text == "_"
        return RegisterName(name) if is_register else VariableName(name)
