"""`Description`: the interface of an exported library and of each of its versions, also as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import compress
from pathlib import Path
from typing import Any

from compiler.dialects.functions import SLOT_ALIGNMENT
from compiler.dialects.numbers import dtype_of
from compiler.graph.main import size
from compiler.lowering.low_to_llvm.signature import Workspace
from compiler.support.errors import InputError, TargetError
from compiler.targets.arguments import Argument, Array
from compiler.targets.cpu.compile import ObjectCode
from compiler.targets.cpu.kernel import Interface
from compiler.targets.cpu.linked import Linked
from compiler.types.dtypes import DTYPES
from compiler.types.machines import Machine

FORMAT = 1
"""The number of the format of the JSON text."""
LONGEST_NAME = 100
"""The most letters of a library's name."""
SYSTEM_PREFIXES = (
    "F R W X AF AT DT E EAI EX KEY MAP MM NLMSG NR NT ODK PF PT RTA RTNH RX SHT STT T TIME UTMP UTMPX WTMP WTMPX Z"
)
"""The words whose macros system headers have, such as F_OK of unistd.h or MAP_FILE of sys/mman.h."""
SYSTEM_FUNCTIONS = ("argp_program", "gnu_get_libc")
"""The prefixes that give names of glibc, such as gnu_get_libc_version."""
HEADER_BYTES = 64
"""The bytes before the constants, with which `NAME_run` recognises constants of its own version."""


@dataclass(frozen=True)
class Pointer:
    """A pointer argument of a native function. kind: `input`, `output` and `weight` for arrays of the caller,
    `constant` and `scratch` for memory of the library. number: the position of an array among those of its kind, or the
    offset in bytes in the memory; a scalar by value counts as an input."""

    kind: str
    number: int


@dataclass(frozen=True)
class NativeCall:
    """A call of a native function: its symbol, its pointers in order, and whether the thread count is its last
    argument, behind the workspace."""

    symbol: str
    parameters: tuple[Pointer, ...]
    takes_threads: bool


@dataclass(frozen=True)
class CodeVersion:
    """A program compiled for one machine.

    objects: its machine code. tiles: whether it uses tile registers. run: the function of each call. preparations: the
    calls that compute the prepared constants, in order. copies: of weights to constants, each as the position of the
    weight and the offset in bytes among the constants. constant_bytes: of the constants without the library's header.
    scratch_bytes: of the memory of the preparations, whose workspace begins at `scratch_workspace`. prefix: of the
    symbols in the library, which those of the objects lack. text: C text of the function `run`, instead of machine
    code; empty for a version of machine code.
    """

    machine: Machine
    objects: tuple[ObjectCode, ...]
    tiles: bool
    run: NativeCall
    workspace: Workspace
    preparations: tuple[NativeCall, ...]
    copies: tuple[tuple[int, int], ...]
    constant_bytes: int
    scratch_bytes: int
    scratch_workspace: int
    prefix: str = ""
    text: str = ""


@dataclass(frozen=True)
class Description:
    """The interface of a library.

    name: the prefix of its functions. program: the name of the compiled function. threads: the number of threads for
    which it was scheduled, None for code without parallel loops; for 1 they run serially. policy: of floating point.
    inputs, outputs, weights: the arrays of the caller, in order. results: whether the program has results; if not, it
    works in place on its outputs. versions: for distinct machines, the best first.
    """

    name: str
    program: str
    policy: str
    threads: int | None
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    weights: tuple[Argument, ...]
    versions: tuple[CodeVersion, ...]
    results: bool = True

    @cached_property
    def prefix(self) -> str:
        """The prefix of its macros: its name in capitals, with `_LIBRARY` behind one of SYSTEM_PREFIXES, which system
        headers use."""
        name = self.name.upper()
        return f"{name}_LIBRARY" if name in SYSTEM_PREFIXES.split() else name

    @property
    def architecture(self) -> str:
        """The architecture of all versions."""
        return self.versions[0].machine.architecture

    def json(self) -> str:
        """The interface as JSON, without machine code."""
        arrays = {kind: [_plain(a) for a in getattr(self, kind)] for kind in ("inputs", "outputs", "weights")}
        versions = [
            {
                "cpu": v.machine.cpu,
                "features": sorted(v.machine.present),
                "constant_bytes": v.constant_bytes,
                "workspace": [v.workspace.shared, v.workspace.private],
                "arguments": [[parameter.kind, parameter.number] for parameter in v.run.parameters],
                "takes_threads": v.run.takes_threads,
            }
            for v in self.versions
        ]
        facts = {"strata": FORMAT, "name": self.name, "program": self.program, "policy": self.policy}
        return json.dumps({**facts, "threads": self.threads, "results": self.results, **arrays, "versions": versions})


def _plain(argument: Argument) -> dict[str, object]:
    fields: dict[str, object] = {"name": argument.name, "dtype": argument.dtype.name, "shape": list(argument.shape)}
    return {**fields, "by_value": argument.by_value, "alignment": alignment(argument)}


