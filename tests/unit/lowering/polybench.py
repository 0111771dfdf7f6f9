"""Nests of the kinds that PolyBench has, as affine text, each with what it computes in numpy and a schedule."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
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


def expanded(text: str) -> str:
    """Spell a shorthand in MLIR: `A[%i]` as an operand is a load, `A[%i] = %x` a store, `for i 0 8 {` a loop.

    >>> print(expanded("func.func @f(%A: memref<8xf64>) { \\n A[0] = %x"))
    func.func @f(%A: memref<8xf64>) {
     affine.store %x, %A[0] : memref<8xf64>
    """
    types = dict(re.findall(r"%(\w+)(?: = memref\.alloca?\(\))? ?: (memref<[^>]*>)", text))
    numbers = count()
    text = re.sub(r"\bfor (\w+) (\S+) (\S+)", r"affine.for %\1 = \2 to \3", text)
    return "\n".join(new for line in text.strip().splitlines() for new in _spelled(line.rstrip(), types, numbers))


def _spelled(line: str, types: dict[str, str], numbers: Iterator[int]) -> Iterator[str]:
    store = re.fullmatch(r"(\s*)(\w+)(\[.*\]) = (%\w+)", line)
    if store:
        yield f"{store[1]}affine.store {store[4]}, %{store[2]}{store[3]} : {types[store[2]]}"
        return
    for name, index in re.findall(r"(?<![%\w.])([A-Za-z]\w*)(\[[^\]]*\])", line):
        number = next(numbers)
        yield f"%load{number} = affine.load %{name}{index} : {types[name]}"
        line = line.replace(f"{name}{index}", f"%load{number}", 1)
    yield line


@nest(
    "tile{block=C.1 axes=i,j,k sizes=4,4,4},vectorize{block=C.1 loop=j.1},parallelize{block=C loop=i}",
    """
    func.func @gemm(%A: memref<8x8xf64>, %B: memref<8x8xf64>, %C: memref<8x8xf64>, %alpha: f64, %beta: f64) {
      for i 0 8 { for j 0 8 {
        %0 = arith.mulf %beta, C[%i, %j] : f64
        C[%i, %j] = %0
      } }
      for i 0 8 { for j 0 8 { for k 0 8 {
        %0 = arith.mulf %alpha, A[%i, %k] : f64
        %1 = arith.mulf %0, B[%k, %j] : f64
        %2 = arith.addf C[%i, %j], %1 : f64
        C[%i, %j] = %2
      } } }
      return
    }""",
)
def gemm(a: Array, b: Array, c: Array, alpha: Array, beta: Array) -> None:
    c[:] = beta * c + alpha * a @ b


@nest(
    "tile{block=D axes=i,j,k sizes=4,4,4},vectorize{block=D loop=j.1},parallelize{block=T loop=i}",
    """
    func.func @mm2(%A: memref<8x8xf64>, %B: memref<8x8xf64>, %C: memref<8x8xf64>, %D: memref<8x8xf64>) {
      %zero = arith.constant 0.0 : f64
      %T = memref.alloc() : memref<8x8xf64>
      for i 0 8 { for j 0 8 {
        T[%i, %j] = %zero
        for k 0 8 {
          %0 = arith.mulf A[%i, %k], B[%k, %j] : f64
          %1 = arith.addf T[%i, %j], %0 : f64
          T[%i, %j] = %1
        }
      } }
      for i 0 8 { for j 0 8 { for k 0 8 {
        %0 = math.fma T[%i, %k], C[%k, %j], D[%i, %j] : f64
        D[%i, %j] = %0
      } } }
      memref.dealloc %T : memref<8x8xf64>
      return
    }""",
)
def mm2(a: Array, b: Array, c: Array, d: Array) -> None:
    d += a @ b @ c


@nest(
    "parallelize{block=E loop=i},parallelize{block=F loop=i},reorder{block=G order=k,j},vectorize{block=G loop=j}",
    """
    func.func @mm3(%A: memref<8x8xf64>, %B: memref<8x8xf64>, %C: memref<8x8xf64>, %D: memref<8x8xf64>,
                   %G: memref<8x8xf64>) {
      %zero = arith.constant 0.0 : f64
      %E = memref.alloc() : memref<8x8xf64>
      %F = memref.alloc() : memref<8x8xf64>
      for i 0 8 { for j 0 8 {
        %s = affine.for %k = 0 to 8 iter_args(%sum = %zero) -> f64 {
          %0 = arith.mulf A[%i, %k], B[%k, %j] : f64
          %1 = arith.addf %sum, %0 : f64
          affine.yield %1 : f64
        }
        E[%i, %j] = %s
      } }
      for i 0 8 { for j 0 8 {
        %s = affine.for %k = 0 to 8 iter_args(%sum = %zero) -> f64 {
          %0 = arith.mulf C[%i, %k], D[%k, %j] : f64
          %1 = arith.addf %0, %sum : f64
          affine.yield %1 : f64
        }
        F[%i, %j] = %s
      } }
      for i 0 8 { for j 0 8 {
        G[%i, %j] = %zero
      } }
      for i 0 8 { for j 0 8 { for k 0 8 {
        %0 = arith.mulf E[%i, %k], F[%k, %j] : f64
        %1 = arith.addf %0, G[%i, %j] : f64
        G[%i, %j] = %1
      } } }
      return
    }""",
)
def mm3(a: Array, b: Array, c: Array, d: Array, g: Array) -> None:
    g[:] = (a @ b) @ (c @ d)


@nest(
    "vectorize{block=y loop=j}",
    """
    func.func @atax(%A: memref<8x8xf64>, %x: memref<8xf64>, %y: memref<8xf64>, %t: memref<8xf64>) {
      %zero = arith.constant 0.0 : f64
      for i 0 8 {
        y[%i] = %zero
      }
      for i 0 8 {
        t[%i] = %zero
        for j 0 8 {
          %0 = arith.mulf A[%i, %j], x[%j] : f64
          %1 = arith.addf t[%i], %0 : f64
          t[%i] = %1
        }
        for j 0 8 {
          %0 = arith.mulf A[%i, %j], t[%i] : f64
          %1 = arith.addf y[%j], %0 : f64
          y[%j] = %1
        }
      }
      return
    }""",
)
def atax(a: Array, x: Array, y: Array, t: Array) -> None:
    t[:] = a @ x
    y[:] = a.T @ t


@nest(
    "distribute{block=s loop=j},vectorize{block=s loop=j}",
    """
    func.func @bicg(%A: memref<8x8xf64>, %s: memref<8xf64>, %q: memref<8xf64>, %p: memref<8xf64>, %r: memref<8xf64>) {
      for i 0 8 { for j 0 8 {
        %0 = arith.mulf r[%i], A[%i, %j] : f64
        %1 = arith.addf s[%j], %0 : f64
        s[%j] = %1
        %2 = arith.mulf A[%i, %j], p[%j] : f64
        %3 = arith.addf q[%i], %2 : f64
        q[%i] = %3
      } }
      return
    }""",
)
def bicg(a: Array, s: Array, q: Array, p: Array, r: Array) -> None:
    s += r @ a
    q += a @ p


@nest(
    "parallelize{block=x loop=i},reorder{block=z order=j,i},vectorize{block=z loop=i}",
    """
    func.func @mvt(%A: memref<8x8xf64>, %x: memref<8xf64>, %z: memref<8xf64>, %v: memref<8xf64>, %w: memref<8xf64>) {
      for i 0 8 { for j 0 8 {
        %0 = arith.mulf A[%i, %j], v[%j] : f64
        %1 = arith.addf x[%i], %0 : f64
        x[%i] = %1
      } }
      for i 0 8 { for j 0 8 {
        %0 = arith.mulf A[%j, %i], w[%j] : f64
        %1 = arith.addf z[%i], %0 : f64
        z[%i] = %1
      } }
      return
    }""",
)
def mvt(a: Array, x: Array, z: Array, v: Array, w: Array) -> None:
    x += a @ v
    z += a.T @ w


@nest(
    "parallelize{block=y loop=i}",
    """
    func.func @gesummv(%alpha: f64, %beta: f64, %A: memref<8x8xf64>, %B: memref<8x8xf64>, %x: memref<8xf64>,
                       %y: memref<8xf64>) {
      %zero = arith.constant 0.0 : f64
      for i 0 8 {
        %s:2 = affine.for %j = 0 to 8 iter_args(%a = %zero, %b = %zero) -> (f64, f64) {
          %0 = arith.mulf A[%i, %j], x[%j] : f64
          %1 = arith.addf %a, %0 : f64
          %2 = arith.mulf B[%i, %j], x[%j] : f64
          %3 = arith.addf %b, %2 : f64
          affine.yield %1, %3 : f64, f64
        }
        %4 = arith.mulf %alpha, %s#0 : f64
        %5 = arith.mulf %beta, %s#1 : f64
        %6 = arith.addf %4, %5 : f64
        y[%i] = %6
      }
      return
    }""",
)
def gesummv(alpha: Array, beta: Array, a: Array, b: Array, x: Array, y: Array) -> None:
    y[:] = alpha * (a @ x) + beta * (b @ x)


@nest(
    "vectorize{block=A loop=j},parallelize{block=w loop=i}",
    """
    func.func @gemver(%A: memref<8x8xf64>, %u: memref<8xf64>, %v: memref<8xf64>, %x: memref<8xf64>, %w: memref<8xf64>) {
      for i 0 8 { for j 0 8 {
        %0 = arith.mulf u[%i], v[%j] : f64
        %1 = arith.addf A[%i, %j], %0 : f64
        A[%i, %j] = %1
      } }
      for i 0 8 { for j 0 8 {
        %0 = arith.mulf A[%j, %i], v[%j] : f64
        %1 = arith.addf x[%i], %0 : f64
        x[%i] = %1
      } }
      for i 0 8 { for j 0 8 {
        %0 = arith.mulf A[%i, %j], x[%j] : f64
        %1 = arith.addf w[%i], %0 : f64
        w[%i] = %1
      } }
      return
    }""",
)
def gemver(a: Array, u: Array, v: Array, x: Array, w: Array) -> None:
    a += np.outer(u, v)
    x += a.T @ v
    w += a @ x


@nest(
    "parallelize{block=A loop=r}",
    """
    func.func @doitgen(%A: memref<4x5x8xf64>, %C: memref<8x8xf64>) {
      %zero = arith.constant 0.0 : f64
      for r 0 4 {
        %sum = memref.alloca() : memref<8xf64>
        for q 0 5 {
          for p 0 8 {
            sum[%p] = %zero
            for s 0 8 {
              %0 = arith.mulf A[%r, %q, %s], C[%s, %p] : f64
              %1 = arith.addf sum[%p], %0 : f64
              sum[%p] = %1
            }
          }
          for p 0 8 {
            %0 = arith.negf sum[%p] : f64
            %1 = arith.negf %0 : f64
            A[%r, %q, %p] = %1
          }
        }
      }
      return
    }""",
)
def doitgen(a: Array, c: Array) -> None:
    a[:] = a @ c


@nest(
    "split{block=B loop=i factors=2,4},vectorize{block=B loop=i.1},vectorize{block=A loop=i}",
    """
    func.func @jacobi_1d(%A: memref<10xf64>, %B: memref<10xf64>) {
      %third = arith.constant 0.3 : f64
      for t 0 3 {
        for i 1 9 {
          %0 = arith.addf A[%i - 1], A[%i] : f64
          %1 = arith.addf %0, A[%i + 1] : f64
          %2 = arith.mulf %third, %1 : f64
          B[%i] = %2
        }
        for i 1 9 {
          %0 = arith.addf B[%i - 1], B[%i] : f64
          %1 = arith.addf %0, B[%i + 1] : f64
          %2 = arith.mulf %third, %1 : f64
          A[%i] = %2
        }
      }
      return
    }""",
)
def jacobi_1d(a: Array, b: Array) -> None:
    for _ in range(3):
        b[1:-1] = 0.3 * (a[:-2] + a[1:-1] + a[2:])
        a[1:-1] = 0.3 * (b[:-2] + b[1:-1] + b[2:])


@nest(
    "tile{block=B axes=i,j sizes=4,4},vectorize{block=B loop=j.1},parallelize{block=A loop=i}",
    """
    func.func @jacobi_2d(%A: memref<10x10xf64>, %B: memref<10x10xf64>) {
      %fifth = arith.constant 0.2 : f64
      for t 0 3 {
        for i 1 9 { for j 1 9 {
          %0 = arith.addf A[%i, %j], A[%i, %j - 1] : f64
          %1 = arith.addf A[%i, %j + 1], A[%i + 1, %j] : f64
          %2 = arith.addf %0, %1 : f64
          %3 = arith.addf %2, A[%i - 1, %j] : f64
          %4 = arith.mulf %fifth, %3 : f64
          B[%i, %j] = %4
        } }
        for i 1 9 { for j 1 9 {
          %0 = arith.mulf %fifth, B[%i, %j] : f64
          A[%i, %j] = %0
        } }
      }
      return
    }""",
)
def jacobi_2d(a: Array, b: Array) -> None:
    for _ in range(3):
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])
        a[1:-1, 1:-1] = 0.2 * b[1:-1, 1:-1]


@nest(
    "parallelize{block=B loop=i},vectorize{block=B loop=k},vectorize{block=A loop=k}",
    """
    func.func @heat_3d(%A: memref<6x6x6xf64>, %B: memref<6x6x6xf64>) {
      %c = arith.constant 0.125 : f64
      for t 0 2 {
        for i 1 5 { for j 1 5 { for k 1 5 {
          %0 = arith.addf A[%i + 1, %j, %k], A[%i - 1, %j, %k] : f64
          %1 = arith.addf A[%i, %j + 1, %k], A[%i, %j - 1, %k] : f64
          %2 = arith.addf A[%i, %j, %k + 1], A[%i, %j, %k - 1] : f64
          %3 = arith.addf %0, %1 : f64
          %4 = arith.addf %3, %2 : f64
          %5 = arith.mulf %c, %4 : f64
          %6 = arith.addf A[%i, %j, %k], %5 : f64
          B[%i, %j, %k] = %6
        } } }
        memref.copy %B, %A : memref<6x6x6xf64> to memref<6x6x6xf64>
      }
      return
    }""",
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
    func.func @conv2d(%X: memref<10x10x4xf64>, %W: memref<3x3x4x8xf64>, %Y: memref<8x8x8xf64>) {
      for h 0 8 { for w 0 8 { for n 0 8 {
        %init = affine.load %Y[%h, %w, %n] : memref<8x8x8xf64>
        %all = affine.for %p = 0 to 3 iter_args(%outer = %init) -> f64 {
          %rows = affine.for %q = 0 to 3 iter_args(%middle = %outer) -> f64 {
            %row = affine.for %c = 0 to 4 iter_args(%inner = %middle) -> f64 {
              %0 = arith.mulf X[%h + %p, %w + %q, %c], W[%p, %q, %c, %n] : f64
              %1 = arith.addf %inner, %0 : f64
              affine.yield %1 : f64
            }
            affine.yield %row : f64
          }
          affine.yield %rows : f64
        }
        Y[%h, %w, %n] = %all
      } } }
      return
    }""",
)
def conv2d(x: Array, w: Array, y: Array) -> None:
    for p in range(3):
        for q in range(3):
            y += x[p : p + 8, q : q + 8] @ w[p, q]


