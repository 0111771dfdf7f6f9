"""Candidates measured on the workers of a `dask.distributed` cluster (the extra `fleet`).

    tuner: Fleet -> Cluster -> scheduler -> worker: jobs -> Station -> processes that build, one that times

facts.py      what a worker says of itself: version, machine model, builders
host_lock.py  builds share a host; what is timed has it alone
station.py    Station: what one worker builds and times with
jobs.py       what a scheduler calls on workers
serve.py      a worker that serves until it is interrupted
cluster.py    Cluster: the workers of a scheduler, who is trusted, and jobs that dask lets some of them do
judge.py      which outcomes a second worker must confirm, and whom to believe
measurer.py   Fleet: candidates to outcomes, each a coroutine, in flight while others are chosen
"""
