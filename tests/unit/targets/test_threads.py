"""Threads: the runtime, counts and wrong ones, parts of the workspace, Python threads, forked children."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from ctypes.util import find_library
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import memref, scf

import compiler
from compiler.lowering.low_to_llvm import emit, team
from compiler.lowering.low_to_llvm.signature import Workspace
from compiler.passes.plan_buffers import PlanBuffersPass
from compiler.support.errors import LoweringError
from compiler.targets.cpu import openmp
from compiler.targets.cpu.compile import compile_llvm, define_symbol
from compiler.targets.cpu.load import load
from compiler.types.machines import host
from compiler.universe import context
from strata.passes import parse, parse_passes, run
from tests.low import with_constants
from tests.unit.targets.calls import at_once, said
from tests.upstream import assert_accepted, needs_mlir_opt

ROOT = Path(__file__).parents[3]


def parallel(body: str, bounds: str = "%c0, %n, %c1", indices: str = "%i: index", count: int = 1) -> str:
    """An scf.parallel of `count` indices."""
    types = ", ".join(["index"] * 3 * count)
    return f"""
      "scf.parallel"({bounds}) <{{operandSegmentSizes = array<i32: {count}, {count}, {count}, 0>}}> ({{
      ^bb0({indices}):
        {body}
        scf.reduce
      }}) : ({types}) -> ()"""


def function(body: str, n: int = 64, type: str = "f32") -> str:
    return with_constants(f"""
    func.func @f(%x: memref<{n}x{type}>, %y: memref<{n}x{type}>) attributes {{outputs = 1 : i64}} {{
      %n = arith.constant {n} : index
      %z = arith.constant 0.0 : {type}
      {body}
      func.return
    }}""")


def through(name: str, n: int = 64) -> str:
    """The ops that write x + x to y, all of it, through a buffer of the iteration's own, one iteration a row."""
    return f"""
      %{name} = memref.alloc() : memref<{n}xf32>
      scf.for %j = %c0 to %n step %c1 {{
        %a = memref.load %x[%j] : memref<{n}xf32>
        memref.store %a, %{name}[%j] : memref<{n}xf32>
      }}
      %b = memref.load %{name}[%i] : memref<{n}xf32>
      %c = arith.addf %b, %b : f32
      memref.store %c, %y[%i] : memref<{n}xf32>"""


PRIVATE = function(parallel(through("t")))
TWICE = function(parallel(through("t")) + parallel(through("u", 64)))
DOUBLE = """
        %a = memref.load %x[%i] : memref<64xf32>
        %b = arith.addf %a, %a : f32
        memref.store %b, %y[%i] : memref<64xf32>"""


# Each iteration fills its buffer with its own number, adds it up again, and leaves it there.
HELD = with_constants("""
func.func @held(%x: memref<8xf64>, %y: memref<8xf64>) attributes {outputs = 1 : i64} {
  %z = arith.constant 0.0 : f64
  "scf.parallel"(%c0, %c8, %c1) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> ({
  ^bb0(%i: index):
    %t = memref.alloc() : memref<4096xf64>
    %v = memref.load %x[%i] : memref<8xf64>
    %whole = scf.for %r = %c0 to %c20 step %c1 iter_args(%p = %z) -> (f64) {
      scf.for %j = %c0 to %c4096 step %c1 {
        memref.store %v, %t[%j] : memref<4096xf64>
      }
      %s = scf.for %j = %c0 to %c4096 step %c1 iter_args(%q = %p) -> (f64) {
        %e = memref.load %t[%j] : memref<4096xf64>
        %f = arith.addf %q, %e fastmath<reassoc> : f64
        scf.yield %f : f64
      }
      scf.yield %s : f64
    }
    memref.store %whole, %y[%i] : memref<8xf64>
    scf.reduce
  }) : (index, index, index) -> ()
  func.return
}""")


def planned(text: str) -> Any:
    module = parse(text)
    PlanBuffersPass().apply(context(), module)
    return module


