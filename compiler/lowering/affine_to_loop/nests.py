"""The walk over the ops of a function: loops, conditionals, stores, loop-carried scalars, allocations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

from xdsl.dialects import affine, func, memref, scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block as IrBlock
from xdsl.ir import Operation, SSAValue
from xdsl.traits import SymbolTable

from compiler.affine import linear as lin
from compiler.dialects.dense import DenseAttr
from compiler.dialects.upstream.memref import GlobalOp
from compiler.lowering.affine_to_loop.bounds import LoopBounds, bounds_of
from compiler.lowering.affine_to_loop.builder import Builder, Surroundings
from compiler.lowering.affine_to_loop.memory import (
    LOOPS,
    ForLike,
    IfLike,
    LoadLike,
    StoreLike,
    clobbered,
    index_of,
    loads_in,
    name_of,
    ops_from,
)
from compiler.lowering.affine_to_loop.updates import UpdateChain, chain_of
from compiler.lowering.affine_to_loop.values import condition_of
from compiler.program.tree import Access, Alloc, Literal, Loop, Node
from compiler.support.errors import LoweringError

_VIEWS = ("subview", "cast", "reinterpret_cast", "view", "collapse_shape", "expand_shape", "memory_space_cast")
_SCALAR = ("arith", "math")
_SKIPPED = (memref.DeallocOp, affine.ApplyOp, affine.MinOp, affine.YieldOp, scf.YieldOp, scf.ReduceOp, func.ReturnOp)


class Nests(Builder):
    """The builder of the loop program's nodes for the ops of a function. literals: the constants so far. returned: the
    memrefs that the function returns."""

    def __init__(self, function: func.FuncOp) -> None:
        super().__init__()
        self.literals: list[Literal] = []
        self.returned: set[SSAValue] = set()
        self._accumulators: dict[SSAValue, Access] = {}
        self._absorbed: set[Operation] = set()
        self._copied = _clobbered_loads(function)

    def nodes(self, block: IrBlock, around: Surroundings) -> list[Node]:
        """Return the nodes of a block's ops, in order; ops that only compute values have none. Raises LoweringError at
        an op without a form in loops."""
        return [node for op in block.ops for node in self._node(op, around)]

    def _node(self, op: Operation, around: Surroundings) -> Sequence[Node]:
        match op:
            case affine.ForOp() | scf.ForOp():
                return self._loop(op, around)
            case affine.ParallelOp() | scf.ParallelOp():
                return self._parallel(op, around)
            case affine.IfOp() | scf.IfOp():
                return self._conditional(op, around)
            case affine.StoreOp() | memref.StoreOp():
                return [] if op in self._absorbed else self._store(op, around)
            case affine.LoadOp() | memref.LoadOp():
                return self._copy_of(op, around) if op in self._copied else []
            case memref.AllocOp() | memref.AllocaOp():
                return self._alloc(op, around)
            case memref.CopyOp():
                return self._copy(op, around)
            case memref.GetGlobalOp():
                return self._literal(op)
        if op.regions or not (isinstance(op, _SKIPPED) or op.name.split(".")[0] in _SCALAR or op.name == "affine.max"):
            refuse(op)
        return []

    def _alloc(self, op: memref.AllocOp | memref.AllocaOp, around: Surroundings) -> list[Node]:
        if op.memref in self.returned:
            return []
        buffer = self.buffer(op.memref, op, len(around.loops))
        self.buffers[op.memref] = buffer.name
        return [Alloc(buffer)]

    def _nested(
        self, variables: Sequence[SSAValue], bounds: Sequence[LoopBounds], around: Surroundings
    ) -> Surroundings:
        """Create a loop for each variable, the first outermost, and bind the variable to its value in the loop; return
        the surroundings of their body."""
        for variable, limits in zip(variables, bounds, strict=True):
            loop = self.loop(variable.name_hint or "", limits.extent, around)
            form = limits.first + lin.variable(loop.number).scaled(limits.step)
            self.forms.bind(variable, form)
            around = Surroundings((*around.loops, loop), around.guard)
        return around

    def _parallel(self, op: affine.ParallelOp | scf.ParallelOp, around: Surroundings) -> list[Node]:
        if op.results:
            raise LoweringError(f"'{op.name}' has results: the reduction of a parallel loop has no form").at(op)
        bounds = bounds_of(op, self.forms, self.variables)
        if any(limits.extent == 0 for limits in bounds):
            return []
        inner = self._nested(op.body.block.args, bounds, around)
        return _filled(inner.loops[len(around.loops) :], self.nodes(op.body.block, inner))

    def _loop(self, op: ForLike, around: Surroundings) -> list[Node]:
        (bounds,) = bounds_of(op, self.forms, self.variables)
        variable, *carried = op.body.block.args
        inits = op.inits if isinstance(op, affine.ForOp) else op.iter_args
        if bounds.extent == 0:
            if op.results:
                raise LoweringError(f"'{op.name}' runs no iteration, and has results").at(op)
            return []
        before: list[Node] = []
        for argument, init, result in zip(carried, inits, op.results, strict=True):
            before += self._accumulator(op, argument, init, result, around)
        inner = self._nested([variable], [bounds], around)
        last = op.body.block.last_op
        assert last is not None
        inside = self.nodes(op.body.block, inner)
        for argument, value in zip(carried, last.operands, strict=True):
            inside += self._carried(op, argument, value, inner)
        return before + _filled(inner.loops[-1:], inside)

    def _accumulator(
        self, op: ForLike, argument: SSAValue, init: SSAValue, result: SSAValue, around: Surroundings
    ) -> list[Node]:
        """Choose and record the element in which a loop-carried scalar is updated: that of an outer loop's scalar, if
        updates lead from it to `init` and the result has one use; or the element to which the result is stored, if no
        other op accesses its buffer before; or a new buffer of rank 0. Return the nodes before the loop: those updates
        in the first case, else the allocation of a new buffer and a block that sets the element to `init` unless `init`
        is its load."""
        outer = chain_of(init, self._is_accumulator)
        if outer is not None and result.has_one_use():
            target = self._accumulators[argument] = self._accumulators[result] = self._accumulators[outer.start]
            return self._updates(op, target, outer, around)
        store = self._only_store(op, init, result)
        if store is not None:
            self._absorbed.add(store)
            target = Access(self.buffers[store.memref], index_of(store, self.forms))
            alloc: list[Node] = []
            is_set = self._loads(init, target)
        else:
            buffer = self.buffer(result, op, len(around.loops), argument.name_hint or "acc")
            target = self.stored[result] = Access(buffer.name, ())
            alloc, is_set = [Alloc(buffer)], False
        self._accumulators[argument] = target
        return alloc if is_set else [*alloc, self.block(op, target, lambda values: values.value(init), around)]

    def _is_accumulator(self, value: SSAValue) -> bool:
        return value in self._accumulators and value.has_one_use()

    def _loads(self, value: SSAValue, element: Access) -> bool:
        """Whether a value is a load of `element` that blocks repeat, not one that is copied to a separate buffer."""
        op = value.owner
        if not isinstance(op, affine.LoadOp | memref.LoadOp) or op in self._copied or op.memref not in self.buffers:
            return False
        return Access(self.buffers[op.memref], index_of(op, self.forms)) == element

    def _only_store(self, op: ForLike, init: SSAValue, result: SSAValue) -> StoreLike | None:
        """Return the store, beside a loop, that is the only use of its result, if its buffer exists before the loop,
        and no other op from the loop to the store accesses it, the value `init` apart; else None."""
        uses = list(result.uses)
        store = uses[0].operation if len(uses) == 1 else None
        if not isinstance(store, affine.StoreOp | memref.StoreOp) or store.parent is not op.parent:
            return None
        if store.value is not result or store.memref not in self.buffers:
            return None
        before = ops_from(op, store)
        if store.memref.owner in before:
            return None
        used = {operand for inner in before for operand in inner.operands} - {init}
        touched = store.memref in used or any(load.memref is store.memref for load in loads_in(used))
        return None if touched else store

    def _carried(self, op: ForLike, argument: SSAValue, value: SSAValue, around: Surroundings) -> list[Node]:
        """Return the updates of a loop-carried scalar by the yielded value. Raises LoweringError for a value that is no
        chain of updates of the scalar by one combiner, or whose contributions no block computes."""
        target = self._accumulators[argument]
        chain = chain_of(value, lambda start: self._is_accumulator(start) and self._accumulators[start] == target)
        if chain is None:
            sentence = f"the loop carries {name_of(argument)}, which is no reduction by add, mul, max or min"
            raise LoweringError(sentence).at(op)
        last = op.body.block.last_op
        assert last is not None
        return self._updates(last, target, chain, around)

    def _updates(self, op: Operation, target: Access, chain: UpdateChain, around: Surroundings) -> list[Node]:
        return [self.block(update.op, target, update.contribution, around, update.combiner) for update in chain.updates]

    def _store(self, op: StoreLike, around: Surroundings) -> list[Node]:
        """The blocks of a store: one; or the updates of a reduction, if loops around do not index the element, and the
        value is a chain of updates from its own load and from no other of its buffer."""
        target = Access(self.named(op.memref, op), index_of(op, self.forms))
        chain = chain_of(op.value, lambda value: self._updated(value, op, target))
        if chain is not None and chain.updates and self.reduced(target, around):
            others = [load for load in loads_in([op.value]) if load.results[0] is not chain.start]
            if not any(load.memref is op.memref for load in others):
                return self._updates(op, target, chain, around)
        return [self.block(op, target, lambda values: values.value(op.value), around)]

    def _updated(self, value: SSAValue, store: StoreLike, target: Access) -> bool:
        """Whether a value is a load of the element that a store writes, before the store, and has no other use."""
        op = value.owner
        if not isinstance(op, affine.LoadOp | memref.LoadOp) or not value.has_one_use():
            return False
        return op.memref is store.memref and self._loads(value, target)

    def _copy_of(self, op: LoadLike, around: Surroundings) -> list[Node]:
        """Return the allocation of a buffer of rank 0 and the block that copies a loaded element to it, since a store
        may change the element before its use; record the copy as the value's element."""
        result, kept = op.results[0], f"{op.memref.name_hint or 'value'}_read"
        buffer, source = self.buffer(result, op, len(around.loops), kept), self.named(op.memref, op)
        target, index = Access(buffer.name, ()), index_of(op, self.forms)
        block = self.block(op, target, lambda values: values.read(source, index, result.type), around)
        self.stored[result] = target
        return [Alloc(buffer), block]

    def _copy(self, op: memref.CopyOp, around: Surroundings) -> list[Node]:
        """Return a nest that copies a buffer element by element; a block alone for rank 0. Raises LoweringError for a
        memref without a buffer."""
        source, target = (self.named(value, op) for value in (op.source, op.destination))
        type = op.source.type
        assert isinstance(type, MemRefType)
        inner = around
        for extent in type.get_shape():
            inner = replace(inner, loops=(*inner.loops, self.loop("", extent, inner)))
        loops = inner.loops[len(around.loops) :]
        index = tuple(lin.variable(loop.number) for loop in loops)
        copied = self.block(
            op, Access(target, index), lambda values: values.read(source, index, type.element_type), inner
        )
        return _filled(loops, [copied])

    def _literal(self, op: memref.GetGlobalOp) -> list[Node]:
        """Add the elements of a constant to the literals; return no node. Raises LoweringError for a global that is no
        constant or has no dense elements."""
        constant = SymbolTable.lookup_symbol(op, op.name_)
        if (
            not isinstance(constant, GlobalOp)
            or constant.constant is None
            or not isinstance(constant.initial_value, DenseAttr)
        ):
            raise LoweringError(f"@{op.name_.string_value()} is no constant with elements").at(op)
        buffer = self.buffer(op.memref, op, name=op.name_.string_value())
        self.buffers[op.memref] = buffer.name
        self.literals.append(Literal(buffer, constant.initial_value))
        return []

    def _conditional(self, op: IfLike, around: Surroundings) -> list[Node]:
        """Return the nodes of both branches, under the condition or its negation, once for each alternative of it; none
        for a conditional with results, whose users compute them. Raises LoweringError for a condition or a negation
        that is not affine, for a store, a copy or a loop in a conditional with results, and for ops in the branches
        without a form."""
        if op.results:
            return _without_effect(op)
        truth = condition_of(op, self.forms)
        negated = None if truth is None else self.forms.negated(truth)
        if truth is None or negated is None:
            what = f": {name_of(op.cond)}" if isinstance(op, scf.IfOp) else ""
            raise LoweringError(f"the condition is not affine in the loops, and guards a store{what}").at(op)
        nodes: list[Node] = []
        for region, alternatives in zip(op.regions, (truth, negated), strict=True):
            for conjunction in alternatives if region.blocks else ():
                guard = tuple(dict.fromkeys((*around.guard, *conjunction)))
                nodes += self.nodes(region.block, replace(around, guard=guard))
        return nodes


