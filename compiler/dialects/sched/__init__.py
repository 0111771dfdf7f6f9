"""The sched dialect: schedule primitives and open choices, as ops inside a `transform.named_sequence`.

base.py        handle types, the base of all ops, and that no consumed handle is used
handle.py      get_block, get_loops, get_producers, get_consumers
nest.py        split, partition, fuse, reorder, merge, distribute
kind.py        unroll, vectorize, parallel, bind, annotate
placement.py   compute_at, reverse_compute_at, inline, reverse_inline
staging.py     cache_read, cache_write, stage, lift_alloc, set_scope
layout.py      transform_layout, pack, pad, storage_align, swizzle
pipelining.py  prefetch, double_buffer, software_pipeline
reduction.py   decompose_reduction, rfactor
choice.py      sample_perfect_tile, sample_categorical, sample_location, auto

A script with open choices is a search space; the same script with decisions is a schedule.
"""

from xdsl.ir import Dialect

from compiler.dialects.sched import choice, handle, kind, layout, nest, pipelining, placement, reduction, staging
from compiler.dialects.sched.base import BlockType, LoopType, ParamType

SCHED = Dialect(
    "sched",
    [
        *handle.OPS,
        *nest.OPS,
        *kind.OPS,
        *placement.OPS,
        *staging.OPS,
        *layout.OPS,
        *pipelining.OPS,
        *reduction.OPS,
        *choice.OPS,
    ],
    [BlockType, LoopType, ParamType],
)
