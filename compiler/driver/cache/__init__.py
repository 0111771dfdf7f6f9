"""The cache of machine code: entries on disk by the digests of their keys, shared by processes.

An entry is code that will run. So the folder is private to the user, each entry is checked by its digests, and other
files in the folder are ignored. Failures to read or write are not errors but misses.

folder.py      the folder of the cache, or why caching is off
store.py       entries in a folder: atomic writes, checked reads, eviction of the least recently used
fingerprint.py the part of every key: digests of the package's sources and plugins, versions of libraries
entries.py     `get` and `put`: dataclasses by words
"""