def python(code: str, **environment: str) -> str:
    """What a Python process of its own prints."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_"))}
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", code],
        env={**kept, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


PRELUDE = f"""
import os, numpy as np, compiler
from compiler.targets.cpu import openmp
kernel = compiler.build('''{PRIVATE}''')
x = np.arange(64, dtype=np.float32)
def tasks(): return len(os.listdir("/proc/self/task"))
def right(threads): return bool((kernel(x, threads=threads) == 2 * x).all())
"""


def test_parts_of_the_workspace() -> None:
    kernel = compiler.build(PRIVATE, threads=2)
    assert kernel._workspace == Workspace(0, 4096 + 64)
    assert Workspace(128, 4160).size(3) == 128 + 3 * 4160
    for threads, parts in ((1, 1), (2, 2), (1, 2), (7, 7), (3, 7)):
        kernel._scratch(threads)
        assert kernel._local.size == parts * 4160, "it grows, and stays"
    x = np.random.default_rng(0).random(64, np.float32)
    for threads in (1, 2, 1, 7, 3):
        np.testing.assert_array_equal(kernel(x, threads=threads), x + x)


def test_no_thread_has_the_buffer_of_another() -> None:
    """Eight threads run one iteration each: what each left behind stands in its own part of the workspace."""
    kernel = compiler.build(HELD)
    x = np.arange(1, 9, dtype=np.float64)
    for threads in (1, 2, 4, 8):
        np.testing.assert_array_equal(kernel(x, threads=threads), x * 4096 * 20)
    memory, size = kernel._scratch(8), kernel._workspace.private
    assert memory is not None and size == 4096 * 8 + 64
    parts = [memory[k * size : k * size + 4096 * 8].view(np.float64) for k in range(8)]
    np.testing.assert_array_equal(parts, np.repeat(x, 4096).reshape(8, 4096))


def test_regions_one_after_the_other_share_the_parts() -> None:
    assert compiler.build(TWICE)._workspace == Workspace(0, 4096 + 64)


def test_slots_of_a_parallel_loop_stand_in_it() -> None:
    nested = through("t").replace("%t =", "scf.for %r = %c0 to %c1 step %c1 {\n %t =") + "}"
    module = planned(function("%s = memref.alloc() : memref<4xf32>" + parallel(nested)))
    allocs = [op for op in module.walk() if isinstance(op, memref.AllocOp | memref.ViewOp)]
    assert len(allocs) == 2, "the unused buffer goes"
    assert all(isinstance(op.parent_op(), scf.ParallelOp) for op in allocs)
    before = str(module)
    PlanBuffersPass().apply(context(), module)
    assert str(module) == before


def test_buffers_of_one_iteration_share_slots() -> None:
    chain = "".join(
        f"""
      %{b} = memref.alloc() : memref<16xf32>
      %v{b} = memref.load {a}[%c0] : memref<{64 if a == "%x" else 16}xf32>
      memref.store %v{b}, %{b}[%c0] : memref<16xf32>"""
        for a, b in (("%x", "p"), ("%p", "q"), ("%q", "r"))
    )
    last = "%l = memref.load %r[%c0] : memref<16xf32>\nmemref.store %l, %y[%i] : memref<64xf32>"
    module = planned(function(parallel(chain + last)))
    assert sum(isinstance(op, memref.AllocOp) for op in module.walk()) == 1


def test_a_loop_that_may_not_run_is_not_made_to_write() -> None:
    """Iteration 0 alone adds to y[3]; the others must not load it and store it back."""
    body = """
      %ends = arith.cmpi eq, %i, %c0 : index
      %m = arith.select %ends, %n, %c0 : index
      scf.for %k = %c0 to %m step %c1 {
        %a = memref.load %y[%c3] : memref<64xf32>
        %b = arith.addf %a, %a : f32
        memref.store %b, %y[%c3] : memref<64xf32>
      }"""
    store = "%one = arith.constant 1.0 : f32\nmemref.store %one, %y[%c3] : memref<64xf32>"
    module = parse(function(store + parallel(body)))
    run(context(), module, parse_passes("promote-buffers"))
    region = next(op for op in module.walk() if isinstance(op, scf.ParallelOp))
    (loop,) = (op for op in region.body.walk() if isinstance(op, scf.ForOp))
    assert not loop.results and isinstance(loop.body.block.first_op, memref.LoadOp)


@pytest.mark.parametrize("n", [1, 255, 256, 511, 512, 1300, 5000])
@pytest.mark.parametrize("type", ["f32", "f64", "f16"])
def test_what_llvm_vectorizes_is_the_same_bits(n: int, type: str) -> None:
    """A sum of products that may be reassociated, in a body that LLVM vectorizes across the iterations."""
    terms = "\n".join(f"%p{k} = arith.mulf %a{k}, %a{k} fastmath<fast> : {type}" for k in range(5))
    loads = "\n".join(
        f"%j{k} = arith.addi %i, %k{k} : index\n%a{k} = memref.load %x[%j{k}] : memref<{n + 5}x{type}>"
        for k in range(5)
    )
    sums = "\n".join(
        f"%s{k + 1} = arith.addf %{'s' if k else 'p'}{k}, %p{k + 1} fastmath<fast> : {type}" for k in range(4)
    )
    constants = "\n".join(f"%k{k} = arith.constant {k} : index" for k in range(5))
    body = f"{loads}\n{terms}\n{sums}\nmemref.store %s4, %y[%i] : memref<{n + 5}x{type}>"
    text = function(f"%m = arith.constant {n} : index\n{constants}" + parallel(body, "%c0, %m, %c1"), n + 5, type)
    kernel = compiler.build(text)
    x = np.random.default_rng(n).standard_normal(n + 5).astype({"f32": "f4", "f64": "f8", "f16": "f2"}[type])
    y = [np.zeros_like(x) for _ in range(5)]
    for threads, out in enumerate(y, 1):
        kernel(x, out=out, threads=threads)
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64) ** 2, 5)[:n].sum(1)
    np.testing.assert_allclose(y[0][:n], windows, rtol=1e-2 if type == "f16" else 1e-5)
    assert not y[0][n:].any()
    for out in y[1:]:
        assert out.tobytes() == y[0].tobytes()


@pytest.mark.parametrize("loops", ["", "scf.for %r = %c0 to %c1 step %c1 {"], ids=["rows", "iterations"])
@pytest.mark.parametrize("lower", [0, 3])
@pytest.mark.parametrize("step", [1, 4])
def test_several_indices_bounds_and_steps(loops: str, lower: int, step: int) -> None:
    body = f"""
        %p = arith.muli %i, %ten : index
        %q = arith.addi %p, %j : index
        %h = arith.muli %q, %seven : index
        %l = arith.addi %h, %k : index
        {loops}
        %a = memref.load %x[%l] : memref<490xf32>
        %b = arith.addf %a, %a : f32
        memref.store %b, %y[%l] : memref<490xf32>
        {"}" if loops else ""}"""
    constants = {"seven": 7, "ten": 10, "low": lower, "step": step}
    head = "\n".join(f"%{name} = arith.constant {value} : index" for name, value in constants.items())
    bounds = "%c0, %low, %c1, %seven, %ten, %seven, %c1, %step, %c3"
    kernel = compiler.build(function(head + parallel(body, bounds, "%i: index, %j: index, %k: index", 3), 490))
    x = np.arange(490, dtype=np.float32)
    expected = np.zeros((7, 10, 7), np.float32)
    expected[:, lower::step, 1::3] = 2 * x.reshape(7, 10, 7)[:, lower::step, 1::3]
    for threads in (1, 2, 3, 5):
        y = np.zeros_like(x)
        kernel(x, out=y, threads=threads)
        np.testing.assert_array_equal(y.reshape(7, 10, 7), expected)


def test_empty_loops_and_values_of_every_kind() -> None:
    """A region captures a float, an index, a truth value, a vector; its upper bound is known at run time only."""
    text = """
    func.func @f(%x: memref<64xf32>, %s: memref<f32>, %m: memref<index>, %y: memref<64xf32>)
        attributes {outputs = 1 : i64} {
      %n = memref.load %m[] : memref<index>
      %f = memref.load %s[] : memref<f32>
      %v = vector.broadcast %f : f32 to vector<4xf32>
      %t = arith.cmpf ogt, %f, %f : f32
      %last = arith.subi %n, %c1 : index
      """ + parallel(
        """
        %p = arith.minsi %i, %last : index
        %a = vector.load %x[%p] : memref<64xf32>, vector<4xf32>
        %b = arith.addf %a, %v : vector<4xf32>
        %c = arith.select %t, %a, %b : vector<4xf32>
        vector.store %c, %y[%p] : memref<64xf32>, vector<4xf32>
        """,
        "%c0, %n, %c4",
    )
    kernel = compiler.build(with_constants(text + "func.return }"))
    x = np.arange(64, dtype=np.float32)
    for n in (-5, 0, 1, 4, 40, 61):
        for threads in (1, 2, 3):
            y = np.zeros_like(x)
            kernel(x, np.array(0.5, np.float32), np.array(n), out=y, threads=threads)
            end = max(0, -(-n // 4) * 4)
            np.testing.assert_array_equal(y, np.where(np.arange(64) < end, x + np.float32(0.5), 0))


@pytest.mark.parametrize(
    ("region", "words"),
    [
        (parallel(parallel("", indices="%j: index")), "an scf.parallel inside another one"),
        (parallel(DOUBLE, "%c0, %n, %c0"), "a step below 1"),
        (
            """%r = "scf.parallel"(%c0, %n, %c1, %z) <{operandSegmentSizes = array<i32: 1, 1, 1, 1>}> ({
            ^bb0(%i: index):
              %a = memref.load %x[%i] : memref<64xf32>
              "scf.reduce"(%a) ({
              ^bb0(%p: f32, %q: f32):
                %s = arith.addf %p, %q : f32
                scf.reduce.return %s : f32
              }) : (f32) -> ()
            }) : (index, index, index, f32) -> f32""",
            "that reduces",
        ),
    ],
)
def test_what_has_no_native_form(region: str, words: str) -> None:
    with pytest.raises(LoweringError, match=words):
        emit(parse(function(region)), host())


WRONG: list[Any] = [0, -1, 1.5, "2", True, openmp.max_threads() + 1]


@pytest.mark.parametrize("count", WRONG, ids=repr)
def test_wrong_counts(count: Any) -> None:
    words = (f"threads={count!r}: expected an integer from 1 to",)
    said(lambda: compiler.build(PRIVATE, threads=count), *words)
    x = np.zeros(64, np.float32)
    for kernel in (compiler.build(PRIVATE), compiler.build(function("memref.store %z, %y[%c0] : memref<64xf32>"))):
        said(lambda kernel=kernel: kernel(x, threads=count), *words)
        said(lambda kernel=kernel: kernel.time(x, threads=count), *words)


def test_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert compiler.build(PRIVATE, threads=np.int64(3)).threads == 3
    assert compiler.build(function(""), threads=3).threads is None, "it has no parallel loop"
    few = (("3", 3), ("5,2", 5), (" 4 ", 4), ("0", None), ("many", None), ("", None), ("99999", "most"))
    for stated, count in (*few, ("9" * 5000, None)):
        monkeypatch.setenv("OMP_NUM_THREADS", stated)
        expected = {None: openmp.cores(), "most": openmp.max_threads()}.get(count, count)
        assert compiler.build(PRIVATE).threads == expected
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert compiler.build(PRIVATE).threads == openmp.cores()
    assert compiler.build(PRIVATE, threads=2).time(np.zeros(64, np.float32), threads=1, repeats=2).repeats == 2


def test_one_thread_does_not_enter_the_runtime() -> None:
    code = PRELUDE + "a = tasks(); ok = right(1); b = tasks(); ok &= right(2); print(ok, b - a, tasks() - b)"
    assert python(code).split() == ["True", "0", "1"]


def test_no_more_threads_than_iterations() -> None:
    code = PRELUDE.replace("%n = arith.constant 64", "%n = arith.constant 3")
    code += "a = tasks(); kernel(x, threads=8); print(tasks() - a)"
    assert python(code).split() == ["2"]


@pytest.mark.parametrize("uses", [1, 2])
def test_a_forked_child_runs_alone(uses: int) -> None:
    """Whether the parent has run a region or not; it warns, once, and the parent goes on as before."""
    code = (
        PRELUDE
        + f"""
right({uses})
child = os.fork()
if not child:
    ok = right(2) and right(2) and tasks() == 1
    os._exit(0 if ok else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), right(2))
