"""Who writes what, for all blocks of a grid, where a sample of them runs: planted faults between the sampled blocks."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import product as pairs

import numpy as np
import pytest
from xdsl.dialects import arith, gpu, memref, vector
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Operation, SSAValue

import compiler
from compiler import recipes, te
from compiler.autotune.measure import gpu_builder
from compiler.autotune.measure.gpu_builder import GpuBuilder
from compiler.driver.reference.subject import Subject
from compiler.schedule import Schedule
from compiler.targets import simt
from compiler.targets.simt.lanes import BlockSample, corners
from strata.passes import lower_to_kernels, parse
from tests.gpu_schedules import product, tiled
from tests.unit.targets.test_simt import LINE, one_kernel

SAMPLE = BlockSample(blocks=3, steps=1)
SIDES = ("X", "Y", "Z")
Plant = Callable[[ModuleOp], None]


def cube() -> Schedule:
    """A grid of 6 x 5 x 4 blocks of 8 threads."""
    x = te.placeholder((4, 5, 48), name="X")
    s = Schedule(compiler.lower(te.function("f", [x], te.compute(x.shape, lambda *i: x[i] + 1.0, name="Y"))))
    z, y, line = s.get_loops(s.get_block("Y"))
    outer, inner = s.split(line, [None, 8])
    for loop, kind in ((z, "block_z"), (y, "block_y"), (outer, "block_x"), (inner, "thread_x")):
        s.bind(loop, kind)
    return s


def two_kernels() -> Schedule:
    """A buffer between two kernels of 20 blocks each."""
    x = te.placeholder((640,), name="X")
    t = te.compute((640,), lambda i: te.exp(x[i]), name="T")
    s = Schedule(compiler.lower(te.function("f", [x], te.compute((640,), lambda i: t[i] * 2.0, name="Y"))))
    for label in ("T", "Y"):
        recipes.spread(s, s.get_block(label), 32)
    return s


def in_vectors() -> Schedule:
    """20 blocks of 8 threads, which store four elements at once."""
    x = te.placeholder((640,), name="X")
    s = Schedule(compiler.lower(te.function("f", [x], te.compute((640,), lambda i: x[i] + 1.0, name="Y"))))
    recipes.spread(s, s.get_block("Y"), 8, 4)
    return s


def small_grid(side: str, launch: int = 0) -> Plant:
    """A launch has one block less along a side."""

    def plant(module: ModuleOp) -> None:
        op = [op for op in module.walk() if isinstance(op, gpu.LaunchFuncOp)][launch]
        size = getattr(op, f"gridSize{side}")
        fewer = arith.ConstantOp(IntegerAttr.from_index_int_value(size.owner.value.value.data - 1))
        assert op.parent is not None
        op.parent.insert_op_before(fewer, op)
        op.operands[list(op.operands).index(size)] = fewer.result

    return plant


def moved(side: str, change: Callable[[SSAValue], list[Operation]], launch: int = 0) -> Plant:
    """The index of a block along a side is another one."""

    def plant(module: ModuleOp) -> None:
        kernel = [op for op in module.walk() if isinstance(op, gpu.FuncOp)][launch]
        op = next(
            op for op in kernel.walk() if isinstance(op, gpu.BlockIdOp) and op.dimension.data.value == side.lower()
        )
        ops = change(op.results[0])
        assert op.parent is not None
        op.parent.insert_ops_after(ops, op)
        op.results[0].replace_uses_with_if(ops[-1].results[0], lambda use: use.operation not in ops)

    return plant


def third_is_second(index: SSAValue) -> list[Operation]:
    """Two blocks write one tile, neither of them sampled."""
    two, three = (arith.ConstantOp(IntegerAttr.from_index_int_value(n)) for n in (2, 3))
    test = arith.CmpiOp(index, three.result, "eq")
    return [two, three, test, arith.SelectOp(test.result, two.result, index)]


def one_further(index: SSAValue) -> list[Operation]:
    """A tile further."""
    unit = arith.ConstantOp(IntegerAttr.from_index_int_value(1))
    return [unit, arith.AddiOp(index, unit.result)]


def one_element_further(module: ModuleOp) -> None:
    """A store at the next place."""
    store = [op for op in module.walk() if isinstance(op, memref.StoreOp | vector.StoreOp)][-1]
    unit = arith.ConstantOp(IntegerAttr.from_index_int_value(1))
    added = arith.AddiOp(store.operands[-1], unit.result)
    assert store.parent is not None
    store.parent.insert_ops_before([unit, added], store)
    store.operands[len(store.operands) - 1] = added.result


SCHEDULES: dict[str, Callable[[], Schedule]] = {
    "cube": cube,
    "two kernels": two_kernels,
    "in vectors": in_vectors,
    "product": lambda: tiled(product(96, 80, 8)),
}
FAULTS: dict[str, tuple[str, Plant, set[str]]] = {
    **{f"no last block along {side}": ("cube", small_grid(side), {"unwritten element"}) for side in SIDES},
    **{
        f"no last block of a product along {side}": ("product", small_grid(side), {"unwritten element"})
        for side in "XY"
    },
    **{
        f"two blocks on one tile along {side}, of a {name}": (
            name,
            moved(side, third_is_second),
            {"race of two writes", "unwritten element"},
        )
        for name, side in (*pairs(["cube"], "XY"), *pairs(["product"], "XY"), ("in vectors", "X"), ("two kernels", "X"))
    },
    **{
        f"a tile further along {side}": ("cube", moved(side, one_further), {"out-of-bounds write", "unwritten element"})
        for side in SIDES
    },
    "no last block before another kernel": ("two kernels", small_grid("X", 0), {"unwritten element"}),
    "no last block after another kernel": ("two kernels", small_grid("X", 1), {"unwritten element"}),
    "one element further": ("cube", one_element_further, {"out-of-bounds write", "unwritten element"}),
    "one element further, of a product": ("product", one_element_further, {"unwritten element", "out-of-bounds write"}),
}


def sampled(name: str, plant: Plant | None) -> simt.CheckResult:
    """The kernels of a schedule with a fault, by a sample of their blocks."""
    module, function, arguments = lower_to_kernels(SCHEDULES[name]().module)
    if plant is not None:
        plant(module)
        module.verify()
    rng = np.random.default_rng(0)
    (output,) = arguments[-1:]
    inputs = [rng.standard_normal(a.shape, np.float32) for a in arguments[:-1]]
    between = {"T": np.exp(inputs[0])} if name == "two kernels" else None
    required = {output.name: np.ones(output.shape, np.bool_), "T": np.ones(640, np.bool_)}
    return simt.run(module, inputs, function.sym_name.data, SAMPLE, between, required=required)


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_right_kernel_has_no_fault(name: str) -> None:
    actual = sampled(name, None)
    assert actual.is_correct and not actual.undecided, [str(fault) for fault in actual.faults]


@pytest.mark.parametrize("name", FAULTS)
def test_what_is_between_the_sampled_blocks_is_found(name: str) -> None:
    schedule, plant, kinds = FAULTS[name]
    actual = sampled(schedule, plant)
    assert kinds <= {fault.kind for fault in actual.faults}, [str(fault) for fault in actual.faults]


@cache
def _right_as_it_stands(schedule: str) -> GpuBuilder:
    """What checks candidates for a program, one of which, the schedule, it takes."""
    s = SCHEDULES[schedule]()
    checker = GpuBuilder(Subject(str(s.original), None, "contract", 1, 0, "cuda", "sm_80"))
    assert not hasattr(checker(str(s.script)), "reason")
    return checker


@pytest.mark.sampled
@pytest.mark.parametrize("name", FAULTS)
def test_the_tuner_drops_such_candidates(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    schedule, plant, _ = FAULTS[name]
    s = SCHEDULES[schedule]()
    checker = _right_as_it_stands(schedule)

    def wrong(module: ModuleOp, *args: str) -> object:
        actual = lower_to_kernels(module, *args)
        plant(actual[0])
        return actual

    monkeypatch.setattr(gpu_builder, "lower_to_kernels", wrong)
    outcome = checker(str(s.script))
    assert outcome.kind == "fault", outcome


@pytest.mark.parametrize(
    ("grid", "numbers"),
    [
        ((1, 1, 1), [0]),
        ((9, 1, 1), [0, 1, 8]),
        ((1, 9, 1), [0, 1, 8]),
        ((6, 5, 4), [0, 1, 6, 30, 119]),
        ((2, 1, 2), [0, 1, 2, 3]),
    ],
)
def test_the_first_block_its_neighbours_and_the_last_are_sampled(
    grid: tuple[int, int, int], numbers: list[int]
) -> None:
    assert corners(grid) == numbers


def test_a_fault_that_nobody_commits_is_said() -> None:
    (fault, *_) = sampled("cube", small_grid("X")).faults
    assert str(fault) == "unwritten element at Y[0, 0, 40]: no block writes it"
    (fault, *_) = sampled("cube", moved("X", third_is_second)).faults
    assert str(fault).startswith("race of two writes at Y[0, 0, 16]: blocks 2 and 3, in memref.store (")


DEPENDENT = """
      %v = memref.load %A[%t] : memref<64xf32>  %zero = arith.constant 0.0 : f32
      %p = arith.cmpf ogt, %v, %zero : f32
      scf.if %p { memref.store %v, %B[%t] : memref<64xf32> }
