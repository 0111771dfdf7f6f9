"""The checker of kernels: right ones pass, planted faults are found and named."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects import arith, gpu, memref, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Operation

from compiler.support.errors import InputError
from compiler.targets.simt import CheckResult, run
from strata.passes import lower_to_kernels, parse
from tests.gpu_schedules import product, tiled

M, N, K = 32, 32, 16
RANDOM = np.random.default_rng(0)
INPUTS = [RANDOM.standard_normal(shape, np.float32) for shape in ((M, K), (K, N))]


def kernels(m: int = M, n: int = N, k: int = K) -> ModuleOp:
    module, _, _ = lower_to_kernels(tiled(product(m, n, k)).module)
    return module


def every(module: ModuleOp, kind: type[Operation]) -> list[Operation]:
    return [op for op in module.walk() if isinstance(op, kind)]


def checked(module: ModuleOp) -> CheckResult:
    module.verify()
    return run(module, INPUTS)


@pytest.mark.parametrize(("m", "n", "k"), [(32, 32, 16), (16, 16, 8), (33, 17, 9), (17, 23, 5), (40, 20, 30)])
def test_a_right_kernel_has_no_fault(m: int, n: int, k: int) -> None:
    a, b = RANDOM.standard_normal((m, k), np.float32), RANDOM.standard_normal((k, n), np.float32)
    checked = run(kernels(m, n, k), [a, b])
    assert checked.is_correct, [str(fault) for fault in checked.faults]
    np.testing.assert_allclose(checked.outputs[0], a @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("number", [0, 1])
def test_a_missing_barrier_is_a_race(number: int) -> None:
    module = kernels()
    barrier = every(module, gpu.BarrierOp)[number]
    barrier.detach()
    actual = checked(module)
    assert {fault.kind for fault in actual.faults} == {
        "race of a write with a read" if number == 0 else "race of a read with a write"
    }
    assert {fault.memory for fault in actual.faults} == {"A.shared", "B.shared"}
    assert all(len(set(fault.threads)) == 2 for fault in actual.faults)


def test_a_barrier_that_some_threads_miss_is_divergent() -> None:
    module = kernels()
    barrier = every(module, gpu.BarrierOp)[0]
    kernel = next(op for op in module.walk() if isinstance(op, gpu.FuncOp))
    thread = next(op for op in kernel.body.block.ops if isinstance(op, gpu.ThreadIdOp))
    four = arith.ConstantOp(IntegerAttr.from_index_int_value(4))
    few = arith.CmpiOp(thread.results[0], four.result, "slt")
    kernel.body.block.insert_ops_after([four, few], thread)
    block = barrier.parent
    assert block is not None
    from xdsl.ir import Block, Region

    block.insert_op_before(scf.IfOp(few.result, [], Region(Block([gpu.BarrierOp(), scf.YieldOp()]))), barrier)
    barrier.detach()
    actual = checked(module)
    assert any(fault.kind == "divergent barrier" and fault.threads == (0, 4) for fault in actual.faults)


def shift(op: Operation, operand: int, by: int) -> None:
    """Let an op use an index that is off by some."""
    block = op.parent
    assert block is not None
    offset = arith.ConstantOp(IntegerAttr.from_index_int_value(by))
    moved = arith.AddiOp(op.operands[operand], offset.result)
    block.insert_ops_before([offset, moved], op)
    op.operands[operand] = moved.result


def stores(module: ModuleOp, name: str) -> list[Operation]:
    return [op for op in every(module, memref.StoreOp) if op.operands[1].name_hint == name]


def loads(module: ModuleOp, name: str) -> list[Operation]:
    return [op for op in every(module, memref.LoadOp) if op.operands[0].name_hint == name]


PLANTED: dict[str, tuple[Callable[[ModuleOp], None], str, str]] = {
    "a fetch one row further": (lambda m: shift(loads(m, "A")[0], 1, 1), "out-of-bounds read", "A"),
    "a fetch to one row further": (lambda m: shift(stores(m, "A.shared")[0], 2, 1), "out-of-bounds write", "A.shared"),
    "a read of what nobody fetched": (lambda m: shift(loads(m, "B.shared")[0], 1, 8), "out-of-bounds read", "B.shared"),
    "a result one column further": (lambda m: shift(stores(m, "C")[0], 3, 1), "out-of-bounds write", "C"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_faults_are_found(name: str) -> None:
    plant, kind, memory = PLANTED[name]
    module = kernels()
    plant(module)
    actual = checked(module)
    assert (kind, memory) in {(fault.kind, fault.memory) for fault in actual.faults}, [str(f) for f in actual.faults]


def test_an_accumulator_that_is_not_set_is_unknown() -> None:
    module = kernels()
    store = stores(module, "C.local")[0]
    store.detach()
    actual = checked(module)
    assert ("uninitialised read", "C.local") in {(fault.kind, fault.memory) for fault in actual.faults}


def test_a_guard_that_is_gone_leaves_the_buffer() -> None:
    module = kernels(33, 17, 9)
    for branch in every(module, scf.IfOp):
        assert isinstance(branch, scf.IfOp)
        truth = arith.ConstantOp(IntegerAttr(1, 1))
        block = branch.parent
        assert block is not None
        block.insert_op_before(truth, branch)
        branch.operands[0] = truth.result
    a, b = RANDOM.standard_normal((33, 9), np.float32), RANDOM.standard_normal((9, 17), np.float32)
    assert {"out-of-bounds read", "out-of-bounds write"} <= {fault.kind for fault in run(module, [a, b]).faults}


def test_a_report_names_op_block_threads_and_address() -> None:
    module = kernels()
    every(module, gpu.BarrierOp)[1].detach()
    said = str(checked(module).faults[0])
    assert said == (
        "race of a read with a write at A.shared[0, 0]: block 0, threads 0 and 1, in memref.load (a.shared, A.shared)"
    )


KERNEL = """
builtin.module attributes {gpu.container_module} {
  func.func @f(%A: memref<64xf32>, %B: memref<64xf32>) attributes {outputs = 1 : i64} {
    %c1 = arith.constant 1 : index
    %blocks = arith.constant BLOCKS : index
    %threads = arith.constant THREADS : index
    "gpu.launch_func"(%blocks, %c1, %c1, %threads, %c1, %c1, %A, %B) <{kernel = @k::@f, operandSegmentSizes =
      array<i32: 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 2, 0>}> : (index, index, index, index, index, index, memref<64xf32>,
      memref<64xf32>) -> ()
    func.return
  }
  "gpu.module"() <{sym_name = "k"}> ({
    "gpu.func"() <{function_type = (memref<64xf32>, memref<64xf32>) -> (), kernel}> ({
    ^bb0(%A: memref<64xf32>, %B: memref<64xf32>):
      %t = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
      %b = "gpu.block_id"() <{dimension = #gpu<dim x>}> : () -> index
      %c2 = arith.constant 2 : index
      %c4 = arith.constant 4 : index
      %c32 = arith.constant 32 : index
      BODY
      "gpu.return"() : () -> ()
    }) {sym_name = "f", gpu.kernel} : () -> ()
  }) : () -> ()
}
"""
LINE = np.arange(64, dtype=np.float32)


def one_kernel(body: str, blocks: int = 1, threads: int = 32) -> str:
    """A program of one kernel, from A to B, whose body has its thread %t, block %b, and %c2, %c4 and %c32."""
    return KERNEL.replace("BODY", body).replace("BLOCKS", str(blocks)).replace("THREADS", str(threads))


def small(body: str, blocks: int = 1) -> CheckResult:
    """A kernel of 32 threads with that body, on a line of 64 numbers."""
    return run(parse(one_kernel(body, blocks)), [LINE])


def test_blocks_that_write_one_element_race_whatever_is_between() -> None:
    body = "%v = memref.load %A[%t] : memref<64xf32>  memref.store %v, %B[%t] : memref<64xf32>"
    assert small(body).is_correct
    (fault, *_) = small(body, 2).faults
    assert fault.kind == "race of two writes" and fault.blocks == (0, 1) and fault.memory == "B"


def test_threads_that_write_one_element_race() -> None:
    body = """
      %h = arith.divui %t, %c2 : index  %v = memref.load %A[%t] : memref<64xf32>
      memref.store %v, %B[%h] : memref<64xf32>
    """
    (fault, *_) = small(body).faults
    assert fault.kind == "race of two writes" and fault.address == (0,) and set(fault.threads) == {0, 1}


def test_vectors_that_are_not_aligned_are_found() -> None:
    body = """
      %i = arith.muli %t, %c2 : index  %v = vector.load %A[%i] : memref<64xf32>, vector<2xf32>
      vector.store %v, %B[%i] : memref<64xf32>, vector<2xf32>
    """
    actual = small(body)
    assert actual.is_correct
    np.testing.assert_array_equal(actual.outputs[0], LINE)
    moved = body.replace("%v = vector.load %A[%i]", "%c1 = arith.constant 1 : index  %v = vector.load %A[%c1]")
    assert [f.kind for f in small(moved).faults] == ["misaligned vector"]


def test_transactions_are_counted() -> None:
    """32 threads: neighbours read 4 sectors, every second element 8; one bank serves every 32nd word."""
    plain = small("%v = memref.load %A[%t] : memref<64xf32>  memref.store %v, %B[%t] : memref<64xf32>")
    assert plain.counts["f", "A"] == {"accesses": 1, "sectors": 4, "bytes": 128}
    strided = small(
        "%i = arith.muli %t, %c2 : index  %v = memref.load %A[%i] : memref<64xf32>  memref.store %v, %B[%t] : "
        "memref<64xf32>"
    )
    assert strided.counts["f", "A"]["sectors"] == 8
    shared = """
      %s = memref.alloca() : memref<32x32xf32, 3 : i64>  %c0 = arith.constant 0 : index
      %v = memref.load %A[%t] : memref<64xf32>
      memref.store %v, %s[PLACE] : memref<32x32xf32, 3 : i64>
      memref.store %v, %B[%t] : memref<64xf32>
    """
    assert small(shared.replace("PLACE", "%c0, %t")).counts["f", "s"] == {"accesses": 1, "rounds": 1, "conflicts": 0}
    assert small(shared.replace("PLACE", "%t, %c0")).counts["f", "s"]["conflicts"] == 31


def test_threads_part_and_meet() -> None:
    """Loops of different length, branches with results."""
    body = """
      %c0 = arith.constant 0 : index  %c1 = arith.constant 1 : index  %zero = arith.constant 0.0 : f32
      %sum = scf.for %i = %c0 to %t step %c1 iter_args(%s = %zero) -> (f32) {
        %v = memref.load %A[%i] : memref<64xf32>
        %n = arith.addf %s, %v : f32
        scf.yield %n : f32
      }
      %few = arith.cmpi slt, %t, %c4 : index
      %r = scf.if %few -> (f32) { scf.yield %zero : f32 } else { scf.yield %sum : f32 }
      memref.store %r, %B[%t] : memref<64xf32>
    """
    actual = small(body)
    assert actual.is_correct
    want = np.array([0 if t < 4 else LINE[:t].sum() for t in range(32)], np.float32)
    np.testing.assert_array_equal(actual.outputs[0][:32], want)


COPY = """
      %S = memref.alloca() : memref<32xf32, 3>
      %k = "nvgpu.device_async_copy"(%S, %t, %A, %t) <{dstElements = 1 : index, operandSegmentSizes =
        array<i32: 1, 1, 1, 1, 0>}> : (memref<32xf32, 3>, index, memref<64xf32>, index) -> !nvgpu.device.async.token
      BETWEEN
      %g = "nvgpu.device_async_create_group"() : () -> !nvgpu.device.async.token
      WAIT
      %v = memref.load %S[WHERE] : memref<32xf32, 3>
      memref.store %v, %B[%t] : memref<64xf32>
"""
WAIT = '"nvgpu.device_async_wait"(%g) : (!nvgpu.device.async.token) -> ()'


def copied(between: str = "", wait: str = WAIT, where: str = "%t") -> list[str]:
    """The kinds of faults of a kernel that copies a line to shared memory and reads it there."""
    text = COPY.replace("BETWEEN", between).replace("WAIT", wait).replace("WHERE", where)
    return [fault.kind for fault in small(text).faults]


def test_copies_that_are_waited_for() -> None:
    assert copied() == []
    assert copied(wait="") == ["uninitialised read"]
    write = "%z = arith.constant 0.0 : f32  memref.store %z, %S[%t] : memref<32xf32, 3>"
    assert copied(write) == ["race of a write with a copy"]
    some = f"%few = arith.cmpi slt, %t, %c4 : index  scf.if %few {{ {WAIT} }}"
    assert copied(wait=some) == ["uninitialised read"], "those that have not waited"


def test_what_one_thread_has_waited_for_others_have_not() -> None:
    second = "%c31 = arith.constant 31 : index  %o = arith.subi %c31, %t : index"
    assert copied(wait=f'{WAIT}  "gpu.barrier"() : () -> ()  {second}', where="%o") == []
    assert copied(wait=f"{WAIT}  {second}", where="%o") == ["race of a read with a write"]
    early = f'"gpu.barrier"() : () -> ()  {WAIT}  {second}'
    assert copied(wait=early, where="%o") == ["race of a read with a write"], "a barrier before the wait is too early"


def test_vectors_of_constants_part_and_meet() -> None:
    """What is the same for all threads differs where they part."""
    body = """
      %few = arith.cmpi slt, %t, %c4 : index  %i = arith.muli %t, %c2 : index
      %one = arith.constant dense<1.0> : vector<2xf32>  %two = arith.constant dense<[2.0, 3.0]> : vector<2xf32>
      %r = scf.if %few -> (vector<2xf32>) { scf.yield %one : vector<2xf32> } else { scf.yield %two : vector<2xf32> }
      vector.store %r, %B[%i] : memref<64xf32>, vector<2xf32>
    """
    actual = small(body)
    assert actual.is_correct
    np.testing.assert_array_equal(actual.outputs[0], [1] * 8 + [2, 3] * 28)


def test_a_launch_of_no_kernel_is_refused() -> None:
    text = one_kernel("").replace("@k::@f", "@k::@g")
    with pytest.raises(InputError, match="@k::@g is no kernel of the module"):
        run(parse(text), [LINE])
