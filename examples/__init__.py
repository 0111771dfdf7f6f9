"""Examples: the demo, the walk through a schedule, and one example of each primitive."""
