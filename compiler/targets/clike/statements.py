"""Statements: loops, branches, variables under names like those of the program."""

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
from compiler.targets.clike.expressions import ATOM, NEGATIVE, Text, bare
from compiler.targets.clike.language import Language


@dataclass
class SourceText(ABC):
    """A text under construction: lines at a depth, the expressions of values, and the names that are taken."""

    language: Language
    lines: list[str] = field(default_factory=list)
    texts: dict[SSAValue, Text] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    depth: int = 1

    reserved: ClassVar[Collection[str]] = ()
    """Names that no variable may have."""
    changes: ClassVar[tuple[type[Operation], ...]] = (memref.StoreOp, vector.StoreOp, scf.ForOp, scf.IfOp)
    """Ops that, or whose regions, may write memory."""

    @abstractmethod
    def op(self, op: Operation) -> None:
        """Write an op. Raises LoweringError for one without a form."""

    @abstractmethod
    def type_of(self, value: SSAValue) -> str:
        """The type of a variable that holds a value."""

    def text(self, value: SSAValue) -> Text:
        """The expression of a value."""
        return self.texts[value]

    def ops(self, block: Block) -> None:
        """Write the ops of a block."""
        for op in block.ops:
            self.op(op)

    def name(self, value: SSAValue, default: str = "v") -> str:
        """A name of its own, like the one in the program."""
        stem = re.sub(r"\W", "_", value.name_hint or default, flags=re.ASCII)
        stem = f"_{stem}" if stem[0].isdigit() or self.is_reserved(stem) else stem
        name = fresh(stem, self.taken, "_")
        self.taken.add(name)
        return name

    def is_reserved(self, stem: str) -> bool:
        """Whether the text means something else by a name."""
        return stem in self.reserved or stem[:2] == "__"

    def line(self, text: str) -> None:
        """Write a line."""
        self.lines.append(f"{'  ' * self.depth}{text}")

    def is_named(self, value: SSAValue) -> bool:
        """Whether a value is that of a variable."""
        text = self.texts.get(value)
        return text is not None and text.words in self.taken

    def value(self, op: Operation, text: Text) -> None:
        """What an op gives: in place where that means the same, else under a name. Arithmetic of indices means the same
        everywhere; an index that comes from memory does not."""
        value = op.results[0]
        if (isinstance(value.type, IndexType) and op.name != "arith.index_cast") or self.is_in_place(op):
            self.texts[value] = text
        else:
            self.declared(value, text.words)

    def variable(self, value: SSAValue, words: str = "") -> str:
        """The name of a variable for a value that later lines set; `words` follow the name."""
        name = self.name(value)
        self.line(f"{self.type_of(value)} {name}{words};")
        self.texts[value] = Text(name)
        return name

    def declared(self, value: SSAValue, words: str) -> None:
        """A variable for a value."""
        name = self.name(value)
        self.line(f"const {self.type_of(value)} {name} = {words};")
        self.texts[value] = Text(name)

    def is_in_place(self, op: Operation) -> bool:
        """Whether a value may stand where it is used: that is one place, in the same block, with nothing between that
        writes."""
        uses = list(op.results[0].uses)
        if len(uses) != 1:
            return False
        user = uses[0].operation
        if user.parent is not op.parent or isinstance(op.results[0].type, IndexType):
            return False
        if isinstance(user, memref.LoadOp | arith.ConstantOp) and isinstance(op, memref.LoadOp):
            return False
        between = op.next_op
        while between is not None and between is not user:
            if isinstance(between, self.changes):
                return False
            between = between.next_op
        return between is user and not isinstance(user, scf.ForOp | vector.BroadcastOp)

    def literal(self, words: str) -> Text:
        """A constant."""
        return Text(words, NEGATIVE if words.startswith("-") else ATOM)

    def store(self, op: memref.StoreOp, target: str) -> None:
        """A store, as an accumulation where it is one."""
        added = self._added(op)
        sign, words = ("=", self.text(op.value).words) if added is None else ("+=", added.words)
        self.line(f"{target} {sign} {words};")

    def _added(self, op: memref.StoreOp) -> Text | None:
        """What a store adds to its element."""
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
                and self.language.exact(owner, (Text(""), Text(""))) is None
            ):
                return self.text(addend)
        return None

    def loop(self, op: scf.ForOp, *pragmas: str) -> None:
        """A loop; one of a single iteration without results is its body."""
        body = op.body.block
        names = self.carried(op.results, op.iter_args)
        for argument, name in zip(body.args[1:], names, strict=True):
            self.texts[argument] = Text(name)
        low, high, step = (self.text(value).words for value in (op.lb, op.ub, op.step))
        if low.isdigit() and high.isdigit() and int(high) == int(low) + 1 and not names:
            self.texts[body.args[0]] = Text(low)
            self.ops(body)
            return
        name = self.name(body.args[0], "i")
        self.texts[body.args[0]] = Text(name)
        for pragma in pragmas:
            self.line(pragma)
        self.line(f"{self.header(body.args[0], (low, high, step))} {{")
        self.nested(body, names)
        self.line("}")
        self.taken.discard(name)

    def header(self, index: SSAValue, bounds: tuple[str, str, str]) -> str:
        """The head of a loop over an index that has a name: from a bound up to another, by a step."""
        name, (low, high, step) = self.text(index).words, bounds
        advance = f"++{name}" if step == "1" else f"{name} += {step}"
        return f"for ({self.type_of(index)} {name} = {low}; {name} < {high}; {advance})"

    def carried(self, values: Sequence[SSAValue], initial: Sequence[SSAValue]) -> list[str]:
        """Variables for the results of a loop or a branch, set to the initial values."""
        names = []
        for position, value in enumerate(values):
            name = self.name(value)
            start = f" = {self.text(initial[position]).words}" if initial else ""
            self.line(f"{self.type_of(value)} {name}{start};")
            self.texts[value] = Text(name)
            names.append(name)
        return names

    def nested(self, body: Block, names: Sequence[str] = ()) -> None:
        """A body, a level deeper, whose yielded values are those of some variables."""
        self.depth += 1
        self.ops(body)
        self.yielded(body, names)
        self.depth -= 1

    def yielded(self, body: Block, names: Sequence[str]) -> None:
        """The values that a body yields, as those of some variables."""
        last = body.last_op
        if isinstance(last, scf.YieldOp):
            self.assigned(last.operands, names, [self.text(value).words for value in last.operands])

    def assigned(self, values: Sequence[SSAValue], names: Sequence[str], given: Sequence[str]) -> None:
        """New values of variables."""
        if len(names) > 1:  # a new value may read another variable's old one
            given = [self._held(value, words) for value, words in zip(values, given, strict=True)]
        for name, words in zip(names, given, strict=True):
            self.line(f"{name} = {words};")

    def _held(self, value: SSAValue, words: str) -> str:
        """A variable of its own with a value."""
        name = self.name(value, "next")
        self.line(f"const {self.type_of(value)} {name} = {words};")
        return name

    def branch(self, op: scf.IfOp) -> None:
        """A branch."""
        names = self.carried(op.results, ())
        self.line(f"if ({bare(self.text(op.cond).words)}) {{")
        self.nested(op.true_region.block, names)
        if op.false_region.blocks and (names or len(list(op.false_region.block.ops)) > 1):
            self.line("} else {")
            self.nested(op.false_region.block, names)
        self.line("}")