@nest(
    "parallelize{block=m loop=j},vectorize{block=D loop=j}",
    """
    func.func @covariance(%D: memref<12x8xf64>, %m: memref<8xf64>, %C: memref<8x8xf64>) {
      %zero = arith.constant 0.0 : f64
      %n = arith.constant 12.0 : f64
      for j 0 8 {
        m[%j] = %zero
        for i 0 12 {
          %0 = arith.addf m[%j], D[%i, %j] : f64
          m[%j] = %0
        }
        %1 = arith.divf m[%j], %n : f64
        m[%j] = %1
      }
      for i 0 12 { for j 0 8 {
        %0 = arith.subf D[%i, %j], m[%j] : f64
        D[%i, %j] = %0
      } }
      for i 0 8 { for j 0 8 {
        affine.if affine_set<(d0, d1) : (d1 - d0 >= 0)>(%i, %j) {
          C[%i, %j] = %zero
          for k 0 12 {
            %0 = arith.mulf D[%k, %i], D[%k, %j] : f64
            %1 = arith.addf C[%i, %j], %0 : f64
            C[%i, %j] = %1
          }
          %2 = arith.divf C[%i, %j], %n : f64
          C[%i, %j] = %2
          C[%j, %i] = %2
        }
      } }
      return
    }""",
)
def covariance(d: Array, m: Array, c: Array) -> None:
    m[:] = d.mean(axis=0)
    d -= m
    c[:] = d.T @ d / 12


