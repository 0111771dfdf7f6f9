"""Quasi-affine expressions: text with names, a canonical linear form with ranges, exact questions through isl."""
