"""Nests of the kinds that PolyBench has, as affine text, each with what it computes in numpy and a schedule."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Nest:
    """A function of affine text, what it does to its arrays, and the passes that schedule its loops."""

    text: str
    reference: Callable[..., None]
    schedule: str

    def arrays(self) -> list[Array]:
        """Random arrays for the arguments; a scalar has rank 0."""
        random = np.random.default_rng(5)
        types = re.findall(r"%\w+: (?:memref<([\dx]*)f64>|f64)", self.text.partition("{")[0])
        return [random.uniform(0.5, 1.5, [int(size) for size in shape.split("x") if size]) for shape in types]


NESTS: dict[str, Nest] = {}


def nest(schedule: str, text: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add a nest in the shorthand of `expanded`; the decorated function is its reference."""

    def add(reference: Callable[..., None]) -> Callable[..., None]:
        NESTS[reference.__name__.strip("_")] = Nest(expanded(text), reference, schedule)
        return reference

    return add


OPERAND = re.compile(r"(?<!\w)%\w+(?:#\d)?|(?<![%\w.])[A-Za-z]\w*\[[^\]]*\]")
"""A value, or an element of an array."""
OPERATIONS = {ast.Add: "addf", ast.Sub: "subf", ast.Mult: "mulf", ast.Div: "divf"}


def expanded(text: str) -> str:
    """Spell a shorthand in MLIR: blocks by indentation, `for i 0 8, j 0 4:` for loops, `with` for what they carry, and
    arithmetic of values and of elements of arrays, which are loaded from left to right.

    >>> print(expanded("func.func @f(%A: memref<8xf64>, %x: f64):\\n  A[0] = %x"))
    func.func @f(%A: memref<8xf64>, %x: f64) {
      affine.store %x, %A[0] : memref<8xf64>
      return
    }
    """
    speller = Speller(dict(re.findall(r"%(\w+)(?: = memref\.alloca?\(\))? ?: (memref<[^>]*>)", text)))
    for line in re.sub(r",\n *", ", ", text.strip("\n").rstrip()).splitlines():
        speller.spell(line)
    return speller.end()


