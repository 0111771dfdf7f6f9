"""Certificates of libraries: what was proved of their schedules, and hashes from the texts to the machine code.

text.py   `Certificate`: programs, groups, loops and hashes, as JSON
elf.py    the sections of an ELF file

`compiler.pipeline.certified` checks them, and imports nothing of `schedule`, `autotune` or `driver`: the check shares
the proof with the scheduler, and no rewrite.
"""
