"""One HTML page about a program: its IR after each pass, loops, script, memory, machine code and proof.

records.py   `ProgramPage` and its parts: what a page shows, as data
subject.py   `PageSubject`: a function to show, under the user's names; those of a kernel
stages.py    the IR after each pass, and the lines that it changes
queries.py   questions to isl with their answers, as they are asked
steps.py     the steps of a script, their queries to isl, the witness of a refusal
nests.py     the loops as a tree, and the memory that each touches
equations.py blocks as equations
parts.py     `page_part`: all of these about one function
collect.py   `page_of_kernel`, `page_of_target`, `page_of_schedule`: the pages of a program
page.py      the page as HTML; view.js and view.css are in it
"""
