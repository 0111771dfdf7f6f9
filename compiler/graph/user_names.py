"""Rename programs and scripts from canonical names to the user's names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from compiler.dialects.access import AxisAttr, axis_attribute
from compiler.graph.provenance import Provenance, renamed_prefix
from compiler.graph.rename import with_operands, with_results
from compiler.graph.tree import Compute, Graph, Node
from compiler.program import tree
from compiler.program.names import Names, fresh
from compiler.program.tree import Access, Alloc, Block, Buffer, Program, blocks_in


def graph_with_user_names(graph: Graph, names: Provenance) -> Graph:
    """Rename a graph from canonical names to the user's names; duplicates get a number, other names stay."""
    values = _distinct({name: names.values.get(name, name) for name in graph.values})
    canonical_labels = [node.block.label for node in graph.nodes if isinstance(node, Compute)]
    labels = _distinct({label: names.blocks.get(label, label) for label in canonical_labels})

    def spelled(node: Node) -> Node:
        node = with_operands(node, values)
        if isinstance(node, Compute):
            label = node.block.label
            axes = _axes(node.block.axes, names.axes.get(label, {}))
            node = replace(node, block=replace(node.block, label=labels[label], axes=axes))
        return with_results(node, tuple(replace(value, name=values[value.name]) for value in node.results))

    inputs = tuple(replace(value, name=values[value.name]) for value in graph.inputs)
    result_names = tuple(values[name] for name in graph.results)
    return replace(graph, inputs=inputs, nodes=tuple(map(spelled, graph.nodes)), results=result_names)


def program_with_user_names(program: Program, names: Provenance, arguments: Mapping[str, str]) -> Program:
    """Rename a loop program, scheduled or not, to the user's names; `arguments` maps its arguments to their new names.

    A name that a primitive has derived, such as `product0.init`, keeps its suffix. Names without a user's name
    stay, and duplicates get a number.

    >>> A = te.placeholder((4,), name="A")
    >>> task = SearchTask(te.function("f", [A], te.nn.exp(A, name="B")), threads=1)
    >>> program = strata.graph.program_with_user_names(task.schedule.program, task.provenance, {"a0": "A", "map0": "B"})
    >>> list(program.buffers), list(program.blocks)
    (['A', 'B'], ['B'])
    """
    return _Speller(program, names, arguments).program()


def script_with_user_names(script: ModuleOp, names: Provenance) -> ModuleOp:
    """Copy a script, and rename its blocks, buffers and loops to the user's names.

        %product0 = sched.get_block %f "product0"        // names: product0 is mm, its axes are m, n, k
        %i0, %i1, %r0 = sched.get_loops %product0
        %a1.pack = sched.pack %product0 "a1" ...         // a1 is W
      ->
        %mm = sched.get_block %f "mm"
        %m, %n, %k = sched.get_loops %mm
        %W.pack = sched.pack %mm "W" ...

    A name that a primitive has derived, such as `product0.init`, keeps its suffix. Names without a user's name
    stay. The copy is for reading: laws may have removed computes that the user's program has.

    >>> A = te.placeholder((4,), name="A")
    >>> task = SearchTask(te.function("f", [A], te.nn.exp(A, name="B")), threads=1)
    >>> s = Schedule(task.module)
    >>> s.parallel(s.get_loops("map0")[0])
    >>> print(strata.schedule.as_python(strata.graph.script_with_user_names(s.script, task.provenance)))
    def schedule(s):
        B = s.get_block('B')
        i0, = s.get_loops(B)
        s.parallel(i0)
    """
    copy = script.clone()
    labels = names.labels
    subjects: dict[SSAValue, str] = {}
    for op in copy.walk():
        label = _about(op, subjects)
        user_names = {**labels, **names.axes.get(label, {})}
        for value in op.results:
            subjects[value] = label
            if value.name_hint is not None:
                new = renamed_prefix(value.name_hint, user_names)
                value.name_hint = new if SSAValue.is_valid_name(new) else value.name_hint
        op.properties = {key: _in_script(value, labels) for key, value in op.properties.items()}
    return copy


