"""A worker process: see worker.py."""

from compiler.autotune.measure.worker import main

main()
