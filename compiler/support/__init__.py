"""What every room uses and no room of the compiler is about: errors, files, processes, words for people.

errors.py       the exceptions a user can cause
spans.py        places in source texts, and the line with a caret that an error shows
cli_errors.py   the word of a command line that an error is about, underlined
text.py         text from outside as a terminal or a page may have it; counts, times, near names
display.py      objects as a line of a session and as small HTML of a notebook
files.py        reading files, writing them in one step, finding programs
validation.py   values of a caller, checked
command.py      a command of the shell around its work: streams, errors as sentences, exit status
worker_pool.py  jobs to worker processes, deaths and time limits included
processes.py    one worker process as its parent sees it
worker.py       what a worker process does
plugins.py      what other packages and files add to the compiler
deferral.py     names of a package, and values of a mapping, that are made when they are first used
gc.py           work that makes many objects, without the garbage collector
unpicklable.py  objects that are not pickled or copied, such as those with loaded machine code
"""