def alignment(argument: Argument) -> int:
    """The alignment in bytes of the array of an argument: its own, at least that of its dtype."""
    return max(argument.alignment, argument.dtype.alignment)


def identifier(text: str) -> str:
    """Return a text as the prefix of C identifiers: other characters than ASCII letters and digits become `_`, and `_`
    precedes a leading digit. Raises InputError for a text without such a letter or digit, for one longer than
    LONGEST_NAME, and for one of SYSTEM_FUNCTIONS."""
    name = re.sub(r"[^0-9A-Za-z_]", "_", text)
    if len(name) > LONGEST_NAME:
        raise InputError(f"a name of C functions has at most {LONGEST_NAME} letters, not {len(name)}")
    if not name.strip("_"):
        raise InputError(f"'{text}' gives no name of C functions: state name= (--library)")
    if name in SYSTEM_FUNCTIONS:
        raise InputError(f"'{name}_version' is a name of the C library: state another name= (--library)")
    return f"_{name}" if name[0].isdigit() else name


Arguments = tuple[Argument, ...]


def combined_weights(
    programs: Sequence[tuple[Linked, Mapping[str, Array]]],
) -> tuple[dict[str, Array], list[Linked]]:
    """Return the weights of versions of a program by name, sorted, equal ones once, and the versions with these names.
    programs: each version with arrays by name, at least those of its weights. The name of a weight that differs between
    versions, such as one that a law computes for a machine, ends with the version's processor."""
    combined, renamed = dict[str, Array](), list[Linked]()
    for linked, arrays in programs:
        names = dict[str, str]()
        for name in weights_of(linked):
            earlier = combined.get(name)
            is_other = earlier is not None and not _equal(earlier, arrays[name])
            names[name] = f"{name} for {linked.machine.cpu}" if is_other else name
            combined[names[name]] = arrays[name]
        renamed.append(_with_names(linked, names))
    return {name: combined[name] for name in sorted(combined)}, renamed


def _equal(left: Array, right: Array) -> bool:
    return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()


def _with_names(linked: Linked, names: Mapping[str, str]) -> Linked:
    """A program with other names of its weights, from old to new; a name that `names` lacks stays."""
    block = linked.block
    slots = tuple(
        replace(slot, buffer=replace(slot.buffer, name=names.get(slot.buffer.name, slot.buffer.name)))
        for slot in block.constants
    )
    preparations = tuple(replace(p, inputs=tuple(names.get(n, n) for n in p.inputs)) for p in block.preparations)
    return replace(linked, block=replace(block, constants=slots, preparations=preparations))


def describe(name: str, programs: Sequence[Linked]) -> Description:
    """Describe a library named `name` of programs, at least one, that are one program compiled for several machines,
    the best first. Raises TargetError if they differ in their inputs, outputs or architecture, and InputError if two
    are for one processor."""
    cpus = [linked.machine.cpu for linked in programs]
    twice = next((cpu for cpu in cpus if cpus.count(cpu) > 1), None)
    if twice is not None:
        raise InputError(f"two versions of {name} are for the processor {twice}: state it once")
    interfaces = [_interface(linked) for linked in programs]
    if len({linked.machine.architecture for linked in programs}) > 1:
        raise TargetError(f"the versions of {name} are for several architectures: export a library for each")
    if any(other != interfaces[0] for other in interfaces[1:]):
        raise TargetError(f"the versions of {name} differ in their arguments")
    inputs, outputs = interfaces[0]
    by_name = {name: argument for linked in programs for name, argument in weights_of(linked).items()}
    weights = tuple(by_name[name] for name in sorted(by_name))
    versions = tuple(_version(linked, weights) for linked in programs)
    if len(versions) > 1 or _clashes(name, versions[0]):
        versions = tuple(_apart(version, number) for number, version in enumerate(versions))
    first = programs[0]
    threads = first.threads if any(linked.interface.threads is not None for linked in programs) else None
    program = first.interface
    return Description(
        name, program.name, first.policy, threads, inputs, outputs, weights, versions, bool(program.outputs)
    )


def _clashes(name: str, version: CodeVersion) -> bool:
    """Whether a symbol of a version's objects is a word of the C text, such as getenv, or named like its functions."""
    symbols = {symbol for code in version.objects for symbol in code.defined}
    own = re.compile(rf"{name}_.*|(run|prepare|is_supported|native)_[0-9_]+")
    return any(symbol in _words_of_c() or own.fullmatch(symbol) for symbol in symbols)


@cache
def _words_of_c() -> frozenset[str]:
    """The words of the templates in C, among them the functions of the C library that they call."""
    texts = (path.read_text() for path in Path(__file__).parent.glob("*.c"))
    return frozenset(word for text in texts for word in re.findall(r"\w+", text))


