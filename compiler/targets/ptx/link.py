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
    """A function with resolved branches and a frame. targets: for the position of each branch in the body, the position
    that it jumps to. offsets: the byte offset of each parameter, result and local variable in a thread's frame of
    `frame_size` bytes."""

    function: PtxFunction
    targets: dict[int, int] = field(default_factory=dict)
    offsets: dict[str, int] = field(default_factory=dict)
    frame_size: int = 0


@dataclass
class LinkedKernel:
    """A kernel, `main`, with all device functions of its text by name. shared: the byte offset of each variable in a
    block's shared memory of `shared_size` bytes; dynamic arrays begin at its end. granules: the bytes of the narrowest
    access of the text, 16 at most, for shared and global memory."""

    main: LinkedFunction
    functions: dict[str, LinkedFunction]
    shared: dict[str, int] = field(default_factory=dict)
    shared_size: int = 0
    granules: dict[str, int] = field(default_factory=lambda: {"shared": 16, "global": 16})


def link(program: PtxProgram, name: str) -> LinkedKernel:
    """Link the kernel `name` of a program, with all device functions of its text, called or not. Raises InputError if
    there is no such kernel, PtxError for a branch to an unknown label."""
    function = program.functions.get(name)
    if function is None or not function.is_kernel:
        raise InputError(f"the PTX has no kernel '{name}'")
    called = {each.name: _linked(each) for each in program.functions.values() if not each.is_kernel}
    kernel = LinkedKernel(_linked(function), called)
    bodies = [function, *(each.function for each in called.values())]
    variables = [*program.variables, *(variable for body in bodies for variable in body.variables)]
    _place_shared(kernel, [variable for variable in variables if variable.space == "shared"])
    for body in bodies:
        for instruction in body.body:
            _note_access(kernel, instruction)
    return kernel


def _linked(function: PtxFunction) -> LinkedFunction:
    linked = LinkedFunction(function)
    own = [variable for variable in function.variables if variable.space in ("local", "param")]
    for variable in (*function.parameters, *function.results, *own):
        start = -(-linked.frame_size // 16) * 16
        linked.offsets[variable.name] = start
        linked.frame_size = start + variable.size
    for position, instruction in enumerate(function.body):
        if instruction.parts[0] == "bra":
            label = instruction.operands[0]
            if not isinstance(label, VariableName) or label.name not in function.labels:
                raise instruction.refused("there is no such label")
            linked.targets[position] = function.labels[label.name]
    return linked


def _place_shared(kernel: LinkedKernel, variables: Iterable[PtxVariable]) -> None:
    for variable in sorted(variables, key=lambda each: each.is_external):
        alignment = max(variable.alignment, SHARED_ALIGNMENT)
        start = -(-kernel.shared_size // alignment) * alignment
        kernel.shared[variable.name] = start
        kernel.shared_size = start + variable.size


def _note_access(kernel: LinkedKernel, instruction: PtxInstruction) -> None:
    """Lower the granules of the spaces that an instruction accesses to the width of its element in bytes, of an
    asynchronous copy to 4; a generic access counts for both."""
    if instruction.parts[0] in ("ld", "st", "atom", "red"):
        width = bits_of(instruction.parts[-1]) // 8
    elif instruction.parts[0] in ("ldmatrix", "stmatrix"):
        width = 2 if "trans" in instruction.parts else 4
    elif instruction.parts[:2] == ("cp", "async"):
        width = 4
    else:
        return
    parts = set(instruction.parts)
    is_generic = not parts & (_ON_CHIP | {"global"})
    for space, granule in kernel.granules.items():
        if space in parts or is_generic:
            kernel.granules[space] = min(granule, width)


def plain_name(name: str) -> str:
    """Return the source name of a mangled local variable: `A_shared` of `_ZZ2mmE8A_shared`; other names unchanged."""
    match = re.search(r"E(\d+)(\w+)$", name)
    return match[2][: int(match[1])] if name.startswith("_ZZ") and match else name
