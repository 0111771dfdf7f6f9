"""Attention on GPUs in one kernel, block by block of keys, in the form of `streamed_attention`.

blocks.py    the blocks of that form, computed in one loop over blocks of keys
warps.py     on tensor cores: stream_on_warps
threads.py   of f32, without tensor cores: stream_on_threads
"""

from compiler.recipes.gpu.attention.threads import ThreadStreamTiles, stream_on_threads, streamed_on_threads
from compiler.recipes.gpu.attention.warps import StreamTiles, stream_on_warps, streamed_on_warps

__all__ = [
    "StreamTiles",
    "ThreadStreamTiles",
    "stream_on_threads",
    "stream_on_warps",
    "streamed_on_threads",
    "streamed_on_warps",
]