def _apart(version: CodeVersion, number: int) -> CodeVersion:
    """Return a version whose symbols begin with `v`, its number and a dot, so that they differ from those of other
    versions."""

    def renamed(call: NativeCall) -> NativeCall:
        return replace(call, symbol=f"v{number}.{call.symbol}")

    return replace(
        version, run=renamed(version.run), preparations=tuple(map(renamed, version.preparations)), prefix=f"v{number}."
    )


def _interface(linked: Linked) -> tuple[Arguments, Arguments]:
    """The inputs and the outputs of a program, without its fixed arrays; of a program without results, all arrays are
    outputs. Scalars by value are inputs."""
    arguments = [a for n, a in enumerate(linked.interface.arguments) if n not in dict(linked.fixed)]
    count = len(arguments) - linked.interface.outputs
    is_input = [a.by_value or (n < count and bool(linked.interface.outputs)) for n, a in enumerate(arguments)]
    inputs = tuple(compress(arguments, is_input))
    return inputs, tuple(a for a, as_input in zip(arguments, is_input, strict=True) if not as_input)


def weights_of(linked: Linked) -> dict[str, Argument]:
    """The arrays that a caller gives for a program's constants, by name, sorted: constants, and inputs of preparations,
    without prepared ones."""
    block, weights = linked.block, dict[str, Argument]()
    for preparation in block.preparations:
        for name, argument in zip(preparation.inputs, preparation.interface.arguments, strict=False):
            weights[name] = Argument(name, argument.shape, argument.dtype, alignment=argument.alignment)
    for slot in block.constants:
        buffer = slot.buffer
        weights.setdefault(buffer.name, Argument(buffer.name, tuple(buffer.shape), dtype_of(buffer.element)))
    return {name: weights[name] for name in sorted(weights) if name not in block.prepared}


def _version(linked: Linked, weights: Arguments) -> CodeVersion:
    interface, fixed = linked.interface, dict(linked.fixed)
    numbers = {weight.name: number for number, weight in enumerate(weights)}
    offsets = {slot.buffer.name: slot.offset for slot in linked.block.constants}
    scratch, scratch_bytes = dict[str, int](), 0
    for name, buffer in linked.block.prepared.items():
        if name not in offsets:
            scratch[name] = scratch_bytes
            scratch_bytes += _rounded(size(buffer))

    def pointer(name: str) -> Pointer:
        if name in offsets:
            return Pointer("constant", offsets[name])
        return Pointer("scratch", scratch[name]) if name in scratch else Pointer("weight", numbers[name])

    preparations = tuple(
        NativeCall(p.interface.symbol, tuple(map(pointer, (*p.inputs, *p.outputs))), p.interface.threads is not None)
        for p in linked.block.preparations
    )
    workspaces = [p.interface.workspace.size(1) for p in linked.block.preparations]
    return CodeVersion(
        linked.machine,
        linked.objects,
        linked.tiles,
        NativeCall(interface.symbol, _parameters(interface, fixed), interface.threads is not None),
        interface.workspace,
        preparations,
        tuple((numbers[name], offset) for name, offset in offsets.items() if name in numbers),
        _rounded(linked.block.bytes),
        scratch_bytes + max(workspaces, default=0),
        scratch_bytes,
    )


def _rounded(bytes: int) -> int:
    return -(-bytes // SLOT_ALIGNMENT) * SLOT_ALIGNMENT


def _parameters(interface: Interface, fixed: Mapping[int, int]) -> tuple[Pointer, ...]:
    """The pointers of a program's function, in order. Its last `outputs` arguments are results; without results all
    arrays are outputs. fixed: the offsets in bytes of its constants, by the argument's position."""
    parameters, counts = list[Pointer](), {"input": 0, "output": 0}
    first_output = len(interface.arguments) - interface.outputs if interface.outputs else 0
    for position, argument in enumerate(interface.arguments):
        if position in fixed:
            parameters.append(Pointer("constant", fixed[position]))
            continue
        kind = "input" if argument.by_value or position < first_output else "output"
        parameters.append(Pointer(kind, counts[kind]))
        counts[kind] += 1
    return tuple(parameters)


def parsed(text: str, source: str) -> dict[str, Any]:
    """Parse the JSON of a library; `source` names the library in messages. Raises TargetError for a text that is no
    JSON, and for another format than FORMAT."""
    try:
        facts = json.loads(text)
    except ValueError as error:
        raise TargetError(f"{source} describes no library: {error}") from error
    if not isinstance(facts, dict) or facts.get("strata") != FORMAT:
        raise TargetError(f"{source} is of another format than {FORMAT}, by another release")
    return facts


def argument_of(fields: Mapping[str, Any]) -> Argument:
    """Return the argument of a JSON object with the keys name, dtype, shape, by_value and alignment. Requires a dtype
    of DTYPES, by numpy's name."""
    row = next(row for row in DTYPES.values() if row.numpy == fields["dtype"])
    return Argument(fields["name"], tuple(fields["shape"]), row.array, fields["by_value"], fields["alignment"])