class Speller:
    """The lines of MLIR so far, and the blocks that are open: their columns, and how many braces each has."""

    def __init__(self, types: dict[str, str]) -> None:
        self.types, self.lines, self.numbers = types, list[str](), count()
        self.open: list[tuple[int, int]] = []

    def end(self) -> str:
        """Close all blocks, and return the text."""
        self.close(self.open[0][0] + 1)
        self.lines.append(" " * (self.open[0][0] + 2) + "return")
        self.close(0)
        return "\n".join(self.lines)

    def close(self, column: int) -> None:
        """Close the blocks that begin at a column or behind it."""
        while self.open and self.open[-1][0] >= column:
            start, braces = self.open.pop()
            self.lines.append(" " * start + "}" * braces)

    def spell(self, line: str) -> None:
        """Append a line of the shorthand."""
        text = line.strip()
        column = len(line) - len(line.lstrip())
        self.close(column)
        self.pad = " " * column
        head = re.fullmatch(r"(.*):( // here)?", text)
        target, _, source = text.partition(" = ")
        if head:
            self.head(head[1], head[2] or "", column)
        elif text.startswith("yield "):
            values = [self.value(each) for each in re.split(r",(?![^\[]*\])", text[6:])]
            self.lines.append(f"{self.pad}affine.yield {', '.join(values)} : {', '.join(['f64'] * len(values))}")
        elif updated := re.fullmatch(r"(\w+\[.*\]) ([+-])= (.*)", text):
            element = self.value(updated[1])
            name = {"+": "addf", "-": "subf"}[updated[2]]
            self.store(updated[1], self.named(f"arith.{name} {element}, {self.value(updated[3])} : f64"))
        elif source and not text.startswith("%"):
            self.store(target, self.value(source))
        elif source and not re.match(r"[a-z]+\.\w+", source):
            value = self.value(source)
            self.lines[-1] = self.lines[-1].replace(f"{value} = ", f"{target} = ")
        else:
            operands = [name for name in OPERAND.findall(text) if name[0] != "%"]
            loads = {name: self.value(name) for name in operands}
            for name, value in loads.items():
                text = text.replace(name, value, 1)
            self.lines.append(self.pad + text)

    def head(self, text: str, mark: str, column: int) -> None:
        """Open a block: loops, the alternative of a condition, or what MLIR calls so."""
        braces = 1
        if carried := re.fullmatch(r"(\S+) = for (\w+) (\S+) (\S+) with (.*)", text):
            types = ", ".join(["f64"] * carried[5].count("="))
            types = f"({types})" if "," in types else types
            name, loop, low, high, values = carried.groups()
            text = f"{name} = affine.for %{loop} = {low} to {high} iter_args({values}) -> {types}"
        elif text.startswith("for "):
            loops = [loop.split(maxsplit=2) for loop in text[4:].split(", ")]
            text = " { ".join(f"affine.for %{name} = {low} to {high}" for name, low, high in loops)
            braces = len(loops)
        elif text == "else":
            text = self.lines.pop().strip() + " else"
        self.lines.append(f"{self.pad}{text} {{{mark}")
        self.open.append((column, braces))

    def value(self, text: str) -> str:
        """Append what computes an expression, and return its value."""
        operands = iter(OPERAND.findall(text))

        def computed(node: ast.expr) -> str:
            if isinstance(node, ast.BinOp):
                left, right = computed(node.left), computed(node.right)
                return self.named(f"arith.{OPERATIONS[type(node.op)]} {left}, {right} : f64")
            if isinstance(node, ast.Constant):
                return self.named(f"arith.constant {node.value} : f64")
            operand = next(operands)
            array = operand.partition("[")[0]
            return operand if array == operand else self.named(f"affine.load %{operand} : {self.types[array]}")

        return computed(ast.parse(OPERAND.sub("_", text.strip()), mode="eval").body)

    def named(self, operation: str) -> str:
        """Append an operation, and return the value that it defines."""
        name = f"%v{next(self.numbers)}"
        self.lines.append(f"{self.pad}{name} = {operation}")
        return name

    def store(self, element: str, value: str) -> None:
        """Append a store."""
        self.lines.append(f"{self.pad}affine.store {value}, %{element} : {self.types[element.partition('[')[0]]}")


@nest(
    "tile{block=C.1 axes=i,j,k sizes=4,4,4},vectorize{block=C.1 loop=j.1},parallelize{block=C loop=i}",
    """
    func.func @gemm(%A: memref<8x8xf64>, %B: memref<8x8xf64>, %C: memref<8x8xf64>, %alpha: f64, %beta: f64):
      for i 0 8, j 0 8:
        C[%i, %j] = %beta * C[%i, %j]
      for i 0 8, j 0 8, k 0 8:
        C[%i, %j] += %alpha * A[%i, %k] * B[%k, %j]
    """,
)
def gemm(a: Array, b: Array, c: Array, alpha: Array, beta: Array) -> None:
    c[:] = beta * c + alpha * a @ b


@nest(
    "tile{block=D axes=i,j,k sizes=4,4,4},vectorize{block=D loop=j.1},parallelize{block=T loop=i}",
    """
    func.func @mm2(%A: memref<8x8xf64>, %B: memref<8x8xf64>, %C: memref<8x8xf64>, %D: memref<8x8xf64>):
      %zero = 0.0
      %T = memref.alloc() : memref<8x8xf64>
      for i 0 8, j 0 8:
        T[%i, %j] = %zero
        for k 0 8:
          T[%i, %j] += A[%i, %k] * B[%k, %j]
      for i 0 8, j 0 8, k 0 8:
        %0 = math.fma T[%i, %k], C[%k, %j], D[%i, %j] : f64
        D[%i, %j] = %0
      memref.dealloc %T : memref<8x8xf64>
    """,
)
def mm2(a: Array, b: Array, c: Array, d: Array) -> None:
    d += a @ b @ c


