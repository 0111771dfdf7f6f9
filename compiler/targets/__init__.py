"""Targets: machine facts, emission, loading, running."""
