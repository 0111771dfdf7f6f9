"""`SourceWriter`: statements, loops, branches, and variables with names like those of the program."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from xdsl.dialects import arith, memref, scf, vector
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, SSAValue

from compiler.program.names import fresh
from compiler.targets.clike.expressions import ATOM, NEGATIVE, CExpr, bare
from compiler.targets.clike.language import Language


@dataclass
class SourceWriter(ABC):
    """Base class of writers of C-like code. lines: the text so far. texts: the expression of each value. taken: the
    names in use. depth: of the indentation. reserved: identifiers that no variable may have. changes: the ops across
    which an expression is not moved to its use."""

    language: Language
    lines: list[str] = field(default_factory=list)
    texts: dict[SSAValue, CExpr] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    depth: int = 1

    reserved: ClassVar[Collection[str]] = ()
    """Names that no variable may have."""
    changes: ClassVar[tuple[type[Operation], ...]] = (memref.StoreOp, vector.StoreOp, scf.ForOp, scf.IfOp)
    """Ops that may write memory, themselves or in their regions."""

    @abstractmethod
    def op(self, op: Operation) -> None:
        """Write an op. Raises LoweringError for one that the language lacks."""

    @abstractmethod
    def type_of(self, value: SSAValue) -> str:
        """Spell the type of a value."""

    def text(self, value: SSAValue) -> CExpr:
        """Return the expression of a value, whose op has been written."""
        return self.texts[value]

    def ops(self, block: Block) -> None:
        """Write the ops of a block."""
        for op in block.ops:
            self.op(op)

    def name(self, value: SSAValue, default: str = "v") -> str:
        """Return an unused identifier for a value, like its name in the program or, without one, `default`, and mark it
        as taken: `_` replaces other characters and precedes a digit or a reserved name, and a taken name gets a number.
        """
        stem = re.sub(r"\W", "_", value.name_hint or default, flags=re.ASCII)
        stem = f"_{stem}" if stem[0].isdigit() or self.is_reserved(stem) else stem
        name = fresh(stem, self.taken, "_")
        self.taken.add(name)
        return name

    def is_reserved(self, stem: str) -> bool:
        """Return whether a name must not be a variable's, since it has another meaning in the language."""
        return stem in self.reserved or stem[:2] == "__"

    def line(self, text: str) -> None:
        """Write a line, indented by the depth."""
        self.lines.append(f"{'  ' * self.depth}{text}")

    def is_named(self, value: SSAValue) -> bool:
        """Return whether the expression of a value is a variable."""
        text = self.texts.get(value)
        return text is not None and text.code in self.taken

    def value(self, op: Operation, text: CExpr) -> None:
        """Bind the first result of an op to the expression `text`: index arithmetic in place of its uses, any other op
        too if that keeps the meaning, else as a variable. A cast to index is no index arithmetic: its operand may be
        loaded."""
        value = op.results[0]
        if (isinstance(value.type, IndexType) and op.name != "arith.index_cast") or self.is_in_place(op):
            self.texts[value] = text
        else:
            self.declared(value, text.code)

    def variable(self, value: SSAValue, code: str = "") -> str:
        """Declare a variable for a value, which later lines may set; return its name. code: the text after the name,
        such as an initialiser."""
        name = self.name(value)
        self.line(f"{self.type_of(value)} {name}{code};")
        self.texts[value] = CExpr(name)
        return name

    def declared(self, value: SSAValue, code: str) -> None:
        """Declare a const variable for a value, initialised by `code`."""
        name = self.name(value)
        self.line(f"const {self.type_of(value)} {name} = {code};")
        self.texts[value] = CExpr(name)

    def is_in_place(self, op: Operation) -> bool:
        """Return whether the first result of an op may be written in place of its use: it has one use, in the same
        block, with none of the ops `changes` between; it is no index, no loaded index of a load, and no operand of an
        scf.for or a vector.broadcast."""
        uses = list(op.results[0].uses)
        if len(uses) != 1:
            return False
        user = uses[0].operation
        if user.parent is not op.parent or isinstance(op.results[0].type, IndexType):
            return False
        if isinstance(user, memref.LoadOp | arith.ConstantOp) and isinstance(op, memref.LoadOp):
            return False
        next_op = op.next_op
        while next_op is not None and next_op is not user:
            if isinstance(next_op, self.changes):
                return False
            next_op = next_op.next_op
        return next_op is user and not isinstance(user, scf.ForOp | vector.BroadcastOp)

    def literal(self, code: str) -> CExpr:
        """Return a literal as an expression."""
        return CExpr(code, NEGATIVE if code.startswith("-") else ATOM)

    def store(self, op: memref.StoreOp, target: str) -> None:
        """Write a store to the element `target`; `x[i] = x[i] + y`, in either order of the sum, as `x[i] += y` unless a
        sum or its load is a variable."""
        addend = self._addend_of_store(op)
        sign, code = ("=", self.text(op.value).code) if addend is None else ("+=", addend.code)
        self.line(f"{target} {sign} {code};")

    def _addend_of_store(self, op: memref.StoreOp) -> CExpr | None:
        """Return the expression of y for a store `x[i] = x[i] + y`; None for other stores."""
        owner = op.value.owner
        if not isinstance(owner, arith.AddfOp) or self.is_named(op.value):
            return None
        for old, addend in ((owner.lhs, owner.rhs), (owner.rhs, owner.lhs)):
            load = old.owner
            if (
                isinstance(load, memref.LoadOp)
                and load.memref is op.memref
                and list(load.indices) == list(op.indices)
                and not self.is_named(old)
                and self.language.exact(owner, (CExpr(""), CExpr(""))) is None
            ):
                return self.text(addend)
        return None

    def loop(self, op: scf.ForOp, *pragmas: str) -> None:
        """Write a loop after the lines `pragmas`; of a loop from a constant to the next one, without results, write the
        body only, without the pragmas."""
        body = op.body.block
        names = self.carried(op.results, op.iter_args)
        for argument, name in zip(body.args[1:], names, strict=True):
            self.texts[argument] = CExpr(name)
        low, high, step = (self.text(value).code for value in (op.lb, op.ub, op.step))
        if low.isdigit() and high.isdigit() and int(high) == int(low) + 1 and not names:
            self.texts[body.args[0]] = CExpr(low)
            self.ops(body)
            return
        name = self.name(body.args[0], "i")
        self.texts[body.args[0]] = CExpr(name)
        for pragma in pragmas:
            self.line(pragma)
        self.line(f"{self.header(body.args[0], (low, high, step))} {{")
        self.nested(body, names)
        self.line("}")
        self.taken.discard(name)

    def header(self, index: SSAValue, bounds: tuple[str, str, str]) -> str:
        """Return the head of a for loop over the variable of `index`; `bounds` are its lower bound, upper bound and
        step."""
        name, (low, high, step) = self.text(index).code, bounds
        advance = f"++{name}" if step == "1" else f"{name} += {step}"
        return f"for ({self.type_of(index)} {name} = {low}; {name} < {high}; {advance})"

    def carried(self, values: Sequence[SSAValue], initial: Sequence[SSAValue]) -> list[str]:
        """Declare variables for the results of a loop or branch, initialised by `initial`, a value for each, unless
        that is empty; return their names."""
        names = []
        for position, value in enumerate(values):
            name = self.name(value)
            initializer = f" = {self.text(initial[position]).code}" if initial else ""
            self.line(f"{self.type_of(value)} {name}{initializer};")
            self.texts[value] = CExpr(name)
            names.append(name)
        return names

    def nested(self, body: Block, names: Sequence[str] = ()) -> None:
        """Write the ops of a body one level deeper; the values that it yields are assigned to the variables `names`, in
        order."""
        self.depth += 1
        self.ops(body)
        self.yielded(body, names)
        self.depth -= 1

    def yielded(self, body: Block, names: Sequence[str]) -> None:
        """Assign the values that a body yields to the variables `names`, in order; nothing for a body without
        scf.yield."""
        last = body.last_op
        if isinstance(last, scf.YieldOp):
            self.assigned(last.operands, names, [self.text(value).code for value in last.operands])

    def assigned(self, values: Sequence[SSAValue], names: Sequence[str], new_values: Sequence[str]) -> None:
        """Assign the expressions `new_values` of `values` to the variables `names` as if all at once: several go
        through copies."""
        if len(names) > 1:  # a new value may read another variable's old one
            new_values = [self._copied_value(value, code) for value, code in zip(values, new_values, strict=True)]
        for name, code in zip(names, new_values, strict=True):
            self.line(f"{name} = {code};")

    def _copied_value(self, value: SSAValue, code: str) -> str:
        name = self.name(value, "next")
        self.line(f"const {self.type_of(value)} {name} = {code};")
        return name

    def branch(self, op: scf.IfOp) -> None:
        """Write an if with its results as variables, and an else unless it is empty and there are no results."""
        names = self.carried(op.results, ())
        self.line(f"if ({bare(self.text(op.cond).code)}) {{")
        self.nested(op.true_region.block, names)
        if op.false_region.blocks and (names or len(list(op.false_region.block.ops)) > 1):
            self.line("} else {")
            self.nested(op.false_region.block, names)
        self.line("}")