"""
    )
    actual = python(code)
    assert actual.split()[:2] == ["0", "True"]
    assert "RuntimeWarning: this process was forked from one with an OpenMP runtime" in actual


def test_a_child_forked_before_there_is_a_runtime_has_threads() -> None:
    code = f"""
import os, numpy, compiler  # the threads of numpy are the parent's
from compiler.targets.cpu import openmp
assert not openmp.loaded_runtimes()
child = os.fork()
if not child:
    exec({PRELUDE!r})
    os._exit(0 if right(2) and tasks() == 2 else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert python(code).split() == ["0"]


def test_without_a_runtime_loops_run_alone() -> None:
    code = PRELUDE.replace("kernel =", "openmp.runtime = lambda: None\nkernel =")
    actual = python(code + "print(right(1), right(2), tasks())")
    assert actual.split()[:2] == ["True", "True"]
    assert "RuntimeWarning: there is no OpenMP runtime (libgomp)" in actual


def test_the_runtime_that_is_loaded_already_is_taken() -> None:
    code = """
import ctypes
from compiler.targets.cpu import openmp
own = openmp._scikit_learn_copies()
assert own and not openmp.loaded_runtimes()
"""
    system = find_library("gomp")
    if system:
        taken = python(code + f"ctypes.CDLL({system!r}); print(openmp.runtime()._name, openmp.loaded_runtimes())")
        assert "scikit_learn" not in taken and taken.count("libgomp") == 2
    taken = python(code + "print(openmp.runtime()._name == own[0], openmp.loaded_runtimes() == own)")
    assert taken.split() == ["True", "True"]
    count = python(code + "import sklearn.ensemble; openmp.runtime(); print(len(openmp.loaded_runtimes()))")
    assert count.split() == ["1"]


def test_the_environment_is_left_as_it_was() -> None:
    code = """
import os
from compiler.targets.cpu import openmp
before = dict(os.environ)
seen = []
load = openmp.ctypes.CDLL
def spy(path):
    seen.append(os.environ.get("GOMP_SPINCOUNT"))
    return load(path)
openmp.ctypes.CDLL = spy
openmp.runtime()
print(seen[0], dict(os.environ) == before)
"""
    assert python(code).split() == [openmp.SPIN_COUNT, "True"]
    assert python(code, OMP_WAIT_POLICY="active").split() == ["None", "True"]
    assert python(code, GOMP_SPINCOUNT="7").split() == ["7", "True"]


def test_python_threads_at_once() -> None:
    """Each has a workspace and a team of its own."""
    kernel = compiler.build(PRIVATE, threads=2)
    wrong: list[int] = []

    def work(number: int) -> None:
        x = np.full(64, float(number), np.float32)
        for round in range(200):
            if (kernel(x, threads=1 + (round + number) % 3) != 2 * number).any():
                wrong.append(number)

    at_once(work)
    assert wrong == []


JOIN = (
    team._JOIN.replace("define internal", "define").replace(".join", "join")
    + """
declare i64 @llvm.ctpop.i64(i64)
declare i32 @sched_getcpu()
declare i32 @sched_getaffinity(i32, i64, ptr)
declare i32 @sched_setaffinity(i32, i64, ptr)
attributes #0 = { nounwind }
"""
)
AFFINITY = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p)
several_processors = pytest.mark.skipif(
    sys.platform != "linux" or openmp.cores() < 2, reason="needs two processors that the process may use, on Linux"
)


