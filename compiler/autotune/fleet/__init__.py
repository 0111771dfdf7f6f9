"""Measuring candidates on the workers of a `dask.distributed` cluster (the extra `fleet`).

    tuner: Fleet -> Cluster -> scheduler -> worker: jobs -> WorkerProcesses -> processes that build, one that times

facts.py      the facts of a worker: versions, machine model, builders
host_lock.py  a readers-writer lock of a host: builds share it, a timing is exclusive
processes.py  WorkerProcesses: the processes of one worker that build and time
jobs.py       the functions that a scheduler calls on workers
serve.py      a worker that serves until it is interrupted
cluster.py    Cluster: the workers of a scheduler, which of them are trusted, and their jobs
judge.py      the outcomes that a second worker must confirm, and the one that counts
measurer.py   Fleet: from candidates to outcomes, each a coroutine, in flight while others are chosen
"""
