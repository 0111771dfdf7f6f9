"""An HTML page about the records of a database: a single file without scripts and external resources.

tasks.py      a task: times, bound, curve, predictions, failures
programs.py   the tasks of a whole program, and tasks without one; the report of a database
importance.py the influence of a sketch's choices on the measured times
memory.py     the arena of a whole program: offsets and lifetimes of buffers
layers.py     the layers of a network behind the calls of a group
listings.py   the machine loops of the baseline and of the best script
svg.py        axes, points, lines and areas; a tooltip is a `<title>`
pictures.py   the drawings of a task and of a program
html.py       text, tables and bars, escaped
page.py       the page
"""