@pytest.fixture
def here() -> Iterator[int]:
    """A processor that this thread is on while it is allowed that one alone; what it was allowed is put back."""
    allowed = os.sched_getaffinity(0)
    first = min(allowed)
    os.sched_setaffinity(0, {first})
    yield first
    os.sched_setaffinity(0, allowed)


PROCESSORS = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
"""What the tests may use."""


def join(taken: set[int], allowed: set[int], threads: int) -> set[int]:
    """The processors that are taken after this thread has joined a team, which must leave it what it was allowed."""
    library = compile_llvm(JOIN, host())
    words = np.zeros(17, np.int64)
    bits = words[:16].view(np.uint8)
    bits[:] = np.packbits([number in taken for number in range(1024)], bitorder="little")
    os.sched_setaffinity(0, allowed)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(library.address("join"))(words.ctypes.data, threads)
    assert os.sched_getaffinity(0) == allowed and words[16] == 1
    return set(np.flatnonzero(np.unpackbits(bits, bitorder="little")).tolist())


@several_processors
def test_a_thread_leaves_a_processor_that_is_taken(here: int) -> None:
    second = max(PROCESSORS)
    assert join({here}, {here, second}, 2) == {here, second}


@several_processors
def test_a_thread_stays_where_it_is(here: int) -> None:
    """Where its processor is free, where it may use no other, and where all are taken."""
    second = max(PROCESSORS)
    assert len(join(set(), {here, second}, 2)) == 1
    assert join({here}, {here}, 1) == {here}
    assert join({here, second}, {here, second}, 2) == {here, second}


