"""Random nests of affine loops over i64 buffers: hoisted loads, updates, guards, conditionals, loop-carried scalars."""

from __future__ import annotations

import random
from collections.abc import Sequence

SHAPES: dict[str, tuple[int, ...]] = {"A": (6,), "B": (6,), "C": (6, 6), "S": ()}
"""The shapes of the arguments by name."""
_OPERATIONS = ("addi", "subi", "muli", "maxsi", "minsi")
_CONDITIONS = ("d0 - d1 >= 0", "d0 - 2 >= 0", "3 - d0 >= 0", "d0 - d1 == 0", "d1 mod 2 == 0")
_INDICES = ("{0}", "{0}", "{0}", "5 - {0}", "({0} + 1) mod 6", "{0} floordiv 2", "({0} * 2) mod 6")
_DEEPEST = 3


def random_nest(seed: int) -> str:
    """The text of a function @f with the arguments of SHAPES, which it changes in place."""
    writer = _Writer(random.Random(seed))
    for _ in range(writer.random.randrange(1, 3)):
        writer.block([], [], 0)
    arguments = ", ".join(f"%{name}: {_type(name)}" for name in SHAPES)
    return "\n".join([f"func.func @f({arguments}) {{", *writer.lines, "return", "}"])


def _type(buffer: str) -> str:
    return f"memref<{''.join(f'{size}x' for size in SHAPES[buffer])}i64>"


