"""Tuning records in one SQLite file: durable before the next trial begins (law 8), shared by several tuners.

outcome.py    Outcome: the result of a trial
record.py     Key, Record: a trial; WholeProgram: the caller of tuned groups
program.py    the canonical text of a program, and its key
fields.py     records and whole programs as JSON objects; fields of newer versions are preserved
schema.py     opening a file: its tables, its format, error messages
lines.py      records as lines of JSON, for transfer between files
summary.py    the contents of a file by task, and the removals of pruning
store.py      Database, and records as rows
replay.py     replay of a record's script; not imported here, since schedules load slowly
"""

from compiler.database.program import key_of, program_of
from compiler.database.record import Candidate, Key, Record, WholeProgram
from compiler.database.store import Database, ImportCounts
from compiler.database.summary import Removal, Summary

__all__ = [
    "Candidate",
    "Database",
    "ImportCounts",
    "Key",
    "Record",
    "Removal",
    "Summary",
    "WholeProgram",
    "key_of",
    "program_of",
]
