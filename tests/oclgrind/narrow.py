"""f16 and bf16, which oclgrind has no arithmetic for: structures in memory, converted to float at each load."""

from __future__ import annotations

import re

NARROW = ("__half", "__nv_bfloat16")
_ANY = "|".join(NARROW)
_CAST = re.compile(rf"\(({_ANY})\)(?=[\w(!-])")
_OPERAND = re.compile(r"[-!]*(?:\w[\w.]*)?")
_FIELD = re.compile(r"\.\w+")
_NUMBER = re.compile(r"\((?:unsigned |signed |long )*(?:float|double|int|char|short|long|unsigned|bool)\)$")
_DECLARED = re.compile(rf"\b({_ANY})(?:\* (?:__restrict__ )?(\w+)|2? (\w+)(?=\[|;)| \(\*(\w+)\))")
_DECLARATION = re.compile(rf"(?:__shared__ .*|const )?(?:{_ANY})(?:[*2] | \(\*| \w+(?:\[\d+\])+;)")


def widened(text: str) -> str:
    """The text with float for what is in registers; calls of templates, too."""
    return re.sub(rf"<(?:{_ANY})>(?=\()", "<float>", re.sub(rf"\b({_ANY})\(", r"(\1)(", text))


def converted(parameters: str, body: str) -> str:
    """The body of a kernel with a conversion at each load and store of f16 or bf16."""
    declared = [*_DECLARED.finditer(parameters), *_DECLARED.finditer(body)]
    places = {match[2] or match[3] or match[4]: match[1] for match in declared}
    if not places:
        return body
    names = "|".join(map(re.escape, places))
    element = re.compile(rf"(?<![&\w.])({names})(?=\[|\.[xy]\b)")
    return "\n".join(_line(line, places, element) for line in body.split("\n"))


def _line(line: str, places: dict[str, str], element: re.Pattern[str]) -> str:
    indent, code = line[: len(line) - len(line.lstrip())], line.strip()
    if _DECLARATION.match(code):
        return line
    match = element.match(code)
    if match is None:
        return indent + _registers(_loads(_casts(code), element))
    end = _element_end(code, match.end())
    target, (sign, value) = code[:end], code[end:].strip().split(" ", 1)
    value = _loads(_casts(value.removesuffix(";")), element)
    if sign == "+=":
        value = f"to_float({target}) + ({value})"
    return f"{indent}{target} = to{places[match[1]]}({value});"


def _registers(code: str) -> str:
    return re.sub(rf"^(const )?(?:{_ANY}) (?=\w+(?: =|;))", r"\1float ", code)


def _loads(code: str, element: re.Pattern[str]) -> str:
    for match in reversed(list(element.finditer(code))):
        end = _element_end(code, match.end())
        code = f"{code[: match.start()]}to_float({code[match.start() : end]}){code[end:]}"
    return code


def _casts(code: str) -> str:
    """Casts to f16 and bf16 as calls that round a float, the last one first."""
    for match in reversed(list(_CAST.finditer(code))):
        end = _operand_end(code, match.end())
        code = f"{code[: match.start()]}to_float(to{match[1]}({code[match.end() : end]})){code[end:]}"
    return code


def _element_end(code: str, position: int) -> int:
    """Where an element of an array or a field of a pair ends."""
    if code[position] == ".":
        return position + 2
    while position < len(code) and code[position] == "[":
        position = _closed(code, position)
    return position


def _operand_end(code: str, start: int) -> int:
    """Where the operand of a cast ends: a name, number or parentheses, with calls, indices and fields behind it."""
    match = _OPERAND.match(code, start)
    assert match is not None
    position = match.end()
    while position < len(code):
        if code[position] in "([":
            position = _closed(code, position)
            continue
        pattern = _OPERAND if _NUMBER.search(code[start:position]) else _FIELD
        part = pattern.match(code, position)
        if part is None or not part[0]:
            break
        position = part.end()
    return position


def _closed(code: str, position: int) -> int:
    depth = 0
    for place in range(position, len(code)):
        depth += (code[place] in "([") - (code[place] in ")]")
        if not depth:
            return place + 1
    raise AssertionError(f"unbalanced parentheses in {code}")
