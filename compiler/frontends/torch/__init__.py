"""Graphs of core ATen operators as te functions."""
