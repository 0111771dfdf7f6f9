"""Builds whose plan is the caller's: groups, and a schedule for each."""

from compiler.driver import BuildPlan, build_planned, build_unit
from compiler.driver.units.unit import Scheduled
from compiler.graph.grouped_module import GroupedModule, group_program

__all__ = ["BuildPlan", "GroupedModule", "Scheduled", "build_planned", "build_unit", "group_program"]
