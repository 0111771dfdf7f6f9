"""Primitives that change the layouts of buffers: packing, padding, index maps."""
