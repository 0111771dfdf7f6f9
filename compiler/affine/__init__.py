"""Quasi-affine expressions: text with names, a canonical linear form with ranges, exact bounds through isl."""