"""


def test_writes_that_depend_on_values_are_left_open() -> None:
    module = parse(one_kernel(DEPENDENT, blocks=2))
    checked = simt.run(module, [LINE], sample=BlockSample(1, 1), required={"B": np.ones(64, np.bool_)})
    assert checked.undecided == ["f"]


def test_loops_are_followed_where_a_store_depends_on_them() -> None:
    body = """
      %c0 = arith.constant 0 : index  %c1 = arith.constant 1 : index  %zero = arith.constant 0.0 : f32
      scf.for %i = %c0 to %c2 step %c1 {
        scf.for %k = %c0 to %c32 step %c1 {
          %h = arith.muli %i, %c32 : index  %p = arith.addi %h, %t : index
          %few = arith.cmpi slt, %p, LIMIT : index
          scf.if %few { memref.store %zero, %B[%p] : memref<64xf32> }
        }
      }
    """
    written = {"B": np.ones(64, np.bool_)}
    for limit, right in (("%l", True), ("%s", False)):
        text = "%l = arith.constant 64 : index  %s = arith.constant 63 : index" + body.replace("LIMIT", limit)
        module = parse(one_kernel(text))
        checked = simt.run(module, [LINE], sample=BlockSample(1, 1), required=written)
        assert [fault.address for fault in checked.faults] == ([] if right else [(63,)])