@nest(
    "parallelize{block=s loop=j},vectorize{block=D loop=j}",
    """
    func.func @correlation(%D: memref<12x8xf64>, %s: memref<8xf64>, %C: memref<8x8xf64>) {
      %zero = arith.constant 0.0 : f64
      %one = arith.constant 1.0 : f64
      %eps = arith.constant 3.5 : f64
      for j 0 8 {
        s[%j] = %zero
        for i 0 12 {
          %0 = arith.mulf D[%i, %j], D[%i, %j] : f64
          %1 = arith.addf s[%j], %0 : f64
          s[%j] = %1
        }
        %2 = math.sqrt s[%j] : f64
        %3 = arith.cmpf ole, %2, %eps : f64
        %4 = arith.select %3, %one, %2 : f64
        s[%j] = %4
      }
      for i 0 12 { for j 0 8 {
        %0 = arith.divf D[%i, %j], s[%j] : f64
        D[%i, %j] = %0
      } }
      for i 0 8 { for j 0 8 {
        affine.if affine_set<(d0, d1) : (d0 - d1 == 0)>(%i, %j) {
          C[%i, %j] = %one
        } else {
          C[%i, %j] = %zero
          for k 0 12 {
            %0 = arith.mulf D[%k, %i], D[%k, %j] : f64
            %1 = arith.addf C[%i, %j], %0 : f64
            C[%i, %j] = %1
          }
        }
      } }
      return
    }""",
)
def correlation(d: Array, s: Array, c: Array) -> None:
    norm = np.sqrt((d * d).sum(axis=0))
    s[:] = np.where(norm <= 3.5, 1.0, norm)
    d /= s
    c[:] = np.where(np.eye(8, dtype=bool), 1.0, d.T @ d)


