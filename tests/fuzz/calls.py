"""Wrong calls of the public functions: whatever the arguments are, only a StrataError comes out, or a TypeError for
arguments that a function does not have.

    python -m tests.fuzz.calls --seed 7 --cases 2000

The functions are read from the code: those of `compiler`, `compiler.te`, `compiler.te.nn`, and the methods of
`te.Tensor`, `Schedule` and `Kernel`. A case takes a right call and replaces one or two of its arguments by wrong ones.
"""

from __future__ import annotations

import argparse
import inspect
import math
import random
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from xdsl.utils.exceptions import ParseError, VerifyException

import compiler
from compiler import te
from compiler.schedule import Schedule
from compiler.support.errors import StrataError
from tests.fuzz.alarm import TooLong, limit

SECONDS = 10
WRONG: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "'8'": lambda: "8",
    "''": lambda: "",
    "nan": lambda: math.nan,
    "8.5": lambda: 8.5,
    "True": lambda: True,
    "[]": list,
    "(None,)": lambda: (None,),
    "-1": lambda: -1,
    "0": lambda: 0,
    "2**70": lambda: 2**70,
    "object()": object,
    "{}": dict,
    "b'a'": lambda: b"a",
    "['a', 1]": lambda: ["a", 1],
    "int": lambda: int,
    "np.int64(3)": lambda: np.int64(3),
    "np.zeros(3)": lambda: np.zeros(3),
    "1j": lambda: 1j,
}
SAID = (StrataError, ParseError, VerifyException)
OPERATORS = {"__call__", "__getitem__"}
NOT_CALLED = {"fork"}
"""Methods that take nothing."""


@dataclass(frozen=True)
class Target:
    """A public function or method, and the names of what it takes."""

    name: str
    make: Callable[[], Callable[..., Any]]
    parameters: tuple[inspect.Parameter, ...]


@dataclass(frozen=True)
class Call:
    """A target with some arguments wrong, by their names."""

    target: Target
    wrong: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return f"{self.target.name}({', '.join(f'{name}={value}' for name, value in self.wrong)})"


def function() -> te.Function:
    """A small program: a product, and twice of it."""
    a, b = te.placeholder((4, 6), name="A"), te.placeholder((6, 8), name="B")
    k = te.reduce_axis(6, "k")
    c = te.compute((4, 8), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    d = te.compute((4, 8), lambda i, j: c[i, j] * 2.0, name="D")
    return te.function("f", [a, b], [d])


@cache
def _kernel() -> Any:
    return compiler.build(function(), threads=1)


def schedule() -> Schedule:
    return Schedule(compiler.lower(function()))


@cache
def targets() -> tuple[Target, ...]:
    """All public functions and methods, in an order that is the same everywhere."""
    return tuple(_targets())


def _targets() -> Iterator[Target]:
    for name in sorted({*compiler.__all__} - {"from_onnx", "from_torch"}):  # which need other packages
        yield _target(f"compiler.{name}", lambda name=name: getattr(compiler, name))
    for module in (te, te.nn):
        for name in module.__all__:
            actual = getattr(module, name)
            if callable(actual):
                yield _target(f"{module.__name__}.{name}", lambda actual=actual: actual)
    tensor = te.placeholder((4, 6), name="A")
    for prefix, make in (("Schedule", schedule), ("Kernel", _kernel), ("Tensor", lambda: tensor)):
        for name, member in inspect.getmembers(type(make())):
            if callable(member) and (not name.startswith("_") or name in OPERATORS) and name not in NOT_CALLED:
                yield _target(f"{prefix}.{name}", lambda make=make, name=name: getattr(make(), name))


def _target(name: str, make: Callable[[], Callable[..., Any]]) -> Target:
    parameters = inspect.signature(make()).parameters.values()
    return Target(name, make, tuple(p for p in parameters if p.kind is not p.VAR_KEYWORD))


def right(name: str, parameter: inspect.Parameter, owner: Any) -> Any:
    """An argument that often fits, by the name of its parameter."""
    if isinstance(owner, Schedule) and name in ("loop", "loops", "block", "producer", "consumer", "at", "handle"):
        block = owner.get_block("C")
        return block if name in ("block", "producer", "consumer", "handle") else owner.get_loops(block)[0]
    shapes = {"shape": (4, 6), "extent": 6, "name": "T", "x": function(), "fcompute": lambda i, j: te.const(1.0)}
    second = {
        "axis": 0,
        "axes": (0, 1),
        "factors": [2, None],
        "dtype": "f32",
        "inputs": [],
        "outputs": [],
        "value": 1.0,
    }
    known = {**shapes, **second}
    if name in known:
        return known[name]
    return te.placeholder((4, 6), name="P") if parameter.default is parameter.empty else parameter.default


def several(owner: Any) -> list[Any]:
    """What fits where a method takes any number of arguments."""
    if isinstance(owner, Schedule):
        return list(owner.get_loops(owner.get_block("C")))[:2]
    return [np.zeros((4, 6), np.float32), np.zeros((6, 8), np.float32)] if owner is _kernel() else []


def draw(seed: int, case: int) -> Call:
    """The call of a number, which a seed and the number alone decide."""
    chance = random.Random(f"{seed}:{case}")
    target = chance.choice([t for t in targets() if t.parameters])
    count = min(len(target.parameters), chance.choice((1, 1, 2)))
    names = [p.name for p in chance.sample(target.parameters, count)]
    return Call(target, tuple((name, chance.choice(list(WRONG))) for name in names))


def fault(call: Call) -> str | None:
    """What is wrong with how a call ends; None if nothing is."""
    with limit(SECONDS):
        try:
            called = call.target.make()
            owner = getattr(called, "__self__", None)
            wrong = {name: WRONG[value]() for name, value in call.wrong}
            places: list[Any] = []
            named: dict[str, Any] = {}
            for p in call.target.parameters:
                value = wrong[p.name] if p.name in wrong else right(p.name, p, owner)
                if p.kind is p.VAR_POSITIONAL:
                    places += [value] if p.name in wrong else several(owner)
                elif p.kind is p.KEYWORD_ONLY:
                    named[p.name] = value
                else:
                    places.append(value)
            called(*places, **named)
        except SAID:
            return None
        except TooLong:
            return f"took over {SECONDS} s"
        except Exception:
            return traceback.format_exc()
    return None


def failures(seed: int, cases: Iterable[int]) -> Iterator[tuple[int, Call, str]]:
    for case in cases:
        call = draw(seed, case)
        actual = fault(call)
        if actual is not None:
            yield case, call, actual


def main(seed: int, cases: int) -> int:
    """Make some wrong calls of a seed; print those that end wrongly; how many they are."""
    count = 0
    for case, call, actual in failures(seed, range(cases)):
        count += 1
        print(f"calls: seed {seed} case {case}: {call}\n{actual}", flush=True)
    print(f"calls: {count} failures of {cases} cases, seed {seed}")
    return count


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.calls", description="Attack the API with wrong calls.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=1000)
    options = parser.parse_args()
    sys.exit(main(options.seed, options.cases) > 0)