def _without_effect(op: IfLike) -> list[Node]:
    """No nodes, for a conditional of values, which blocks compute. Raises LoweringError if it contains a store, a copy
    or a loop."""
    for inner in op.walk():
        if isinstance(inner, (affine.StoreOp, memref.StoreOp, memref.CopyOp, *LOOPS)):
            raise LoweringError(f"'{inner.name}' stands in a conditional with results, which has values only").at(inner)
    return []


def _filled(loops: Sequence[Loop], nodes: Sequence[Node]) -> list[Node]:
    """The nodes in perfectly nested loops; none without nodes."""
    inside = list(nodes)
    for loop in reversed(loops):
        inside = [replace(loop, body=tuple(inside))] if inside else []
    return inside


def _clobbered_loads(function: func.FuncOp) -> set[Operation]:
    """The loads whose value a block computes from after a store that may change the loaded element. Raises
    LoweringError for one in a conditional with results."""
    loads: set[Operation] = set()
    for op in function.walk():
        for load in loads_in(_evaluated(op)):
            if clobbered(load, op):
                loads.add(load)
                parent = load.parent_op()
                if isinstance(parent, affine.IfOp | scf.IfOp) and parent.results:
                    sentence = f"the element of {name_of(load.memref)} is used after a store that may change it"
                    raise LoweringError(sentence).at(load)
    return loads