@pytest.mark.parametrize(("threads", "migrates"), [(2, True), (3, False)])
def test_a_thread_migrates_unless_threads_are_too_many(threads: int, migrates: bool) -> None:
    """On a pretended system of two processors, whose threads are all on the first, wherever they are sent."""
    sent: list[int] = []
    text = JOIN
    pretended = {
        "sched_getcpu": ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 0),
        "sched_getaffinity": AFFINITY(lambda _, size, mask: ctypes.memmove(mask, b"\3".ljust(size, b"\0"), size) and 0),
        "sched_setaffinity": AFFINITY(lambda _, size, mask: sent.append(ctypes.string_at(mask, 1)[0]) or 0),
    }
    for name, call in pretended.items():
        define_symbol("here_" + name, ctypes.cast(call, ctypes.c_void_p).value or 0)
        text = text.replace("@" + name, "@here_" + name)
    library = compile_llvm(text, host())
    words = np.zeros(17, np.int64)
    words[0] = 1
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(library.address("join"))(words.ctypes.data, threads)
    assert sent == ([2, 3] * 3 if migrates else []) and words[0] == 1


def test_the_first_thread_yields_once_where_the_others_have_not_come() -> None:
    yields: list[int] = []
    yielded = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: yields.append(1) or 0)
    define_symbol("counted", ctypes.cast(yielded, ctypes.c_void_p).value or 0)
    text = team._MEET.replace("define internal", "define").replace(".meet", "meet").replace("sched_yield", "counted")
    library = compile_llvm(text + "declare i32 @counted()\nattributes #0 = { nounwind }", host())
    meet = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(library.address("meet"))
    words = np.zeros(17, np.int64)
    for come, expected in ((1, 1), (2, 1), (3, 0)):
        words[16] = come
        yields.clear()
        meet(words.ctypes.data, 3)
        assert len(yields) == expected