@nest(
    "parallelize{block=E loop=i},parallelize{block=F loop=i},reorder{block=G order=k,j},vectorize{block=G loop=j}",
    """
    func.func @mm3(%A: memref<8x8xf64>, %B: memref<8x8xf64>, %C: memref<8x8xf64>, %D: memref<8x8xf64>,
                   %G: memref<8x8xf64>):
      %zero = 0.0
      %E = memref.alloc() : memref<8x8xf64>
      %F = memref.alloc() : memref<8x8xf64>
      for i 0 8, j 0 8:
        %s = for k 0 8 with %sum = %zero:
          yield %sum + A[%i, %k] * B[%k, %j]
        E[%i, %j] = %s
      for i 0 8, j 0 8:
        %s = for k 0 8 with %sum = %zero:
          yield C[%i, %k] * D[%k, %j] + %sum
        F[%i, %j] = %s
      for i 0 8, j 0 8:
        G[%i, %j] = %zero
      for i 0 8, j 0 8, k 0 8:
        G[%i, %j] = E[%i, %k] * F[%k, %j] + G[%i, %j]
    """,
)
def mm3(a: Array, b: Array, c: Array, d: Array, g: Array) -> None:
    g[:] = (a @ b) @ (c @ d)


@nest(
    "vectorize{block=y loop=j}",
    """
    func.func @atax(%A: memref<8x8xf64>, %x: memref<8xf64>, %y: memref<8xf64>, %t: memref<8xf64>):
      %zero = 0.0
      for i 0 8:
        y[%i] = %zero
      for i 0 8:
        t[%i] = %zero
        for j 0 8:
          t[%i] += A[%i, %j] * x[%j]
        for j 0 8:
          y[%j] += A[%i, %j] * t[%i]
    """,
)
def atax(a: Array, x: Array, y: Array, t: Array) -> None:
    t[:] = a @ x
    y[:] = a.T @ t


@nest(
    "distribute{block=s loop=j},vectorize{block=s loop=j}",
    """
    func.func @bicg(%A: memref<8x8xf64>, %s: memref<8xf64>, %q: memref<8xf64>, %p: memref<8xf64>, %r: memref<8xf64>):
      for i 0 8, j 0 8:
        s[%j] += r[%i] * A[%i, %j]
        q[%i] += A[%i, %j] * p[%j]
    """,
)
def bicg(a: Array, s: Array, q: Array, p: Array, r: Array) -> None:
    s += r @ a
    q += a @ p


@nest(
    "parallelize{block=x loop=i},reorder{block=z order=j,i},vectorize{block=z loop=i}",
    """
    func.func @mvt(%A: memref<8x8xf64>, %x: memref<8xf64>, %z: memref<8xf64>, %v: memref<8xf64>, %w: memref<8xf64>):
      for i 0 8, j 0 8:
        x[%i] += A[%i, %j] * v[%j]
      for i 0 8, j 0 8:
        z[%i] += A[%j, %i] * w[%j]
    """,
)
def mvt(a: Array, x: Array, z: Array, v: Array, w: Array) -> None:
    x += a @ v
    z += a.T @ w


@nest(
    "parallelize{block=y loop=i}",
    """
    func.func @gesummv(%alpha: f64, %beta: f64, %A: memref<8x8xf64>, %B: memref<8x8xf64>, %x: memref<8xf64>,
                       %y: memref<8xf64>):
      %zero = 0.0
      for i 0 8:
        %s:2 = for j 0 8 with %a = %zero, %b = %zero:
          yield %a + A[%i, %j] * x[%j], %b + B[%i, %j] * x[%j]
        y[%i] = %alpha * %s#0 + %beta * %s#1
    """,
)
def gesummv(alpha: Array, beta: Array, a: Array, b: Array, x: Array, y: Array) -> None:
    y[:] = alpha * (a @ x) + beta * (b @ x)


