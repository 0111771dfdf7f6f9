"""Builds whose plan is the caller's: groups, and a schedule for each."""

from compiler.driver import BuildPlan, build_planned, build_unit
from compiler.driver.units.unit import Scheduled
from compiler.graph.whole import Grouped, whole

__all__ = ["BuildPlan", "Grouped", "Scheduled", "build_planned", "build_unit", "whole"]