PRETENDED = """
@calls = global i64 0
define i32 @first() { ret i32 0 }
define i32 @count(i32 %thread, i64 %bytes, ptr %mask) {
  %before = atomicrmw add ptr @calls, i64 1 monotonic
  ret i32 0
}
define i64 @counted() {
  %now = load i64, ptr @calls
  ret i64 %now
}
"""
"""A system on which every thread is on the first processor, wherever it is sent; it counts how often one is sent."""


@several_processors
def test_each_thread_of_a_region_joins_its_team() -> None:
    """The first stays; the second is sent away and allowed back, three times."""
    code = f"""
import ctypes
from compiler.lowering.low_to_llvm import team
from compiler.targets.cpu.compile import compile_llvm, define_symbol
from compiler.types.machines import host
system = compile_llvm({PRETENDED!r}, host())
for name, pretended in (("sched_getcpu", "first"), ("sched_setaffinity", "count")):
    define_symbol("pretended_" + name, system.address(pretended))
    team._JOIN = team._JOIN.replace("@" + name, "@pretended_" + name)
team._JOIN += "declare i32 @pretended_sched_getcpu()\\ndeclare i32 @pretended_sched_setaffinity(i32, i64, ptr)"
sent = ctypes.CFUNCTYPE(ctypes.c_int64)(system.address("counted"))
"""
    code += f"import os; os.sched_setaffinity(0, {PROCESSORS})" + PRELUDE
    code += "print(right(1), sent(), right(2), sent(), right(2), sent())"
    assert python(code, STRATA_CACHE="off").split() == ["True", "0", "True", "6", "True", "12"]