@nest(
    "vectorize{block=A loop=j},parallelize{block=w loop=i}",
    """
    func.func @gemver(%A: memref<8x8xf64>, %u: memref<8xf64>, %v: memref<8xf64>, %x: memref<8xf64>,
                      %w: memref<8xf64>):
      for i 0 8, j 0 8:
        A[%i, %j] += u[%i] * v[%j]
      for i 0 8, j 0 8:
        x[%i] += A[%j, %i] * v[%j]
      for i 0 8, j 0 8:
        w[%i] += A[%i, %j] * x[%j]
    """,
)
def gemver(a: Array, u: Array, v: Array, x: Array, w: Array) -> None:
    a += np.outer(u, v)
    x += a.T @ v
    w += a @ x


@nest(
    "parallelize{block=A loop=r}",
    """
    func.func @doitgen(%A: memref<4x5x8xf64>, %C: memref<8x8xf64>):
      %zero = 0.0
      for r 0 4:
        %sum = memref.alloca() : memref<8xf64>
        for q 0 5:
          for p 0 8:
            sum[%p] = %zero
            for s 0 8:
              sum[%p] += A[%r, %q, %s] * C[%s, %p]
          for p 0 8:
            %0 = arith.negf sum[%p] : f64
            %1 = arith.negf %0 : f64
            A[%r, %q, %p] = %1
    """,
)
def doitgen(a: Array, c: Array) -> None:
    a[:] = a @ c


@nest(
    "split{block=B loop=i factors=2,4},vectorize{block=B loop=i.1},vectorize{block=A loop=i}",
    """
    func.func @jacobi_1d(%A: memref<10xf64>, %B: memref<10xf64>):
      %third = 0.3
      for t 0 3:
        for i 1 9:
          B[%i] = %third * (A[%i - 1] + A[%i] + A[%i + 1])
        for i 1 9:
          A[%i] = %third * (B[%i - 1] + B[%i] + B[%i + 1])
    """,
)
def jacobi_1d(a: Array, b: Array) -> None:
    for _ in range(3):
        b[1:-1] = 0.3 * (a[:-2] + a[1:-1] + a[2:])
        a[1:-1] = 0.3 * (b[:-2] + b[1:-1] + b[2:])


@nest(
    "tile{block=B axes=i,j sizes=4,4},vectorize{block=B loop=j.1},parallelize{block=A loop=i}",
    """
    func.func @jacobi_2d(%A: memref<10x10xf64>, %B: memref<10x10xf64>):
      %fifth = 0.2
      for t 0 3:
        for i 1 9, j 1 9:
          B[%i, %j] = %fifth * (A[%i, %j] + A[%i, %j - 1] + (A[%i, %j + 1] + A[%i + 1, %j]) + A[%i - 1, %j])
        for i 1 9, j 1 9:
          A[%i, %j] = %fifth * B[%i, %j]
    """,
)
def jacobi_2d(a: Array, b: Array) -> None:
    for _ in range(3):
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])
        a[1:-1, 1:-1] = 0.2 * b[1:-1, 1:-1]


@nest(
    "parallelize{block=B loop=i},vectorize{block=B loop=k},vectorize{block=A loop=k}",
    """
    func.func @heat_3d(%A: memref<6x6x6xf64>, %B: memref<6x6x6xf64>):
      %c = 0.125
      for t 0 2:
        for i 1 5, j 1 5, k 1 5:
          %x = A[%i + 1, %j, %k] + A[%i - 1, %j, %k]
          %y = A[%i, %j + 1, %k] + A[%i, %j - 1, %k]
          B[%i, %j, %k] = A[%i, %j, %k] + %c * (%x + %y + (A[%i, %j, %k + 1] + A[%i, %j, %k - 1]))
        memref.copy %B, %A : memref<6x6x6xf64> to memref<6x6x6xf64>
    """,
)
def heat_3d(a: Array, b: Array) -> None:
    for _ in range(2):
        around = a[2:, 1:-1, 1:-1] + a[:-2, 1:-1, 1:-1] + a[1:-1, 2:, 1:-1] + a[1:-1, :-2, 1:-1]
        around = around + a[1:-1, 1:-1, 2:] + a[1:-1, 1:-1, :-2]
        b[1:-1, 1:-1, 1:-1] = a[1:-1, 1:-1, 1:-1] + 0.125 * around
        a[:] = b