class _Speller:
    def __init__(self, program: Program, names: Provenance, arguments: Mapping[str, str]) -> None:
        self.canonical, self.names = program, names
        buffer_names = {
            n: arguments.get(n) or names.values.get(n) or renamed_prefix(n, names.labels) for n in program.buffers
        }
        self.buffers = _distinct(buffer_names)
        self.labels = _distinct({label: renamed_prefix(label, names.blocks) for label in program.blocks})

    def program(self) -> Program:
        canonical, buffers = self.canonical, self.buffers
        return replace(
            canonical,
            arguments=tuple(map(self._buffer, canonical.arguments)),
            body=tuple(self._node(node, {}) for node in canonical.body),
            constants=tuple(buffers[name] for name in canonical.constants),
            literals=tuple(replace(literal, buffer=self._buffer(literal.buffer)) for literal in canonical.literals),
            values=tuple((buffers[name], value) for name, value in canonical.values),
        )

    def _buffer(self, buffer: Buffer) -> Buffer:
        return replace(buffer, name=self.buffers[buffer.name])

    def _node(self, node: tree.Node, around: Mapping[str, str]) -> tree.Node:
        """A node under the user's names; `around` maps the labels of the loops around it to their new labels, which no
        loop inside may have."""
        match node:
            case Alloc():
                return Alloc(self._buffer(node.buffer))
            case Block():
                return self._block(node)
        label = fresh(renamed_prefix(node.label, self._axes_of(blocks_in(node)[0])), set(around.values()))
        inside = {**around, node.label: label}
        body = tuple(self._node(inner, inside) for inner in node.body)
        attributes = tuple((name, self._attribute(value, inside)) for name, value in node.attributes)
        return replace(node, label=label, body=body, attributes=attributes)

    def _attribute(self, value: Attribute, loops: Mapping[str, str]) -> Attribute:
        """Return an attribute of a loop with the buffers and loops that it names, as `prefetch` does, renamed; `loops`
        maps the labels of the loops around to their new labels."""
        match value:
            case StringAttr():
                return StringAttr(self.buffers.get(value.data, loops.get(value.data, value.data)))
            case ArrayAttr():
                return ArrayAttr([self._attribute(element, loops) for element in value])
            case DictionaryAttr():
                entries = {self.buffers.get(n, n): self._attribute(element, loops) for n, element in value.data.items()}
                return DictionaryAttr(entries)
        return value

    def _axes_of(self, block: Block) -> Mapping[str, str]:
        """Map the canonical axes of the compute that a block comes from to the user's names."""
        return self.names.axes.get(block.label.partition(".")[0], {})

    def _block(self, block: Block) -> Block:
        table, origin = block.table, block.origin
        return replace(
            block,
            label=self.labels[block.label],
            axes=_axes(block.axes, self._axes_of(block)),
            reads=tuple(map(self._access, block.reads)),
            writes=tuple(map(self._access, block.writes)),
            table=None if table is None else replace(table, buffer=self.buffers[table.buffer]),
            origin=None if origin is None else (renamed_prefix(origin[0], self.names.blocks), origin[1]),
        )

    def _access(self, access: Access) -> Access:
        return replace(access, buffer=self.buffers[access.buffer])


def _axes(axes: tuple[AxisAttr, ...], names: Mapping[str, str]) -> tuple[AxisAttr, ...]:
    return tuple(axis_attribute(renamed_prefix(axis.label, names), axis.size, axis.is_reduce) for axis in axes)


def _distinct(names: Mapping[str, str]) -> dict[str, str]:
    """Map each key of `names` to its value; a value that several keys have gets a number after the first."""
    used_names = Names()
    return {former: used_names.fresh(name) for former, name in names.items()}


def _about(op: Operation, subjects: Mapping[SSAValue, str]) -> str:
    """The canonical label of the compute that an op refers to, by name or through its first operand in `subjects`; ""
    without one."""
    if op.name == "sched.get_block":
        texts = [value.data for value in op.properties.values() if isinstance(value, StringAttr)]
        return texts[0].partition(".")[0] if texts else ""
    return next((subjects[value] for value in op.operands if value in subjects), "")


def _in_script(value: Attribute, names: Mapping[str, str]) -> Attribute:
    match value:
        case StringAttr():
            return StringAttr(renamed_prefix(value.data, names))
        case ArrayAttr():
            return ArrayAttr([_in_script(element, names) for element in value])
    return value