@nest(
    "parallelize{block=C loop=i},reorder{block=C.1 order=k,j},vectorize{block=C.1 loop=j}",
    """
    func.func @syrk(%A: memref<8x8xf64>, %C: memref<8x8xf64>, %beta: f64) {
      for i 0 8 { for j 0 8 {
        affine.if affine_set<(d0, d1) : (d0 - d1 >= 0)>(%i, %j) {
          %0 = arith.mulf C[%i, %j], %beta : f64
          C[%i, %j] = %0
        }
      } }
      for i 0 8 { for j 0 8 { for k 0 8 {
        affine.if affine_set<(d0, d1) : (d0 - d1 >= 0)>(%i, %j) {
          %0 = arith.mulf A[%i, %k], A[%j, %k] : f64
          %1 = arith.addf C[%i, %j], %0 : f64
          C[%i, %j] = %1
        }
      } } }
      return
    }""",
)
def syrk(a: Array, c: Array, beta: Array) -> None:
    lower = np.tril(np.ones((8, 8), bool))
    c[:] = np.where(lower, c * beta + a @ a.T, c)


@nest(
    "parallelize{block=C loop=i}",
    """
    func.func @syr2k(%A: memref<8x8xf64>, %B: memref<8x8xf64>, %C: memref<8x8xf64>) {
      for i 0 8 { for k 0 8 { for j 0 8 {
        affine.if affine_set<(d0, d1) : (d0 - d1 >= 0)>(%i, %j) {
          %0 = arith.mulf A[%j, %k], B[%i, %k] : f64
          %1 = arith.mulf B[%j, %k], A[%i, %k] : f64
          %2 = arith.addf C[%i, %j], %0 : f64
          %3 = arith.addf %2, %1 : f64
          C[%i, %j] = %3
        }
      } } }
      return
    }""",
)
def syr2k(a: Array, b: Array, c: Array) -> None:
    c += np.tril(b @ a.T + a @ b.T)


