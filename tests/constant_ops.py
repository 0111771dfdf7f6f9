"""Random ops of arith and math on constants of all types, as text that mlir-opt reads too."""

from __future__ import annotations

import random

INTEGERS = (
    *("addi", "subi", "muli", "divsi", "divui", "floordivsi", "ceildivsi", "ceildivui", "remsi", "remui"),
    *("minsi", "maxsi", "minui", "maxui", "andi", "ori", "xori", "shli", "shrsi", "shrui"),
)
REALS = ["addf", "subf", "mulf", "divf", "maximumf", "minimumf", "maxnumf", "minnumf", "remf"]
ROUNDINGS = ["ceil", "floor", "round", "roundeven", "trunc", "sqrt", "absf"]
ORDERS = ["oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno"]
RELATIONS = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]
BITS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
LIMITS = {"f16": "6.5e4", "bf16": "3.0e38", "f32": "3.0e38", "f64": "1.0e308"}
SMALL = {"f16": "6.0e-8", "bf16": "1.0e-40", "f32": "1.0e-45", "f64": "5.0e-324"}
WIDER = (("f16", "f32"), ("f32", "f64"), ("bf16", "f32"), ("bf16", "f64"), ("f16", "f64"))
LONGER = (("i8", "i32"), ("i16", "i64"), ("i1", "i8"), ("i32", "i64"))


class Constants:
    """A function that returns the results of random ops. lines: the ops, one a result, each with its operands."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lines: list[str] = []
        self._ops: list[str] = []
        self._types: list[str] = []

    @property
    def text(self) -> str:
        """The function."""
        names, types = ", ".join(f"%r{n}" for n in range(len(self._types))), ", ".join(self._types)
        return "\n".join([f"func.func @f() -> ({types}) {{", *self._ops, f"func.return {names} : {types}", "}", ""])

    def draw(self, count: int) -> None:
        """Add random ops."""
        for _ in range(count):
            self.rng.choice((self._integer, self._real, self._cast))()

    def _integer(self) -> None:
        type = self.rng.choice(("i1", "i8", "i16", "i32", "i64", "index"))
        if self.rng.random() < 0.3:
            self._add(f"arith.cmpi {self.rng.choice(RELATIONS)},", [type, type], type, "i1")
        else:
            self._add(f"arith.{self.rng.choice(INTEGERS)}", [type, type], type, type)

    def _real(self) -> None:
        type = self.rng.choice(list(BITS))
        kind = self.rng.randrange(6)
        if kind == 0:
            self._add(f"arith.cmpf {self.rng.choice(ORDERS)},", [type, type], type, "i1")
        elif kind == 1:
            self._add(f"math.{self.rng.choice(ROUNDINGS)}", [type], type, type)
        elif kind == 2:
            self._add("math.copysign", [type, type], type, type)
        elif kind == 3:
            self._add("arith.negf", [type], type, type)
        else:
            self._add(f"arith.{self.rng.choice(REALS)}", [type, type], type, type)

    def _cast(self) -> None:
        rng = self.rng
        narrow, wide = rng.choice(WIDER)
        short, long = rng.choice(LONGER)
        real, integer = rng.choice(list(BITS)), rng.choice(("i8", "i16", "i32", "i64"))
        name, source, target = rng.choice(
            (
                ("extf", narrow, wide),
                ("truncf", wide, narrow),
                (rng.choice(("extsi", "extui")), short, long),
                ("trunci", long, short),
                (rng.choice(("sitofp", "uitofp")), integer, real),
                (rng.choice(("fptosi", "fptoui")), real, integer),
            )
        )
        self._add(f"arith.{name}", [source], f"{source} to {target}", target)

    def _add(self, head: str, operands: list[str], signature: str, result: str) -> None:
        number = len(self._types)
        values = [(f"%a{number}_{n}", self._number(type), type) for n, type in enumerate(operands)]
        self._ops += [f"{v} = arith.constant {x}{'' if t == 'i1' else f' : {t}'}" for v, x, t in values]
        self._ops.append(f"%r{number} = {head} {', '.join(v for v, _, _ in values)} : {signature}")
        self.lines.append(f"{head} {', '.join(x for _, x, _ in values)} : {signature}")
        self._types.append(result)

    def _number(self, type: str) -> str:
        rng = self.rng
        if type == "i1":
            return rng.choice(("true", "false"))
        if type in BITS:
            digits = BITS[type] // 4
            any_bits = f"0x{rng.getrandbits(BITS[type]):0{digits}X}"
            return rng.choice(
                ("0.0", "-0.0", "1.0", "-1.5", "0.1", "2.5", any_bits, any_bits, LIMITS[type], SMALL[type])
            )
        half = 1 << (63 if type == "index" else int(type[1:]) - 1)
        return str(rng.choice((0, 1, -1, 2, 7, half - 1, -half, rng.randrange(-half, half))))