@nest(
    "reorder{block=Y order=h,w,n},vectorize{block=Y loop=n},parallelize{block=Y loop=h}",
    """
    func.func @conv2d(%X: memref<10x10x4xf64>, %W: memref<3x3x4x8xf64>, %Y: memref<8x8x8xf64>):
      for h 0 8, w 0 8, n 0 8:
        %init = Y[%h, %w, %n]
        %all = for p 0 3 with %outer = %init:
          %rows = for q 0 3 with %middle = %outer:
            %row = for c 0 4 with %inner = %middle:
              yield %inner + X[%h + %p, %w + %q, %c] * W[%p, %q, %c, %n]
            yield %row
          yield %rows
        Y[%h, %w, %n] = %all
    """,
)
def conv2d(x: Array, w: Array, y: Array) -> None:
    for p in range(3):
        for q in range(3):
            y += x[p : p + 8, q : q + 8] @ w[p, q]


@nest(
    "parallelize{block=m loop=j},vectorize{block=D loop=j}",
    """
    func.func @covariance(%D: memref<12x8xf64>, %m: memref<8xf64>, %C: memref<8x8xf64>):
      %zero = 0.0
      %n = 12.0
      for j 0 8:
        m[%j] = %zero
        for i 0 12:
          m[%j] += D[%i, %j]
        m[%j] = m[%j] / %n
      for i 0 12, j 0 8:
        D[%i, %j] -= m[%j]
      for i 0 8, j 0 8:
        affine.if affine_set<(d0, d1) : (d1 - d0 >= 0)>(%i, %j):
          C[%i, %j] = %zero
          for k 0 12:
            C[%i, %j] += D[%k, %i] * D[%k, %j]
          %2 = C[%i, %j] / %n
          C[%i, %j] = %2
          C[%j, %i] = %2
    """,
)
def covariance(d: Array, m: Array, c: Array) -> None:
    m[:] = d.mean(axis=0)
    d -= m
    c[:] = d.T @ d / 12


@nest(
    "parallelize{block=s loop=j},vectorize{block=D loop=j}",
    """
    func.func @correlation(%D: memref<12x8xf64>, %s: memref<8xf64>, %C: memref<8x8xf64>):
      %zero = 0.0
      %one = 1.0
      %eps = 3.5
      for j 0 8:
        s[%j] = %zero
        for i 0 12:
          s[%j] += D[%i, %j] * D[%i, %j]
        %2 = math.sqrt s[%j] : f64
        %3 = arith.cmpf ole, %2, %eps : f64
        %4 = arith.select %3, %one, %2 : f64
        s[%j] = %4
      for i 0 12, j 0 8:
        D[%i, %j] = D[%i, %j] / s[%j]
      for i 0 8, j 0 8:
        affine.if affine_set<(d0, d1) : (d0 - d1 == 0)>(%i, %j):
          C[%i, %j] = %one
        else:
          C[%i, %j] = %zero
          for k 0 12:
            C[%i, %j] += D[%k, %i] * D[%k, %j]
    """,
)
def correlation(d: Array, s: Array, c: Array) -> None:
    norm = np.sqrt((d * d).sum(axis=0))
    s[:] = np.where(norm <= 3.5, 1.0, norm)
    d /= s
    c[:] = np.where(np.eye(8, dtype=bool), 1.0, d.T @ d)


@nest(
    "parallelize{block=C loop=i},reorder{block=C.1 order=k,j},vectorize{block=C.1 loop=j}",
    """
    func.func @syrk(%A: memref<8x8xf64>, %C: memref<8x8xf64>, %beta: f64):
      for i 0 8, j 0 8:
        affine.if affine_set<(d0, d1) : (d0 - d1 >= 0)>(%i, %j):
          C[%i, %j] = C[%i, %j] * %beta
      for i 0 8, j 0 8, k 0 8:
        affine.if affine_set<(d0, d1) : (d0 - d1 >= 0)>(%i, %j):
          C[%i, %j] += A[%i, %k] * A[%j, %k]
    """,
)
def syrk(a: Array, c: Array, beta: Array) -> None:
    lower = np.tril(np.ones((8, 8), bool))
    c[:] = np.where(lower, c * beta + a @ a.T, c)


