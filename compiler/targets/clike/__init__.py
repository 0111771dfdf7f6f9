"""What the texts of C and of CUDA C++ have in common.

language.py    `Language`: how a language of the family spells types, helpers and conversions
statements.py  loops, branches, variables and names
operations.py  scalar operations as expressions
expressions.py expressions, with parentheses where they are needed
numbers.py     functions of numbers that a text defines where it uses them
"""
