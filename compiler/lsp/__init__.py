"""The language server of .mlir files, `strata lsp`: pure functions of a snapshot of a document, and the protocol last.

text.py        ranges, lines and columns, tokens
index.py       the ranges of ops, and the definition and uses of names, written while a text is parsed
analysis.py    a text parsed past its syntax errors, and verified
runs.py        the strata-opt commands of RUN lines
snapshot.py    a version of a document: its pieces, payloads and RUN lines
checks.py      the passes of RUN lines, and scripts on their programs
navigation.py  definitions, references, new names
values.py      the values of an index, the memory that a loop touches
documentation.py  ops, types, passes and options as Markdown
hover.py       what stands at an offset
completion.py  what may stand at an offset
symbols.py     the outline, and what folds
lenses.py      the IR after each pass, scripts to apply, expected errors
background.py  slow questions in a worker process
server.py      the protocol, by pygls
"""
