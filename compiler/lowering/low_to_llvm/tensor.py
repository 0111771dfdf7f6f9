"""Tile intrinsics in LLVM IR: dot products of groups, products of AMX tiles."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from compiler.dialects.tile_intrinsics import (
    ROW_BYTES,
    ROWS,
    TILE,
    DotOp,
    LoadOp,
    StoreOp,
    TileDotOp,
    TileLoadOp,
    TileStoreOp,
)
from compiler.dialects.upstream.walk import ops_in
from compiler.intrinsics import Intrinsic, find
from compiler.lowering.low_to_llvm.address import element_address
from compiler.lowering.low_to_llvm.function import FunctionEmitter, Handlers
from compiler.lowering.low_to_llvm.memrefs import load, store
from compiler.lowering.low_to_llvm.types import lanes, llvm_type
from compiler.support.errors import LoweringError, ScheduleError
from compiler.types.machines import Machine


def check_features(module: ModuleOp, machine: Machine) -> None:
    """Raise LoweringError for a tile intrinsic that is not declared, or needs a feature that the machine lacks."""
    for op in ops_in(module):
        if type(op) in (DotOp, TileDotOp, TileLoadOp, TileStoreOp):
            name = op.kind.data if isinstance(op, DotOp | TileDotOp) else "tile.load.f32"
            missing = _declared(name).lacking(machine.present)
            if missing:
                raise LoweringError(f"'{name}' needs {missing} of the processor, which '{machine.name}' lacks")


def _declared(name: str) -> Intrinsic:
    try:
        return find(name)
    except ScheduleError as error:
        raise LoweringError(error.reason) from error


def _dot(f: FunctionEmitter, op: DotOp) -> None:
    intrinsic = _declared(op.kind.data)
    count, accumulator_type = lanes(op.sums.type), llvm_type(op.sums.type)
    element = "i8" if llvm_type(op.group.type).endswith("i8>") else "bfloat"
    operand = f"<{count * lanes(op.group.type)} x {element}>"
    factors = [_group_splat(f, op.group, count, operand)]
    factors.append(f.temporary(f"bitcast {f.typed(op.groups)} to {operand}"))
    if op.group in f.lanes and intrinsic.reads[0].element == intrinsic.reads[1].element:
        factors.reverse()  # LLVM takes the second factor by its lane, and either order is right
    f.declare(accumulator_type, intrinsic.llvm, [accumulator_type, operand, operand])
    arguments = ", ".join([f.typed(op.sums), *(f"{operand} {factor}" for factor in factors)])
    f.set(op.result, f"call {accumulator_type} @{intrinsic.llvm}({arguments})")


def _group_splat(f: FunctionEmitter, group: SSAValue, count: int, operand: str) -> str:
    """Emit a splat of a 32-bit group to `count` lanes, as a vector of type `operand`. Each use has a separate splat:
    LLVM folds it into the instruction."""
    if group in f.lanes:
        lane = f.lanes[group]
        return f.temporary(f"bitcast <{count} x {lane.element}> {f.temporary(lane.splat(count))} to {operand}")
    word = f.once((group, "word"), f"bitcast {f.typed(group)} to i32")
    type = f"<{count} x i32>"
    first = f.temporary(f"insertelement {type} poison, i32 {word}, i64 0")
    splat = f.temporary(f"shufflevector {type} {first}, {type} poison, {type} zeroinitializer")
    return f.temporary(f"bitcast {type} {splat} to {operand}")


def _tile_load(f: FunctionEmitter, op: TileLoadOp) -> None:
    address = element_address(f, op, op.buffer, op.indices)
    f.declare("x86_amx", "llvm.x86.tileloadd64.internal", ["i16", "i16", "ptr", "i64"])
    arguments = f"{_SHAPE}, ptr {address.pointer}, {f.typed(op.stride)}"
    f.set(op.result, _as_vector(f, f.temporary(f"call x86_amx @llvm.x86.tileloadd64.internal({arguments})")))


def _tile_store(f: FunctionEmitter, op: TileStoreOp) -> None:
    address = element_address(f, op, op.buffer, op.indices)
    f.declare("void", "llvm.x86.tilestored64.internal", ["i16", "i16", "ptr", "i64", "x86_amx"])
    arguments = f"{_SHAPE}, ptr {address.pointer}, {f.typed(op.stride)}, {_as_tile(f, op.value)}"
    f.line(f"call void @llvm.x86.tilestored64.internal({arguments})")


def _tile_dot(f: FunctionEmitter, op: TileDotOp) -> None:
    name = _declared(op.kind.data).llvm
    f.declare("x86_amx", name, ["i16", "i16", "i16", "x86_amx", "x86_amx", "x86_amx"])
    tiles = ", ".join(_as_tile(f, value) for value in (op.sums, op.rows, op.groups))
    f.set(op.result, _as_vector(f, f.temporary(f"call x86_amx @{name}({_SHAPE}, i16 {ROW_BYTES}, {tiles})")))


_SHAPE = f"i16 {ROWS}, i16 {ROW_BYTES}"
"""The rows and the bytes of a row; LLVM derives the configuration of the tile registers from them."""


def _as_tile(f: FunctionEmitter, value: SSAValue) -> str:
    """Emit the cast of a vector to an AMX tile; between tile instructions tiles are vectors, which may be phis."""
    f.declare("x86_amx", "llvm.x86.cast.vector.to.tile.v256i32", [llvm_type(value.type)])
    cast = f"call x86_amx @llvm.x86.cast.vector.to.tile.v256i32({f.typed(value)})"
    return f"x86_amx {f.temporary(cast)}"


def _as_vector(f: FunctionEmitter, tile: str) -> str:
    f.declare(llvm_type(TILE), "llvm.x86.cast.tile.to.vector.v256i32", ["x86_amx"])
    return f"call {llvm_type(TILE)} @llvm.x86.cast.tile.to.vector.v256i32(x86_amx {tile})"


TENSOR: Handlers = {
    LoadOp: load,
    StoreOp: store,
    DotOp: _dot,
    TileLoadOp: _tile_load,
    TileStoreOp: _tile_store,
    TileDotOp: _tile_dot,
}
