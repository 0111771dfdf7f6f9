"""One function under emission: its signature, values, labels, control flow and addresses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import gcd

from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from compiler.affine import linear as lin
from compiler.affine.linear import Linear
from compiler.analysis.memory import Forms, access
from compiler.errors import LoweringError
from compiler.lowering.low_to_llvm.types import buffer_bytes, byte_size, literal, llvm_type, strides

Emit = Callable[["FunctionEmitter", Operation], None]
SLOT_ALIGNMENT = 64


@dataclass(frozen=True)
class Place:
    """An address and how many bytes it is surely a multiple of."""

    pointer: str
    alignment: int


def slots(function: FuncOp) -> list[memref.AllocOp]:
    """The buffers that the workspace holds: the allocs at the function's top, in order."""
    return [op for op in function.body.block.ops if isinstance(op, memref.AllocOp)]


def slot_offsets(function: FuncOp) -> list[int]:
    """The byte offset of each slot in the workspace and, last, the workspace's size."""
    offsets = [0]
    for slot in slots(function):
        size = buffer_bytes(slot.memref.type)
        offsets.append(offsets[-1] + -(-size // SLOT_ALIGNMENT) * SLOT_ALIGNMENT)
    return offsets


class FunctionEmitter:
    """Emits one function; the handlers of ops add lines and name values through it."""

    def __init__(self, function: FuncOp, handlers: Mapping[str, Emit]) -> None:
        self.function = function
        self.name = function.sym_name.data
        self.handlers = handlers
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self.names: dict[SSAValue, str] = {}
        self.alignments: dict[SSAValue, int] = {}
        self.declarations: set[str] = set()
        self.label = "entry"
        self.scopes: list[dict[object, str]] = [{}]
        self.forms = Forms()
        self.count = 0

    def emit(self) -> str:
        """The text of the body function and of the entry that calls it."""
        parameters = [self._parameter(i, argument) for i, argument in enumerate(self.function.body.block.args)]
        parameters += [self._slot(i, slot) for i, slot in enumerate(slots(self.function))]
        self.block(self.function.body.block)
        head = f"define internal void @{_quoted(self.name + '.body')}({', '.join(parameters)}) noinline #0 {{"
        return "\n".join([self._entry(), "", head, "entry:", *self.allocas, *self.lines, "}", ""])

    def _parameter(self, number: int, argument: BlockArgument) -> str:
        self.names[argument] = f"%a{number}"
        if not isinstance(argument.type, MemRefType):
            return f"{llvm_type(argument.type)} %a{number}"
        size = byte_size(argument.type.element_type)
        self.alignments[argument] = size
        facts = f"noalias nonnull align {size} dereferenceable({buffer_bytes(argument.type)})"
        return f"ptr {facts}{'' if _written(argument) else ' readonly'} %a{number}"

    def _slot(self, number: int, slot: memref.AllocOp) -> str:
        self.names[slot.memref] = f"%s{number}"
        self.alignments[slot.memref] = SLOT_ALIGNMENT
        size = buffer_bytes(slot.memref.type)
        return f"ptr noalias nonnull align {SLOT_ALIGNMENT} dereferenceable({size}) %s{number}"

    def _entry(self) -> str:
        types = [llvm_type(argument.type) for argument in self.function.body.block.args]
        outer = ", ".join(f"{type} %a{i}" for i, type in enumerate(types))
        passed = [f"{type} %a{i}" for i, type in enumerate(types)]
        lines = [f"define void @{_quoted(self.name)}({outer}{', ' if outer else ''}ptr %workspace) #0 {{"]
        for number, offset in enumerate(slot_offsets(self.function)[:-1]):
            lines.append(f"  %s{number} = getelementptr inbounds i8, ptr %workspace, i64 {offset}")
            passed.append(f"ptr %s{number}")
        call = f"  call void @{_quoted(self.name + '.body')}({', '.join(passed)})"
        return "\n".join([*lines, call, "  ret void", "}"])

    def fresh(self, stem: str = "v") -> str:
        """A new local name."""
        self.count += 1
        return f"%{stem}{self.count}"

    def line(self, text: str) -> None:
        """Add an instruction."""
        self.lines.append(f"  {text}")

    def set(self, value: SSAValue, instruction: str) -> str:
        """Name a value as the result of an instruction."""
        name = self.names[value] = self.fresh()
        self.line(f"{name} = {instruction}")
        return name

    def temporary(self, instruction: str) -> str:
        """The name of an instruction's result."""
        name = self.fresh("t")
        self.line(f"{name} = {instruction}")
        return name

    def use(self, value: SSAValue) -> str:
        """A value as an operand, without its type."""
        return self.names[value]

    def typed(self, value: SSAValue) -> str:
        """A value as an operand, with its type."""
        return f"{llvm_type(value.type)} {self.names[value]}"

    def declare(self, result: str, name: str, parameters: Sequence[str]) -> None:
        """Declare an external function once."""
        self.declarations.add(f"declare {result} @{name}({', '.join(parameters)})")

    def call(self, result: Attribute, name: str, arguments: Sequence[SSAValue], flags: str = "") -> str:
        """A call, as an instruction, of a function that takes and gives registers."""
        self.declare(llvm_type(result), name, [llvm_type(a.type) for a in arguments])
        return f"call {flags}{llvm_type(result)} @{name}({', '.join(self.typed(a) for a in arguments)})"

    def block(self, block: Block) -> None:
        """Emit the ops of a block in their order."""
        for op in block.ops:
            match op:
                case arith.ConstantOp():
                    self.names[op.result] = literal(op.value)
                case scf.ForOp():
                    self._for(op)
                case scf.IfOp():
                    self._if(op)
                case scf.YieldOp():
                    pass
                case func.ReturnOp():
                    self.line("ret void")
                case _:
                    handler = self.handlers.get(op.name)
                    if handler is None:
                        raise LoweringError(f"'{op.name}' has no form in LLVM IR here")
                    handler(self, op)

    def _start(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.label = label

    def _labels(self, *stems: str) -> list[str]:
        self.count += 1
        return [f"{stem}{self.count}" for stem in stems]

    def _for(self, op: scf.ForOp) -> None:
        head, body, done = self._labels("head", "body", "done")
        before = self.label
        iv, *carried = op.body.block.args
        self.line(f"br label %{head}")
        self._start(head)
        place = len(self.lines)
        for argument in (iv, *carried):
            self.names[argument] = self.fresh("i" if argument is iv else "c")
        test = self.temporary(f"icmp slt i64 {self.use(iv)}, {self.use(op.ub)}")
        self.line(f"br i1 {test}, label %{body}, label %{done}")
        self._start(body)
        self.scopes.append({})
        self.block(op.body.block)
        self.scopes.pop()
        step = self.temporary(f"add nuw nsw i64 {self.use(iv)}, {self.use(op.step)}")
        self.line(f"br label %{head}")
        last = op.body.block.last_op
        yielded = [] if last is None else [self.use(v) for v in last.operands]
        starts = [self.use(v) for v in (op.lb, *op.iter_args)]
        phis = []
        for argument, start, following in zip((iv, *carried), starts, [step, *yielded], strict=True):
            incoming = f"[ {start}, %{before} ], [ {following}, %{self.label} ]"
            phis.append(f"  {self.use(argument)} = phi {llvm_type(argument.type)} {incoming}")
        self.lines[place:place] = phis
        self._start(done)
        for result, argument in zip(op.results, carried, strict=True):
            self.names[result] = self.use(argument)

    def _if(self, op: scf.IfOp) -> None:
        then, other, done = self._labels("then", "else", "endif")
        has_else = bool(op.false_region.blocks)
        self.line(f"br i1 {self.use(op.cond)}, label %{then}, label %{other if has_else else done}")
        ends = []
        for label, region in ((then, op.true_region), (other, op.false_region)):
            if not region.blocks:
                continue
            self._start(label)
            self.scopes.append({})
            self.block(region.block)
            self.scopes.pop()
            last = region.block.last_op
            ends.append((self.label, [] if last is None else [self.use(v) for v in last.operands]))
            self.line(f"br label %{done}")
        self._start(done)
        for number, result in enumerate(op.results):
            incoming = ", ".join(f"[ {values[number]}, %{label} ]" for label, values in ends)
            self.set(result, f"phi {llvm_type(result.type)} {incoming}")

    def place(self, buffer: SSAValue, indices: Sequence[SSAValue]) -> Place:
        """The address of an element: the part that varies, shared within a scope, then the constant part."""
        assert isinstance(buffer.type, MemRefType)
        form = lin.constant(0)
        for index, stride in zip(indices, strides(buffer.type.get_shape()), strict=True):
            form = form + self.forms.of(index).scaled(stride)
        size = byte_size(buffer.type.element_type)
        factors = [factor * size for _, factor in form.terms]
        alignment = gcd(self.alignments[buffer], form.constant * size, *factors)
        return Place(self._address(buffer, form, f"[{size} x i8]"), alignment)

    def _address(self, buffer: SSAValue, form: Linear, unit: str) -> str:
        fixed = form.constant
        varying = Linear(form.terms, 0)
        inside = "inbounds " if fixed == 0 else ""  # a part of an address may lie outside the buffer
        pointer = self.use(buffer)
        if varying.terms:
            offset = self._offset(varying)
            pointer = self._once(
                (buffer, varying, inside), f"getelementptr {inside}{unit}, ptr {pointer}, i64 {offset}"
            )
        if fixed:
            inside = "" if varying.terms else "inbounds "
            pointer = self.temporary(f"getelementptr {inside}{unit}, ptr {pointer}, i64 {fixed}")
        return pointer

    def _offset(self, form: Linear) -> str:
        values = {number: value for value, number in self.forms.numbers.items()}
        total = ""
        for atom, factor in form.terms:
            assert isinstance(atom, int)
            term = self.use(values[atom])
            if factor != 1:
                term = self._once((term, factor), f"mul nsw i64 {term}, {factor}")
            total = self._once((total, term), f"add nsw i64 {total}, {term}") if total else term
        return total

    def _once(self, key: object, instruction: str) -> str:
        for scope in reversed(self.scopes):
            if key in scope:
                return scope[key]
        name = self.scopes[-1][key] = self.temporary(instruction)
        return name


def _written(argument: BlockArgument) -> bool:
    for use in argument.uses:
        found = access(use.operation)
        if found is None or found.is_store:
            return True
    return False


def _quoted(name: str) -> str:
    return f'"{name}"'
