"""Lowerings: one edge a file or folder, <from>_to_<to>."""
