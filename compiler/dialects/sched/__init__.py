"""The sched dialect: schedule primitives and open choices, as ops inside a `transform.named_sequence`.

handle.py      handle types, the base of all ops, get_block and its kin
nest.py        split, partition, fuse, reorder, merge, distribute, unroll, vectorize, parallel, bind, annotate
placement.py   compute_at, reverse_compute_at, inline, reverse_inline
staging.py     cache_read, cache_write, stage, lift_alloc, set_scope, layouts, prefetch, pipelining
reduction.py   decompose_reduction, rfactor, tensorize
choice.py      sample_perfect_tile, sample_categorical, sample_location, auto

A script with open choices is a search space; the same script with decisions is a schedule.
"""

from xdsl.ir import Dialect

from compiler.dialects.sched import choice, nest, placement, reduction, staging
from compiler.dialects.sched.handle import (
    BlockType,
    GetBlockOp,
    GetConsumersOp,
    GetLoopsOp,
    GetProducersOp,
    LoopType,
    ParamType,
)

SCHED = Dialect(
    "sched",
    [
        GetBlockOp,
        GetLoopsOp,
        GetProducersOp,
        GetConsumersOp,
        *nest.OPS,
        *placement.OPS,
        *staging.OPS,
        *reduction.OPS,
        *choice.OPS,
    ],
    [BlockType, LoopType, ParamType],
)
