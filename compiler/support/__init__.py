"""General infrastructure of all rooms: errors, files, processes, plugins, text.

errors.py       the exceptions a user can cause
spans.py        source locations, and error messages with the source line and a caret
origins.py      the module, node or line of a model that an op comes from; fused locations
cli_errors.py   error messages with the wrong argument of a command line underlined
actions.py      passes, laws and steps that are logged, counted and omitted; remarks of passes
text.py         escapes of untrusted text; counts, durations, similar names
display.py      objects as one line of text and as HTML of a notebook
files.py        reading text files, replacing them atomically
validation.py   checks of a caller's arguments
command.py      the frame of a shell command: streams, error messages, exit status
worker_pool.py  a pool of worker processes, with crashes and time limits
processes.py    a worker process, on the parent's side
worker.py       a worker process, on the child's side
plugins.py      plugins: passes, operators, rules ... that other packages and files add
deferral.py     lazy names of a package
gc.py           pausing the garbage collector
unpicklable.py  objects that refuse pickle and copy
"""
