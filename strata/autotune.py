"""Tuning: tasks, their options and facts, search spaces and candidates drawn from them."""

from compiler.autotune.display.facts import INTERRUPTED, RunFacts
from compiler.autotune.display.views import view
from compiler.autotune.options import TuningOptions
from compiler.autotune.search.supply import draw
from compiler.autotune.task import SearchTask
from compiler.autotune.workloads import workload
from compiler.space.candidates import filter_all
from compiler.space.derivation import Derived, derive, preferred

__all__ = [
    "INTERRUPTED",
    "Derived",
    "RunFacts",
    "SearchTask",
    "TuningOptions",
    "derive",
    "draw",
    "filter_all",
    "preferred",
    "view",
    "workload",
]
