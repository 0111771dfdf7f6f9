"""split-constants: nests that depend on constant arguments alone become a separate function, which runs once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from xdsl.context import Context
from xdsl.dialects.builtin import DenseArrayBase, ModuleOp, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.passes import ModulePass

from compiler.dialects import loop
from compiler.dialects.calls import is_main
from compiler.dialects.functions import find_function, functions, positions
from compiler.program.names import fresh
from compiler.program.read import read
from compiler.program.tree import Alloc, Buffer, Literal, Node, Program, touched, walk
from compiler.program.write import write
from compiler.support.errors import InputError


@dataclass(frozen=True)
class SplitConstantsPass(ModulePass):
    """Split a loop function in two: nests that read constant arguments alone, and the remaining nests, which run in
    each call.

        func @f(%X, %W, %Y) attributes {outputs = 1} {
          %P = loop.alloc "P"
          nest { P = pack(W) }
          nest { Y = X * P } }
      ->                                          // names=W
        func @f.prepare(%W, %P) attributes {aligned = [1], outputs = 1} { nest { P = pack(W) } }
        func @f(%X, %P, %Y) attributes {aligned = [1], outputs = 1} { nest { Y = X * P } }

    A nest of the function's top level moves if it reads only constants and prepared temporaries, and writes only
    temporaries that no other nest writes, or reads before they are complete; the order of nests does not change.
    Temporaries between the functions become arguments, after the inputs and before the outputs. Constants without
    readers are dropped from the arguments; the others, and the temporaries between the functions, are aligned to 64
    bytes in the function that is called. If no nest moves there is no second function.

    `function` selects one of several. Raises InputError for an unknown function, or one that is not at the loop level,
    for a name that is no input of the function, and for an input that the function writes. Elsewhere: onnxruntime's and
    oneDNN's prepacked weights, TVM's bound parameters.
    """

    name = "split-constants"

    names: tuple[str, ...]
    function: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        old = find_function(op, self.function)
        if not is_main(old) and not any(isinstance(inner, loop.Placed) for inner in old.walk()):
            raise InputError(f"@{old.sym_name.data} is not at the loop level; lower it with te-to-loop")
        parts = split(old, self.names, taken=[f.sym_name.data for f in functions(op)])
        for new in parts.functions():
            op.body.block.insert_op_before(new, old)
        op.body.block.erase_op(old)


@dataclass(frozen=True)
class SplitProgram:
    """The two functions: `main` runs in each call, `prepare` once before the first; None if no nest moves.

    aligned: the names of arguments that are aligned to 64 bytes; in `main` those of `constants` are, too. constants:
    the names of the constant inputs. attributes: of both functions.
    """

    main: Program
    prepare: Program | None
    aligned: frozenset[str]
    constants: frozenset[str]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)

    @property
    def prepared(self) -> list[str]:
        """The names of the buffers that `prepare` writes and `main` reads."""
        return [] if self.prepare is None else [b.name for b in _results(self.prepare)]

    def functions(self) -> list[FuncOp]:
        """Return `prepare`, if any, and `main` as IR."""
        preparation = [] if self.prepare is None else [_function_of(self.prepare, self.aligned, self.attributes)]
        return [*preparation, _function_of(self.main, self.aligned | self.constants, self.attributes)]


def split(function: FuncOp, constants: Collection[str], taken: Sequence[str] = (), apart: bool = True) -> SplitProgram:
    """Split a loop function by the names of its constant inputs, as `program.read` names them.

    taken: names of functions that `prepare` must not have. apart: False to leave all nests in `main`. Raises
    InputError for names that are no inputs, or of inputs that are written.
    """
    program = read(function)
    aligned = [program.arguments[n].name for n in sorted(positions(function, "aligned"))]
    stale = ("aligned", "constants", "constant_values")
    attributes = {name: value for name, value in function.attributes.items() if name not in stale}
    return split_program(program, constants, aligned, attributes, taken, apart)


def split_program(
    program: Program,
    constants: Collection[str],
    aligned: Collection[str] = (),
    attributes: Mapping[str, Attribute] = MappingProxyType({}),
    taken: Sequence[str] = (),
    apart: bool = True,
) -> SplitProgram:
    """Split a program by the names of its constant inputs, with the parameters and errors of `split`.

    aligned: the names of arguments that are aligned to 64 bytes. attributes: of the function, for both results.
    """
    check_constants(program, constants)
    if not apart:
        return SplitProgram(program, None, frozenset(aligned), frozenset(), attributes)
    before, after, crossing = _partition(program, constants)
    names = frozenset((*aligned, *(b.name for b in crossing)))
    main = _main(program, constants, after, crossing)
    prepare = _prepare(program, before, crossing, fresh(f"{program.name}.prepare", taken)) if before else None
    return SplitProgram(main, prepare, names, frozenset(constants), attributes)


def without_preparation(program: Program) -> Program:
    """Return the part of a program that each call runs, with all nests that depend on its constants alone moved out;
    the program itself if it has no constants."""
    if not program.constants and not program.literals:
        return program
    _, after, crossing = _partition(program, program.constants)
    return _main(program, program.constants, after, crossing)


def _partition(program: Program, constants: Collection[str]) -> tuple[list[Node], list[Node], list[Buffer]]:
    """Return the nests that run once, the nests of each call, and the temporaries that the former write for the latter;
    without such temporaries no nest runs once."""
    moved = _movable_nests(program, constants)
    nests = {n: node for n, node in enumerate(program.body) if not isinstance(node, Alloc)}
    once: list[Node] = [node for n, node in nests.items() if n in moved]
    each_call: list[Node] = [node for n, node in nests.items() if n not in moved]
    shared = _crossing_buffers(program, once, each_call)
    return (once, each_call, shared) if shared else ([], [*once, *each_call], [])


def check_constants(program: Program, constants: Collection[str]) -> None:
    """Raise InputError for names that are no inputs, or of inputs that are written."""
    inputs = [b.name for b in program.arguments[: len(program.arguments) - program.outputs]]
    for name in constants:
        if name in inputs and program.writers[name]:
            raise InputError(f"'{name}' cannot be constant: @{program.name} writes it")
        if name in {b.name for b in _results(program)}:
            raise InputError(f"'{name}' cannot be constant: it is an output of @{program.name}")
        if name not in inputs:
            raise InputError(f"@{program.name} has no input '{name}' (it has {', '.join(inputs) or 'none'})")


def _results(program: Program) -> tuple[Buffer, ...]:
    return program.arguments[len(program.arguments) - program.outputs :]


def _movable_nests(program: Program, constants: Collection[str]) -> set[int]:
    """Return the positions of the nests that can run once: the largest set that reads no inputs but `constants` and
    depends on no nest outside it. Starting from all nests, those that cannot move are removed until all can."""
    uses = {n: _uses(node) for n, node in enumerate(program.body) if not isinstance(node, Alloc)}
    moved = set(uses)
    while True:
        completed = _completed_buffers(program, uses, moved)
        available = completed | set(constants) | set(program.stated)
        staying = {n for n in moved if not (uses[n].reads <= available and uses[n].writes <= completed)}
        if not staying:
            return moved
        moved -= staying


@dataclass(frozen=True)
class _Uses:
    """The names of the buffers that a nest reads and writes, without those allocated in it."""

    reads: set[str]
    writes: set[str]


def _uses(node: Node) -> _Uses:
    allocated = {inner.buffer.name for inner in walk([node]) if isinstance(inner, Alloc)}
    reads, writes = touched([node])
    return _Uses(reads - allocated, writes - allocated)


def _completed_buffers(program: Program, uses: dict[int, _Uses], moved: set[int]) -> set[str]:
    """Return the names of temporaries that only moved nests write, all before any other nest reads. A temporary in
    another scope than global cannot be an argument: only moved nests may read it."""
    completed = set()
    for buffer in [node.buffer for node in program.body if isinstance(node, Alloc)]:
        writers = {n for n, use in uses.items() if buffer.name in use.writes}
        readers = {n for n, use in uses.items() if buffer.name in use.reads} - moved
        is_complete = max(writers, default=0) <= min(readers, default=len(program.body))
        if writers <= moved and is_complete and (buffer.scope == "global" or not readers):
            completed.add(buffer.name)
    return completed


def _crossing_buffers(program: Program, before: Sequence[Node], after: Sequence[Node]) -> list[Buffer]:
    """Return the temporaries that nests of `before` write and those of `after` read, in the order of the program."""
    shared = touched(before)[1] & touched(after)[0]
    return [node.buffer for node in program.body if isinstance(node, Alloc) and node.buffer.name in shared]


def _main(program: Program, constants: Collection[str], nests: Sequence[Node], crossing: Sequence[Buffer]) -> Program:
    reads, _ = touched(nests)
    count = len(program.arguments) - program.outputs
    inputs = [b for b in program.arguments[:count] if b.name not in constants or b.name in reads]
    arguments = (*inputs, *crossing, *_results(program))
    body = _body(program, nests, crossing)
    return replace(program, arguments=arguments, body=body, constants=(), values=(), literals=_literals(program, nests))


def _prepare(program: Program, nests: Sequence[Node], crossing: Sequence[Buffer], name: str) -> Program:
    reads, _ = touched(nests)
    inputs = [b for b in program.arguments if b.name in reads]
    body = _body(program, nests, crossing)
    return Program(name, (*inputs, *crossing), len(crossing), body, literals=_literals(program, nests))


def _literals(program: Program, nests: Sequence[Node]) -> tuple[Literal, ...]:
    """Return the literals that nests read."""
    reads, _ = touched(nests)
    return tuple(literal for literal in program.literals if literal.buffer.name in reads)


def _body(program: Program, nests: Sequence[Node], crossing: Sequence[Buffer]) -> tuple[Node, ...]:
    """Return nests with the allocations of their temporaries that are no arguments, in the order of the program."""
    reads, writes = touched(nests)
    allocated = (reads | writes) - {b.name for b in crossing}
    node_ids = {id(node) for node in nests}
    body = [n for n in program.body if id(n) in node_ids or (isinstance(n, Alloc) and n.buffer.name in allocated)]
    return tuple(body)


def _function_of(program: Program, aligned: Collection[str], attributes: Mapping[str, Attribute]) -> FuncOp:
    """Write a program as a function, with the positions of its aligned arguments and further attributes."""
    function = write(program)
    function.attributes = {**attributes, **function.attributes}
    positions = [n for n, buffer in enumerate(program.arguments) if buffer.name in aligned]
    if positions:
        function.attributes["aligned"] = DenseArrayBase.from_list(i64, positions)
    return function
