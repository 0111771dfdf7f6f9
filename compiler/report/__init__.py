"""One HTML page about what a database knows: a single file that needs no network and no script.

tasks.py      a task: times, bound, curve, predictions, failures
programs.py   tasks together: a whole program, or tasks that no known program calls; the report of a database
importance.py which choices of a sketch the measured times depend on
memory.py     the buffers between the groups of a whole program: where and when they are live
layers.py     which layers of a network the calls of a group are of
listings.py   the machine loops of the baseline and of the best script
svg.py        axes, points, lines and areas; a tooltip is a `<title>`
pictures.py   what is drawn of a task and of a program
html.py       text, tables and bars, escaped
page.py       the page
"""
