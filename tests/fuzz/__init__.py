"""Fuzzers: each module has `main(seed, cases)`, which prints every failure and gives their number."""
