"""Schedules: a loop function and the script that is applied to it."""

from compiler.schedule.schedule import Schedule

__all__ = ["Schedule"]
