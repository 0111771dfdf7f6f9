"""FileCheck tests: files of MLIR with RUN lines, also as a plugin of pytest for other packages.

payload.py payloads that several files share
runner.py  the RUN lines of a file, in this process
plugin.py  pytest collects the files in the folders of its option strata_filecheck
"""
