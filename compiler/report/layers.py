"""The layers of a network behind the calls of a group, from the names of their weights."""

from __future__ import annotations

import re
from collections.abc import Iterable

from compiler.driver.parts.groups import GroupedProgram
from compiler.graph.main import read_tensors, size

ROLE = re.compile(r"(?<=.)[._/](weight|weights|kernel|bias|scale|gamma|beta|[WwBb])$")
"""The suffix of a parameter's name behind its layer."""


def layers(program: GroupedProgram) -> dict[str, tuple[str, ...]]:
    """Return the layers of the calls of each group, in order and each once, by the group's name. The layer of a call is
    the name of the largest constant from which its operands are computed, without the suffix ROLE: `layer1.0.conv1` of
    `layer1.0.conv1.weight`. A call without constants has none."""
    main = read_tensors(program.function)
    sizes = {buffer.name: size(buffer) for buffer in main.inputs}
    constants_behind = {main.inputs[n].name: {main.inputs[n].name} for n in program.constants}
    for call in program.constant_split.constant_calls:
        constants_behind |= dict.fromkeys(call.outputs, _behind(constants_behind, call.inputs))
    layers_by_group: dict[str, list[str]] = {}
    for call in program.constant_split.main.calls:
        names = sorted(_behind(constants_behind, call.inputs), key=lambda name: (-sizes[name], name))
        layers_by_group.setdefault(call.callee, []).extend(ROLE.sub("", name) for name in names[:1])
    return {group: tuple(dict.fromkeys(names)) for group, names in layers_by_group.items()}


def _behind(behind: dict[str, set[str]], operands: Iterable[str]) -> set[str]:
    """Return the constants that operands are computed from."""
    return set[str]().union(*(behind.get(name, set()) for name in operands))
