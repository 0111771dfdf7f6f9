"""Primitives that change where elements of a buffer stand: packing, padding, index maps."""
