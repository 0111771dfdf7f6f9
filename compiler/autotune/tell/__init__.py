"""What a person reads of tuning.

progress.py    what a run shows while it is under way
standing.py    the time of the best, its gain, and the times of others beside it
live.py        a run under way: a table on a terminal, lines elsewhere
conclusion.py  what a run has come to, in words and as data
report.py      what a database knows of some tasks, as a page of HTML
describe.py    a program in words
show.py        a search space in words: sketches, candidates, scripts and their differences
"""
