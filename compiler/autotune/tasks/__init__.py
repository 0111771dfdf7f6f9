"""Several tasks that share the budget of a run; the next batch goes to the task with the largest expected gain.

task_state.py    TaskState: the state of a task for allocation; Turn: a batch in the log
allocation.py    the rules that pick the task of the next turn: by expected gain, or round robin
scheduler.py     tune_together: the turns of the tasks, their shared workers, the final comparison
forms.py         FormComparison: times the forms of a program and of its groups inside the whole program
chosen_forms.py  ChosenForms: the forms that a task has, by the estimate or by a database
in_place.py      InPlaceComparison: times the default and the best record of each group inside the whole program
"""
