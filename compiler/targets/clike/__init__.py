"""The writer of C and of CUDA C++.

language.py    `Language`: the spelling of types, literals, helpers and conversions
statements.py  loops, branches, variables and names
operations.py  scalar operations as expressions
expressions.py expressions with the fewest parentheses
numbers.py     numeric functions that a text defines if it uses them
"""