def _evaluated(op: Operation) -> list[SSAValue]:
    """The values that blocks compute for an op: the stored value, the first values of a loop, or the values that a loop
    body or the function returns; none for any other op."""
    match op:
        case affine.StoreOp() | memref.StoreOp():
            return [op.value]
        case affine.ForOp():
            return list(op.inits)
        case scf.ForOp():
            return list(op.iter_args)
        case affine.YieldOp() | scf.YieldOp() | func.ReturnOp():
            in_loop = isinstance(op.parent_op(), (*LOOPS, func.FuncOp))
            return list(op.operands) if in_loop else []
    return []


def refuse(op: Operation) -> NoReturn:
    """Raise LoweringError for an op that has no form in loops, with the advice for its kind."""
    dialect, _, name = op.name.partition(".")
    sentence = f"'{op.name}' has no form in loops"
    if isinstance(op, func.CallOp):
        sentence = f"@{op.callee.string_value()} is called: inline it first, such as by mlir-opt --inline"
    elif isinstance(op, scf.WhileOp):
        sentence = "'scf.while' has no form in loops: their number of iterations is constant"
    elif dialect == "memref" and name in _VIEWS:
        sentence = f"'{op.name}' makes a view: a buffer is accessed by its own shape"
    raise LoweringError(sentence).at(op)
