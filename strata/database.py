"""Databases of records, their lines, and schedules made of them."""

from compiler.database import Database, Record, WholeProgram
from compiler.database.lines import from_line, to_line
from compiler.database.replay import replay

__all__ = ["Database", "Record", "WholeProgram", "from_line", "replay", "to_line"]
