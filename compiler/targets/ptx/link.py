"""`LinkedKernel`: a kernel and the functions that it calls, with jumps resolved and variables laid out."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from compiler.support.errors import InputError
from compiler.targets.ptx.syntax import PtxFunction, PtxInstruction, PtxProgram, PtxVariable, VariableName
from compiler.targets.ptx.values import bits_of

SHARED_ALIGNMENT = 16
_ON_CHIP = {"shared", "local", "param", "const"}


@dataclass
class LinkedFunction:
    """A function with its jumps and its frame.

    targets: the position that a branch jumps to, by the branch's own. offsets: of each parameter, result and local
    variable in a thread's frame, which has frame_size bytes.
    """

    function: PtxFunction
    targets: dict[int, int] = field(default_factory=dict)
    offsets: dict[str, int] = field(default_factory=dict)
    frame_size: int = 0


@dataclass
class LinkedKernel:
    """A kernel as `main`, and all functions of its text.

    shared: the offset of each variable in the shared memory of a block; dynamic arrays begin at its end. granules: the
    bytes of the narrowest access, by state space.
    """

    main: LinkedFunction
    functions: dict[str, LinkedFunction]
    shared: dict[str, int] = field(default_factory=dict)
    shared_size: int = 0
    granules: dict[str, int] = field(default_factory=lambda: {"shared": 16, "global": 16})


def link(program: PtxProgram, name: str) -> LinkedKernel:
    """Link a kernel of a program. Raises InputError if there is none of that name, PtxError for a jump to no label."""
    function = program.functions.get(name)
    if function is None or not function.is_kernel:
        raise InputError(f"the PTX has no kernel '{name}'")
    called = {each.name: _linked(each) for each in program.functions.values() if not each.is_kernel}
    kernel = LinkedKernel(_linked(function), called)
    bodies = [function, *(each.function for each in called.values())]
    variables = [*program.variables, *(variable for body in bodies for variable in body.variables)]
    _place_shared(kernel, [variable for variable in variables if variable.space == "shared"])
    for body in bodies:
        for at in body.body:
            _note_access(kernel, at)
    return kernel


def _linked(function: PtxFunction) -> LinkedFunction:
    linked = LinkedFunction(function)
    own = [variable for variable in function.variables if variable.space in ("local", "param")]
    for variable in (*function.parameters, *function.results, *own):
        start = -(-linked.frame_size // 16) * 16
        linked.offsets[variable.name] = start
        linked.frame_size = start + variable.size
    for position, at in enumerate(function.body):
        if at.parts[0] == "bra":
            label = at.operands[0]
            if not isinstance(label, VariableName) or label.name not in function.labels:
                raise at.refused("there is no such label")
            linked.targets[position] = function.labels[label.name]
    return linked


def _place_shared(kernel: LinkedKernel, variables: Iterable[PtxVariable]) -> None:
    for variable in sorted(variables, key=lambda each: each.is_external):
        alignment = max(variable.alignment, SHARED_ALIGNMENT)
        start = -(-kernel.shared_size // alignment) * alignment
        kernel.shared[variable.name] = start
        kernel.shared_size = start + variable.size


def _note_access(kernel: LinkedKernel, at: PtxInstruction) -> None:
    """Note the bytes of the narrowest access of a state space."""
    if at.parts[0] in ("ld", "st", "atom", "red"):
        width = bits_of(at.parts[-1]) // 8
    elif at.parts[0] in ("ldmatrix", "stmatrix"):
        width = 2 if "trans" in at.parts else 4
    elif at.parts[:2] == ("cp", "async"):
        width = 4
    else:
        return
    parts = set(at.parts)
    is_generic = not parts & (_ON_CHIP | {"global"})
    for space, granule in kernel.granules.items():
        if space in parts or is_generic:
            kernel.granules[space] = min(granule, width)


def plain_name(name: str) -> str:
    """Return the name in the source of a variable with a mangled one: `A_shared` of `_ZZ2mmE8A_shared`."""
    match = re.search(r"E(\d+)(\w+)$", name)
    return match[2][: int(match[1])] if name.startswith("_ZZ") and match else name
