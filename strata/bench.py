"""Workloads measured in turns beside other implementations."""

from compiler.bench import contenders, workloads
from compiler.bench.harness import Measurement, Plan, fault, measure
from compiler.bench.table import WIDTH, table
from compiler.bench.workload import Workload

__all__ = ["WIDTH", "Measurement", "Plan", "Workload", "contenders", "fault", "measure", "table", "workloads"]
