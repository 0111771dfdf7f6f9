"""Command lines: strata-opt, and what writes and executes the documents."""
