"""Shuffles that not all warps of a block reach: OpenCL C has only barriers of blocks, so all threads go there."""

from __future__ import annotations

import re

_SHUFFLE = re.compile(r"__shfl_xor_sync\(0xffffffffu, ")
_IF = re.compile(r"if \((.*)\) \{$")
_DECLARED = re.compile(r"const (.+?) (\w+) = (.*);$")


def together(body: str) -> str:
    """The body of a kernel: a branch with shuffles becomes a condition of each of its statements.

    if (ty == 0) {                          {
      const float a = A[tx];                  float a; if (ty == 0) a = A[tx];
      const float b = shuffle(a, 1);    ->    const float b = shuffled(scratch, ty == 0, a, 1);
      B[tx] = b;                              if (ty == 0) B[tx] = b;
    }                                       }
    """
    lines = body.split("\n")
    return "\n".join(_block(lines, 0, len(lines), "")) if _SHUFFLE.search(body) else body


def _block(lines: list[str], start: int, end: int, condition: str) -> list[str]:
    collected = []
    while start < end:
        line = lines[start]
        code, indent = line.strip(), line[: len(line) - len(line.lstrip())]
        match = _IF.match(code)
        if match is None:
            collected.append(indent + _statement(code, condition))
            start += 1
            continue
        close = next(n for n in range(start + 1, end) if lines[n].startswith(f"{indent}}}"))
        inner = f"{condition} && ({match[1]})" if condition else f"({match[1]})"
        if any(_SHUFFLE.search(each) for each in lines[start:close]):
            assert lines[close] == f"{indent}}}", "a branch with shuffles has no other branch"
            collected += [f"{indent}{{", *_block(lines, start + 1, close, inner), lines[close]]
            start = close + 1
            continue
        while lines[close] != f"{indent}}}":
            close = next(n for n in range(close + 1, end) if lines[n].startswith(f"{indent}}}"))
        collected += [f"{indent}if ({inner}) {{", *lines[start + 1 : close + 1]]
        start = close + 1
    return collected


def _statement(code: str, condition: str) -> str:
    shuffled = _SHUFFLE.sub(f"shuffled(scratch, {condition or 'true'}, ", code)
    if not condition or shuffled != code or not code.endswith(";") or code.startswith("__syncthreads"):
        return shuffled
    declared = _DECLARED.match(code)
    if declared is not None:
        return f"{declared[1]} {declared[2]}; if ({condition}) {declared[2]} = {declared[3]};"
    return code if re.fullmatch(r"[\w ]+ \w+;", code) else f"if ({condition}) {code}"
