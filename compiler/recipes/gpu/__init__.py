"""Recipes for GPUs.

thin.py        products of few rows, by vectors of the matrix: thin_on_threads
tiles.py       reductions by tiles on threads, with operands in shared memory: tile_on_threads, cooperative_fetch
finish.py      the end of a tiled reduction: its loops bound, the sum of its parts by the last block to arrive
spread.py      results on threads, and reductions in parts: spread, in_parts
convolution.py convolutions as implicit products, by register tiles of filters and pixels: convolve_on_threads
rows.py        softmax and norms, a row for each block of threads: rows_on_threads
reduction.py   rows, columns and scalars by the threads of a block or of several: reduce_rows, reduce_columns
vectors.py     loads and stores of 128 bits, where alignment is proved
transposes.py  transposes through tiles in shared memory: transpose_on_threads
windows.py     convolutions on tensor cores, as products of filters and pixels: convolve_on_warps
warp.py        products on tensor cores: tile_on_warps
attention/     attention in one kernel, on tensor cores or not: stream_on_warps, stream_on_threads
"""