@nest(
    "parallelize{block=C loop=i}",
    """
    func.func @syr2k(%A: memref<8x8xf64>, %B: memref<8x8xf64>, %C: memref<8x8xf64>):
      for i 0 8, k 0 8, j 0 8:
        affine.if affine_set<(d0, d1) : (d0 - d1 >= 0)>(%i, %j):
          C[%i, %j] = C[%i, %j] + A[%j, %k] * B[%i, %k] + B[%j, %k] * A[%i, %k]
    """,
)
def syr2k(a: Array, b: Array, c: Array) -> None:
    c += np.tril(b @ a.T + a @ b.T)


@nest(
    "parallelize{block=B loop=j},vectorize{block=B.1 loop=j}",
    """
    func.func @trmm(%alpha: f64, %A: memref<8x8xf64>, %B: memref<8x8xf64>):
      for i 0 8:
        for j 0 8, k 0 8:
          affine.if affine_set<(d0, d1) : (d1 - d0 - 1 >= 0)>(%i, %k):
            B[%i, %j] += A[%k, %i] * B[%k, %j]
        for j 0 8:
          B[%i, %j] = %alpha * B[%i, %j]
    """,
)
def trmm(alpha: Array, a: Array, b: Array) -> None:
    b[:] = alpha * (b + np.tril(a, -1).T @ b)


@nest(
    "split{block=P loop=j factors=2,4}",
    """
    func.func @floyd_warshall(%P: memref<8x8xf64>):
      for k 0 8, i 0 8, j 0 8:
        %0 = P[%i, %k] + P[%k, %j]
        %1 = arith.minimumf P[%i, %j], %0 : f64
        P[%i, %j] = %1
    """,
)
def floyd_warshall(p: Array) -> None:
    for k in range(8):
        p[:] = np.minimum(p, p[:, k : k + 1] + p[k : k + 1])


@nest(
    "vectorize{block=Y loop=j},parallelize{block=X loop=i},vectorize{block=H loop=j}",
    """
    func.func @fdtd_2d(%X: memref<8x9xf64>, %Y: memref<9x8xf64>, %H: memref<8x8xf64>, %f: memref<3xf64>):
      %half = 0.5
      for t 0 3:
        for j 0 8:
          Y[0, %j] = f[%t]
        for i 1 8, j 0 8:
          Y[%i, %j] -= %half * (H[%i, %j] - H[%i - 1, %j])
        for i 0 8, j 1 8:
          X[%i, %j] -= %half * (H[%i, %j] - H[%i, %j - 1])
        for i 0 8, j 0 8:
          H[%i, %j] = H[%i, %j] - %half * (X[%i, %j + 1] - X[%i, %j] + (Y[%i + 1, %j] - Y[%i, %j]))
    """,
)
def fdtd_2d(x: Array, y: Array, h: Array, f: Array) -> None:
    for t in range(3):
        y[0] = f[t]
        y[1:8] -= 0.5 * (h[1:] - h[:-1])
        x[:, 1:8] -= 0.5 * (h[:, 1:] - h[:, :-1])
        h -= 0.5 * (x[:, 1:] - x[:, :-1] + y[1:] - y[:-1])


@nest(
    "split{block=A loop=i factors=4,2}",
    """
    func.func @seidel_2d(%A: memref<10x10xf64>):
      %third = 0.3
      for t 0 3, i 1 9, j 1 9:
        A[%i, %j] = %third * (A[%i - 1, %j] + A[%i, %j - 1] + A[%i + 1, %j])
    """,
)
def seidel_2d(a: Array) -> None:
    for _ in range(3):
        for i in range(1, 9):
            for j in range(1, 9):
                a[i, j] = 0.3 * (a[i - 1, j] + a[i, j - 1] + a[i + 1, j])


