"""Text and tables about tuning, for people.

progress.py     the progress of a run, and the times that are shown
breakdown.py    the times of the groups of a whole program, beside the time of the whole
forms.py        the times of the forms of groups inside the whole program, and the chosen form
in_place.py     the times of the groups inside the whole program, by default and by records, and the choice
subject.py      the interface of a task to this folder
facts.py        the state of a run as rows, sentences and data
task_table.py   the tasks of a whole program, a row each
operator.py     the main operator of a program, such as `convolution 3x3`
views.py        the display of a run: a table on a terminal, lines elsewhere
description.py  a program as text, a statement a line
listing.py      a search space as text: sketches, candidates, scripts and their differences
"""
