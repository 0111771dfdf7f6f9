"""The layers of a network that the calls of a group are of, told by the names of their weights."""

from __future__ import annotations

import re
from collections.abc import Iterable

from compiler.driver.parts.groups import GroupedProgram
from compiler.graph.main import read_tensors, size

ROLE = re.compile(r"(?<=.)[._/](weight|weights|kernel|bias|scale|gamma|beta|[WwBb])$")
"""How the name of a parameter ends that begins with its layer."""


def layers(program: GroupedProgram) -> dict[str, tuple[str, ...]]:
    """By the name of each group the layers of its calls in order: the largest constant behind the operands of a call,
    without its role, `layer1.0.conv1.weight` as `layer1.0.conv1`; nothing for a call without constants."""
    main = read_tensors(program.function)
    sizes = {buffer.name: size(buffer) for buffer in main.inputs}
    behind = {main.inputs[n].name: {main.inputs[n].name} for n in program.constants}
    for call in program.constant_split.constant_calls:
        behind |= dict.fromkeys(call.outputs, _behind(behind, call.inputs))
    named: dict[str, list[str]] = {}
    for call in program.constant_split.main.calls:
        names = sorted(_behind(behind, call.inputs), key=lambda name: (-sizes[name], name))
        named.setdefault(call.callee, []).extend(ROLE.sub("", name) for name in names[:1])
    return {group: tuple(dict.fromkeys(names)) for group, names in named.items()}


def _behind(behind: dict[str, set[str]], operands: Iterable[str]) -> set[str]:
    """The constants that some operands are made of."""
    return set[str]().union(*(behind.get(name, set()) for name in operands))
