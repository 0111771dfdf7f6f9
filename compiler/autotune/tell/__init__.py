"""What a person reads of tuning.

progress.py     how far a run is; the times that are shown
breakdown.py    what the groups of a whole program take together, beside the whole
forms.py        what the forms of groups take inside the whole program, and which of them is chosen
in_place.py     what the groups take inside the whole program, and which schedules were chosen
subject.py      what is asked of a task
facts.py        what is known of a run, as rows, sentences and data
board.py        the tasks of a whole program beside each other
operator.py     what a program computes, in a few words
views.py        a run under way: a table on a terminal, lines elsewhere
description.py  a program in words
listing.py      a search space in words: sketches, candidates, scripts and their differences
"""
