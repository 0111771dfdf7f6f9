"""Analyses: read IR, never change it."""