@nest(
    "parallelize{block=Y loop=i}",
    """
    func.func @deriche(%X: memref<8x8xf64>, %Y: memref<8x8xf64>):
      %a = 0.25
      %b = 0.5
      for i 0 8, j 0 8:
        %before = affine.if affine_set<(d0) : (d0 - 1 >= 0)>(%j) -> f64:
          yield %b * Y[%i, %j - 1]
        else:
          yield %a
        Y[%i, %j] = %a * X[%i, %j] + %before
    """,
)
def deriche(x: Array, y: Array) -> None:
    for j in range(8):
        y[:, j] = 0.25 * x[:, j] + (0.5 * y[:, j - 1] if j else 0.25)


@nest(
    "parallelize{block=R.1 loop=j}",
    """
    func.func @gramschmidt(%A: memref<8x8xf64>, %Q: memref<8x8xf64>, %R: memref<8x8xf64>):
      %zero = 0.0
      for k 0 8:
        %norm = for i 0 8 with %sum = %zero:
          yield %sum + A[%i, %k] * A[%i, %k]
        %2 = math.sqrt %norm : f64
        R[%k, %k] = %2
        for i 0 8:
          Q[%i, %k] = A[%i, %k] / %2
        for j 0 8:
          affine.if affine_set<(d0, d1) : (d1 - d0 - 1 >= 0)>(%k, %j):
            R[%k, %j] = %zero
            for i 0 8:
              R[%k, %j] += Q[%i, %k] * A[%i, %j]
            for i 0 8:
              A[%i, %j] -= Q[%i, %k] * R[%k, %j]
    """,
)
def gramschmidt(a: Array, q: Array, r: Array) -> None:
    for k in range(8):
        r[k, k] = np.sqrt(a[:, k] @ a[:, k])
        q[:, k] = a[:, k] / r[k, k]
        for j in range(k + 1, 8):
            r[k, j] = q[:, k] @ a[:, j]
            a[:, j] -= q[:, k] * r[k, j]


BOUND = "the bound depends on {}; the number of iterations of a loop is constant"
REFUSED = {
    "lu": (
        BOUND.format("%i"),
        """
        func.func @lu(%A: memref<8x8xf64>):
          for i 0 8:
            affine.for %j = 0 to affine_map<(d0) -> (d0)>(%i): // here
              A[%i, %j] = A[%i, %j] / A[%j, %j]
        """,
    ),
    "cholesky": (
        BOUND.format("%j"),
        """
        func.func @cholesky(%A: memref<8x8xf64>):
          for i 0 8, j 0 8:
            for k 0 %j: // here
              A[%i, %j] -= A[%i, %k] * A[%j, %k]
        """,
    ),
    "trisolv": (
        BOUND.format("%i"),
        """
        func.func @trisolv(%L: memref<8x8xf64>, %x: memref<8xf64>, %b: memref<8xf64>):
          for i 0 8:
            %0 = b[%i]
            %s = for j 0 %i with %sum = %0: // here
              yield %sum - L[%i, %j] * x[%j]
            x[%i] = %s
        """,
    ),
    "nussinov": (
        BOUND.format("%i"),
        """
        func.func @nussinov(%T: memref<8x8xf64>):
          for i 0 7:
            affine.for %j = affine_map<(d0) -> (d0 + 1)>(%i) to 8: // here
              %0 = arith.maximumf T[%i, %j], T[%i, %j - 1] : f64
              T[%i, %j] = %0
        """,
    ),
    "durbin": (
        "the loop carries %last, which is no reduction by add, mul, max or min",
        """
        func.func @durbin(%r: memref<8xf64>, %y: memref<8xf64>):
          %one = 1.0
          %end = for k 0 8 with %last = %one: // here
            yield %one - %last * r[%k]
          y[0] = %end
        """,
    ),
}
"""Nests without a form: the message, and the text, with `// here` in the line of the op at fault."""
