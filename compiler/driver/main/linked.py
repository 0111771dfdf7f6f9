"""`Linked`: a compiled program of groups as data, for any machine of its kind; `load_linked`: its kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter

from compiler.dialects.numbers import Array
from compiler.driver.main.constants import ConstantBlock, fill_constants
from compiler.targets.arena import Allocate, arena
from compiler.targets.cpu.compile import LoadedCode, ObjectCode, load_objects
from compiler.targets.cpu.facts import BuildFacts, GroupFacts
from compiler.targets.cpu.kernel import NO_FIXED_ARGUMENTS, FixedArguments, Interface, Kernel, LevelText
from compiler.targets.cpu.openmp import usable_threads
from compiler.targets.cpu.tiles import permit_tiles
from compiler.types.machines import host, missing_features


@dataclass(frozen=True)
class Linked:
    """Main and its units as machine code.

    interface: of main. objects: main's code, then the units'. tiles: whether a unit uses tile registers. position: of
    the block of constants among main's arguments. block: its layout and preparations. groups: the facts of each unit.
    callees: the interfaces of the units by name. temporaries_bytes: of all temporaries, before they share memory.
    """

    interface: Interface
    objects: tuple[ObjectCode, ...]
    policy: str
    threads: int
    tiles: bool
    position: int
    block: ConstantBlock
    groups: tuple[GroupFacts, ...]
    callees: Mapping[str, Interface]
    temporaries_bytes: int


def load_linked(
    linked: Linked,
    arrays: Mapping[str, Array],
    texts: Mapping[str, LevelText],
    start: float,
    cached: bool = False,
    allocate: Allocate = arena,
) -> Kernel:
    """Load a program as a kernel, and fill its block of constants.

    arrays: of the constants, by name. start: of the build, on perf_counter. cached: whether the program is from the
    cache. allocate: allocates the block. Raises TargetError if no library here has a function that the program calls,
    or if the system refuses tile registers.
    """
    interface, machine = linked.interface, host()
    if linked.tiles and not missing_features(machine):
        permit_tiles()
    library = load_objects(linked.objects, machine)
    fixed = _fixed(linked, arrays, library, allocate)
    facts = BuildFacts(
        linked.groups,
        arena_bytes=interface.workspace.size(interface.threads or 1),
        temporaries_bytes=linked.temporaries_bytes,
        constant_bytes=linked.block.bytes,
        build_seconds=perf_counter() - start,
        cached=cached,
    )
    return Kernel(interface, library, linked.policy, texts, fixed, facts, linked.callees)


def _fixed(linked: Linked, arrays: Mapping[str, Array], library: LoadedCode, allocate: Allocate) -> FixedArguments:
    """The filled block of constants, by its position among the arguments of main; nothing for a main without them."""
    if not linked.block.constants:
        return NO_FIXED_ARGUMENTS
    block = fill_constants(linked.block, arrays, library, usable_threads(linked.threads), allocate)
    return FixedArguments({linked.position: block})