@nest(
    "parallelize{block=B loop=j},vectorize{block=B.1 loop=j}",
    """
    func.func @trmm(%alpha: f64, %A: memref<8x8xf64>, %B: memref<8x8xf64>) {
      for i 0 8 {
        for j 0 8 { for k 0 8 {
          affine.if affine_set<(d0, d1) : (d1 - d0 - 1 >= 0)>(%i, %k) {
            %0 = arith.mulf A[%k, %i], B[%k, %j] : f64
            %1 = arith.addf B[%i, %j], %0 : f64
            B[%i, %j] = %1
          }
        } }
        for j 0 8 {
          %0 = arith.mulf %alpha, B[%i, %j] : f64
          B[%i, %j] = %0
        }
      }
      return
    }""",
)
def trmm(alpha: Array, a: Array, b: Array) -> None:
    b[:] = alpha * (b + np.tril(a, -1).T @ b)


@nest(
    "split{block=P loop=j factors=2,4}",
    """
    func.func @floyd_warshall(%P: memref<8x8xf64>) {
      for k 0 8 { for i 0 8 { for j 0 8 {
        %0 = arith.addf P[%i, %k], P[%k, %j] : f64
        %1 = arith.minimumf P[%i, %j], %0 : f64
        P[%i, %j] = %1
      } } }
      return
    }""",
)
def floyd_warshall(p: Array) -> None:
    for k in range(8):
        p[:] = np.minimum(p, p[:, k : k + 1] + p[k : k + 1])


