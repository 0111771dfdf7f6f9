"""The schedule primitives: functions from a program to a plan. Each checks what it requires, then plans; whoever
commits the plan asks `legal` first.

split.py       split, partition
nest.py        fuse, reorder
merge.py       merge, distribute
kind.py        unroll, vectorize, parallel, bind, tensorize, annotate
place.py       compute_at, reverse_compute_at
inline.py      inline, reverse_inline
reduce.py      decompose_reduction, rfactor
cache.py       cache_read, cache_write, stage
memory.py      lift_alloc, set_scope, transform_layout, pack, storage_align, swizzle
pad.py         pad
pipeline.py    prefetch, double_buffer, software_pipeline
"""
