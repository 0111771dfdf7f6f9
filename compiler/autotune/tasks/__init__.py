"""Several tasks of one run: they share its trials and seconds, and the next batch goes where it promises most.

account.py       Account: what is known of a task when batches are given out; a turn as the log has it
allocation.py    which task has the next turn: the one that promises most seconds of the program, or each in turn
scheduler.py     tune_together: the turns of tasks, their workers, their conclusions
forms.py         the forms of a program and of its groups, inside the whole program, and the choice between them
chosen_forms.py  the forms that a task has: by the estimate, or by a database
in_place.py      the finalists of each task inside the whole program, and the choice between them
"""