@nest(
    "vectorize{block=Y loop=j},parallelize{block=X loop=i},vectorize{block=H loop=j}",
    """
    func.func @fdtd_2d(%X: memref<8x9xf64>, %Y: memref<9x8xf64>, %H: memref<8x8xf64>, %f: memref<3xf64>) {
      %half = arith.constant 0.5 : f64
      for t 0 3 {
        for j 0 8 {
          %0 = affine.load %f[%t] : memref<3xf64>
          Y[0, %j] = %0
        }
        for i 1 8 { for j 0 8 {
          %0 = arith.subf H[%i, %j], H[%i - 1, %j] : f64
          %1 = arith.mulf %half, %0 : f64
          %2 = arith.subf Y[%i, %j], %1 : f64
          Y[%i, %j] = %2
        } }
        for i 0 8 { for j 1 8 {
          %0 = arith.subf H[%i, %j], H[%i, %j - 1] : f64
          %1 = arith.mulf %half, %0 : f64
          %2 = arith.subf X[%i, %j], %1 : f64
          X[%i, %j] = %2
        } }
        for i 0 8 { for j 0 8 {
          %0 = arith.subf X[%i, %j + 1], X[%i, %j] : f64
          %1 = arith.subf Y[%i + 1, %j], Y[%i, %j] : f64
          %2 = arith.addf %0, %1 : f64
          %3 = arith.mulf %half, %2 : f64
          %4 = arith.subf H[%i, %j], %3 : f64
          H[%i, %j] = %4
        } }
      }
      return
    }""",
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
    func.func @seidel_2d(%A: memref<10x10xf64>) {
      %third = arith.constant 0.3 : f64
      for t 0 3 { for i 1 9 { for j 1 9 {
        %0 = arith.addf A[%i - 1, %j], A[%i, %j - 1] : f64
        %1 = arith.addf %0, A[%i + 1, %j] : f64
        %2 = arith.mulf %third, %1 : f64
        A[%i, %j] = %2
      } } }
      return
    }""",
)
def seidel_2d(a: Array) -> None:
    for _ in range(3):
        for i in range(1, 9):
            for j in range(1, 9):
                a[i, j] = 0.3 * (a[i - 1, j] + a[i, j - 1] + a[i + 1, j])


@nest(
    "parallelize{block=Y loop=i}",
    """
    func.func @deriche(%X: memref<8x8xf64>, %Y: memref<8x8xf64>) {
      %a = arith.constant 0.25 : f64
      %b = arith.constant 0.5 : f64
      for i 0 8 { for j 0 8 {
        %before = affine.if affine_set<(d0) : (d0 - 1 >= 0)>(%j) -> f64 {
          %0 = arith.mulf %b, Y[%i, %j - 1] : f64
          affine.yield %0 : f64
        } else {
          affine.yield %a : f64
        }
        %1 = arith.mulf %a, X[%i, %j] : f64
        %2 = arith.addf %1, %before : f64
        Y[%i, %j] = %2
      } }
      return
    }""",
)
def deriche(x: Array, y: Array) -> None:
    for j in range(8):
        y[:, j] = 0.25 * x[:, j] + (0.5 * y[:, j - 1] if j else 0.25)


@nest(
    "parallelize{block=R.1 loop=j}",
    """
    func.func @gramschmidt(%A: memref<8x8xf64>, %Q: memref<8x8xf64>, %R: memref<8x8xf64>) {
      %zero = arith.constant 0.0 : f64
      for k 0 8 {
        %norm = affine.for %i = 0 to 8 iter_args(%sum = %zero) -> f64 {
          %0 = arith.mulf A[%i, %k], A[%i, %k] : f64
          %1 = arith.addf %sum, %0 : f64
          affine.yield %1 : f64
        }
        %2 = math.sqrt %norm : f64
        R[%k, %k] = %2
        for i 0 8 {
          %0 = arith.divf A[%i, %k], %2 : f64
          Q[%i, %k] = %0
        }
        for j 0 8 {
          affine.if affine_set<(d0, d1) : (d1 - d0 - 1 >= 0)>(%k, %j) {
            R[%k, %j] = %zero
            for i 0 8 {
              %0 = arith.mulf Q[%i, %k], A[%i, %j] : f64
              %1 = arith.addf R[%k, %j], %0 : f64
              R[%k, %j] = %1
            }
            for i 0 8 {
              %0 = arith.mulf Q[%i, %k], R[%k, %j] : f64
              %1 = arith.subf A[%i, %j], %0 : f64
              A[%i, %j] = %1
            }
          }
        }
      }
      return
    }""",
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
        func.func @lu(%A: memref<8x8xf64>) {
          for i 0 8 {
            affine.for %j = 0 to affine_map<(d0) -> (d0)>(%i) { // here
              %0 = arith.divf A[%i, %j], A[%j, %j] : f64
              A[%i, %j] = %0
            }
          }
          return
        }""",
    ),
    "cholesky": (
        BOUND.format("%j"),
        """
        func.func @cholesky(%A: memref<8x8xf64>) {
          for i 0 8 { for j 0 8 {
            affine.for %k = 0 to %j { // here
              %0 = arith.mulf A[%i, %k], A[%j, %k] : f64
              %1 = arith.subf A[%i, %j], %0 : f64
              A[%i, %j] = %1
            }
          } }
          return
        }""",
    ),
    "trisolv": (
        BOUND.format("%i"),
        """
        func.func @trisolv(%L: memref<8x8xf64>, %x: memref<8xf64>, %b: memref<8xf64>) {
          for i 0 8 {
            %0 = affine.load %b[%i] : memref<8xf64>
            %s = affine.for %j = 0 to %i iter_args(%sum = %0) -> f64 { // here
              %1 = arith.mulf L[%i, %j], x[%j] : f64
              %2 = arith.subf %sum, %1 : f64
              affine.yield %2 : f64
            }
            x[%i] = %s
          }
          return
        }""",
    ),
    "nussinov": (
        BOUND.format("%i"),
        """
        func.func @nussinov(%T: memref<8x8xf64>) {
          for i 0 7 {
            affine.for %j = affine_map<(d0) -> (d0 + 1)>(%i) to 8 { // here
              %0 = arith.maximumf T[%i, %j], T[%i, %j - 1] : f64
              T[%i, %j] = %0
            }
          }
          return
        }""",
    ),
    "durbin": (
        "the loop carries %last, which is no reduction by add, mul, max or min",
        """
        func.func @durbin(%r: memref<8xf64>, %y: memref<8xf64>) {
          %one = arith.constant 1.0 : f64
          %end = affine.for %k = 0 to 8 iter_args(%last = %one) -> f64 { // here
            %0 = arith.mulf %last, r[%k] : f64
            %1 = arith.subf %one, %0 : f64
            affine.yield %1 : f64
          }
          y[0] = %end
          return
        }""",
    ),
}
"""Nests without a form: the message, and the text, with `// here` in the line of the op at fault."""
