"""`Artefact`: a compiled function as data, which one process makes and another one loads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from xdsl.dialects.builtin import ModuleOp

from compiler.lowering.low_to_llvm import emit
from compiler.targets.cpu.compile import ObjectCode, load_object, object_code
from compiler.targets.cpu.facts import UNKNOWN, Facts
from compiler.targets.cpu.kernel import NOTHING, FixedArguments, Interface, Kernel, Text
from compiler.targets.cpu.load import interface
from compiler.targets.cpu.tiles import permit_tiles, uses_tiles
from compiler.types.machines import Machine, lacking


@dataclass(frozen=True)
class Artefact:
    """A compiled function: its machine code, its interface, whether it uses tile registers, and the preparation that
    runs before its first call.

    It pickles, and holds for machines of the same kind as the one that it was made for.
    """

    interface: Interface
    code: ObjectCode
    policy: str
    tiles: bool = False
    preparation: Preparation | None = None


@dataclass(frozen=True)
class Preparation:
    """A function that makes further arrays of a program's constants.

    Arrays are numbered over the program's arguments, then over those that the preparation makes: `takes` are the
    positions of its inputs, `passes` of all arguments of the function that it calls.
    """

    artefact: Artefact
    takes: tuple[int, ...]
    passes: tuple[int, ...]


def compile_artefact(
    module: ModuleOp, machine: Machine, name: str | None = None, policy: str = "contract", threads: int | None = None
) -> Artefact:
    """Compile a low-level module, its buffers planned, as `load` does, without loading it. Raises what `load` does."""
    text = emit(module, machine)
    face = interface(module, name, threads)
    return Artefact(face, object_code(text, machine), policy, uses_tiles(module))


def load_artefact(
    artefact: Artefact,
    machine: Machine,
    texts: Mapping[str, Text] = MappingProxyType({}),
    fixed: FixedArguments = NOTHING,
    facts: Facts = UNKNOWN,
) -> Kernel:
    """The kernel of an artefact, without its preparation: `fixed` are the arrays that this, and others, have made.

    Raises TargetError where a function that it calls is in no library here, and where tile registers are refused.
    """
    if artefact.tiles and not lacking(machine):
        permit_tiles()
    return Kernel(artefact.interface, load_object(artefact.code, machine), artefact.policy, texts, fixed, facts)
