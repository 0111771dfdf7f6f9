"""Tuning records in one SQLite file: durable before the next trial begins (law 8), shared by several tuners.

outcome.py    what came of one candidate
record.py     Key, Record: what is known of one trial; WholeProgram: what calls the groups that were tuned
program.py    the text by which a program is known, and its key
fields.py     records and whole programs as objects of JSON; fields of newer versions are kept
schema.py     opening a file: its tables, its format, errors in words
lines.py      a record as a line of JSON, to be carried from file to file
summary.py    what a file has for each task, and what pruning would remove
store.py      Database, and records as rows
replay.py     a record's script applied to its program; it is not imported here, since a schedule takes long to load
"""

from compiler.database.program import key_of, program_of
from compiler.database.record import Candidate, Key, Record, WholeProgram
from compiler.database.store import Database, Imported
from compiler.database.summary import Removal, Summary

__all__ = [
    "Candidate",
    "Database",
    "Imported",
    "Key",
    "Record",
    "Removal",
    "Summary",
    "WholeProgram",
    "key_of",
    "program_of",
]
