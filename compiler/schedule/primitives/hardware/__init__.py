"""Primitives for hardware: threads of a GPU, intrinsics, memory spaces, pipelines and prefetches."""
