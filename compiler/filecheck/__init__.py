"""FileCheck tests: files of MLIR with RUN lines, also as a plugin of pytest for other packages.

payload.py  payloads that several files share
shell.py    the commands of RUN lines
runner.py   the RUN lines of a file, in this process
generate.py the CHECK lines of a file from what its RUN lines print
lit.py      strata-lit: files from the shell
plugin.py   pytest collects the files in the folders of its option strata_filecheck
"""