AWAY = f"""
slow = compiler.build({HELD!r})
rows = np.arange(1.0, 9.0)
def masks(): return {{task: os.sched_getaffinity(int(task)) for task in os.listdir("/proc/self/task")}}
def held(): return bool((slow(rows, threads=2) == rows * 4096 * 20).all())
"""


@several_processors
def test_threads_are_allowed_afterwards_what_they_were_before() -> None:
    code = (
        f"import os; os.sched_setaffinity(0, {PROCESSORS})"
        + PRELUDE
        + AWAY
        + "right(2)\nbefore = masks()\nprint(held(), held(), masks() == before, len(before))"
    )
    assert python(code, OPENBLAS_NUM_THREADS="1").split() == ["True", "True", "True", "2"]


def test_a_process_on_one_processor() -> None:
    code = PRELUDE + AWAY + "one = {min(os.sched_getaffinity(0))}\nos.sched_setaffinity(0, one)\n"
    code += "print(right(2), held(), right(5), all(mask == one for mask in masks().values()))"
    assert python(code, OPENBLAS_NUM_THREADS="1").split() == ["True"] * 4


def test_a_system_that_does_not_say_where_threads_run() -> None:
    code = PRELUDE.replace(
        "kernel =",
        "load = openmp.ctypes.CDLL\nopenmp.ctypes.CDLL = lambda path: load(path) if path else None\nkernel =",
    )
    assert python(code + "print(right(1), right(2), right(3))").split() == ["True"] * 3


@needs_mlir_opt
@pytest.mark.parametrize("text", [PRIVATE, TWICE, function(parallel(DOUBLE))])
def test_upstream_accepts_the_low_level(text: str) -> None:
    assert_accepted(str(planned(text)))


def test_each_iteration_runs_where_several_bounds_are_arguments() -> None:
    copied = """
        %a = memref.load %x[%i, %j, %k] : memref<2x4x8xf32>
        memref.store %a, %y[%i, %j, %k] : memref<2x4x8xf32>"""
    bounds, indices = "%c0, %c0, %c0, %n, %m, %c8, %c1, %c1, %c1", "%i: index, %j: index, %k: index"
    text = with_constants(f"""
    func.func @f(%n: index, %m: index, %x: memref<2x4x8xf32>, %y: memref<2x4x8xf32>) attributes {{outputs = 1 : i64}} {{
      {parallel(copied, bounds, indices, 3)}
      func.return
    }}""")
    x = np.random.default_rng(0).random((2, 4, 8), np.float32)
    np.testing.assert_array_equal(load(planned(text), host(), threads=2)(np.int64(2), np.int64(4), x), x)
