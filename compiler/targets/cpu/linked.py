"""`Linked`: a compiled program as data, for any machine of its kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from compiler.graph.main import ConstantSlot
from compiler.program.tree import Buffer
from compiler.targets.cpu.compile import ObjectCode
from compiler.targets.cpu.kernel import Interface
from compiler.targets.groups import GroupFacts
from compiler.types.machines import Machine


@dataclass(frozen=True)
class Preparation:
    """A call that runs once: its native function, and the names of the buffers that it reads and writes."""

    interface: Interface
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class ConstantBlock:
    """The block of memory with the constants of a program. constants: with their offsets in the block. bytes: its size.
    preparations: the calls that run once, in order. prepared: the buffers that they fill, by name."""

    constants: tuple[ConstantSlot, ...] = ()
    bytes: int = 0
    preparations: tuple[Preparation, ...] = ()
    prepared: Mapping[str, Buffer] = field(default_factory=dict)


@dataclass(frozen=True)
class Linked:
    """A compiled program, of one function or of main and its units.

    interface: of the function that each call runs. machine: for which it was compiled. threads: of the build: of its
    preparations, and the default of parallel loops. objects: its code first, then the code that it and the preparations
    call. tiles: whether the code uses tile registers. fixed: the positions of native arguments in the block of
    constants, each with its offset in bytes. block: its layout and preparations. groups: the facts of each unit.
    callees: the interfaces of the units by name; none for one function. temporaries_bytes: of all temporaries between
    units, before they share memory.
    """

    interface: Interface
    machine: Machine
    objects: tuple[ObjectCode, ...]
    policy: str
    threads: int
    tiles: bool
    fixed: tuple[tuple[int, int], ...] = ()
    block: ConstantBlock = ConstantBlock()
    groups: tuple[GroupFacts, ...] = ()
    callees: Mapping[str, Interface] = field(default_factory=dict)
    temporaries_bytes: int = 0
