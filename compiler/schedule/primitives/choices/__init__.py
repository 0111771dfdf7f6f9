"""Primitives that choose sizes and places: the open choices of a search space, and arithmetic on them."""