class _Writer:
    """Writes ops; `variables` are the loops around them, `values` the scalars that are visible."""

    def __init__(self, random: random.Random) -> None:
        self.random = random
        self.lines: list[str] = []
        self.count = 0

    def _fresh(self, name: str) -> str:
        self.count += 1
        return f"%{name}{self.count}x"

    def _element(self, variables: Sequence[str]) -> tuple[str, str]:
        """A random element, such as `%A[%i]`, and the type of its buffer."""
        buffer = self.random.choice(list(SHAPES))
        index = [self._index(variables) for _ in SHAPES[buffer]]
        return f"%{buffer}[{', '.join(index)}]", _type(buffer)

    def _index(self, variables: Sequence[str]) -> str:
        if not variables or self.random.random() < 0.25:
            return str(self.random.randrange(6))
        return self.random.choice(_INDICES).format(self.random.choice(variables))

    def _load(self, element: tuple[str, str]) -> str:
        value = self._fresh("load")
        self.lines.append(f"{value} = affine.load {element[0]} : {element[1]}")
        return value

    def _operand(self, variables: Sequence[str], values: Sequence[str]) -> str:
        if values and self.random.random() < 0.5:
            return self.random.choice(values)
        return self._load(self._element(variables))

    def _operation(self, name: str, left: str, right: str) -> str:
        value = self._fresh("value")
        pair = (left, right) if self.random.random() < 0.5 else (right, left)
        self.lines.append(f"{value} = arith.{name} {', '.join(pair)} : i64")
        return value

    def _expression(self, variables: Sequence[str], values: Sequence[str]) -> str:
        value = self._operand(variables, values)
        for _ in range(self.random.randrange(3)):
            value = self._operation(self.random.choice(_OPERATIONS), value, self._operand(variables, values))
        return value

    def _store(self, variables: Sequence[str], values: Sequence[str]) -> None:
        """A store, every other time an update of the element."""
        element = self._element(variables)
        before = self._load(element) if self.random.random() < 0.5 else None
        value = self._expression(variables, values)
        if before is not None:
            value = self._operation(self.random.choice(_OPERATIONS[:4]), before, value)
        self.lines.append(f"affine.store {value}, {element[0]} : {element[1]}")

    def _condition(self, variables: Sequence[str]) -> str:
        conditions = self.random.sample(_CONDITIONS, self.random.randrange(1, 3))
        operands = [self.random.choice(variables) for _ in range(2)]
        return f"affine_set<(d0, d1) : ({', '.join(conditions)})>({', '.join(operands)})"

    def block(self, variables: Sequence[str], outer: Sequence[str], depth: int) -> None:
        """Write one to three statements."""
        values = list(outer)
        for _ in range(self.random.randrange(1, 4)):
            kind = self.random.random()
            if kind < 0.3 and depth < _DEEPEST:
                self._loop(variables, values, depth)
            elif kind < 0.42 and variables and depth <= _DEEPEST:
                self._guarded(variables, values, depth)
            elif kind < 0.5 and variables:
                values.append(self._conditional(variables, values))
            elif kind < 0.65 and depth < _DEEPEST:
                values.append(self._carried(variables, values, depth))
                element = self._element(variables)
                self.lines.append(f"affine.store {values[-1]}, {element[0]} : {element[1]}")
            elif kind < 0.7 and depth < 2:
                self._reset(variables, values)
            elif kind < 0.78:
                values.append(self._load(self._element(variables)))
            else:
                self._store(variables, values)

    def _reset(self, variables: Sequence[str], values: Sequence[str]) -> None:
        """A store of a constant to elements, and updates of them: in one nest, or each in its own."""
        buffer, name = self.random.choice(list(SHAPES)), self.random.choice(("addi", "muli"))
        inner = [self._fresh("i") for _ in SHAPES[buffer]]
        guard = self._condition(inner) if inner and self.random.random() < 0.3 else ""
        spelled = [self.random.choice(("{0}", "{0}", "{0}", "{0} floordiv 2")).format(i) for i in inner]
        element = f"%{buffer}[{', '.join(spelled)}]", _type(buffer)
        one_nest = self.random.random() < 0.5
        constant = self._fresh("constant")
        self.lines.append(f"{constant} = arith.constant {self.random.choice((0, 0, 1))} : i64")
        loops = [f"affine.for {variable} = 0 to 6 {{" for variable in inner] + [f"affine.if {guard} {{"] * bool(guard)
        self.lines += [*loops, f"affine.store {constant}, {element[0]} : {element[1]}"]
        if not one_nest:
            self.lines += ["}"] * len(loops)
            if self.random.random() < 0.2:
                self._store(variables, values)
            self.lines += loops
        reduced = self._fresh("i")
        self.lines.append(f"affine.for {reduced} = 0 to 6 {{")
        before = self._load(element)
        value = self._operation(name, before, self._operand([*variables, *inner, reduced], []))
        self.lines.append(f"affine.store {value}, {element[0]} : {element[1]}")
        self.lines += ["}"] * (len(loops) + 1)

    def _loop(self, variables: Sequence[str], values: Sequence[str], depth: int) -> None:
        variable = self._fresh("i")
        first, step = self.random.randrange(3), self.random.choice((1, 1, 2))
        self.lines.append(f"affine.for {variable} = {first} to 6 step {step} {{")
        self.block([*variables, variable], values, depth + 1)
        self.lines.append("}")

    def _guarded(self, variables: Sequence[str], values: Sequence[str], depth: int) -> None:
        self.lines.append(f"affine.if {self._condition(variables)} {{")
        self.block(variables, values, depth + 1)
        if self.random.random() < 0.4:
            self.lines.append("} else {")
            self.block(variables, values, depth + 1)
        self.lines.append("}")

    def _conditional(self, variables: Sequence[str], values: Sequence[str]) -> str:
        result = self._fresh("chosen")
        self.lines.append(f"{result} = affine.if {self._condition(variables)} -> i64 {{")
        self.lines.append(f"affine.yield {self._expression(variables, values)} : i64")
        self.lines.append("} else {")
        self.lines.append(f"affine.yield {self._expression(variables, values)} : i64")
        self.lines.append("}")
        return result

    def _carried(self, variables: Sequence[str], values: Sequence[str], depth: int, init: str = "") -> str:
        """A reduction by a loop-carried scalar, at times through a loop inside."""
        init = init or self._expression(variables, values)
        result, variable, carried = self._fresh("result"), self._fresh("i"), self._fresh("sum")
        self.lines.append(f"{result} = affine.for {variable} = 1 to 6 iter_args({carried} = {init}) -> i64 {{")
        inner, value = [*variables, variable], carried
        if depth < 2 and self.random.random() < 0.3:
            self.block(inner, values, depth + 1)
        if depth < 2 and self.random.random() < 0.3:
            value = self._carried(inner, values, depth + 1, value)
        name = self.random.choice(("addi", "muli", "maxsi"))
        for _ in range(self.random.randrange(1, 3)):
            value = self._operation(name, value, self._expression(inner, values))
        self.lines.append(f"affine.yield {value} : i64")
        self.lines.append("}")
        return result
