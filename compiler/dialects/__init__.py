"""The dialects: te (whole tensors), loop (loop nests and blocks), sched (transform scripts)."""
