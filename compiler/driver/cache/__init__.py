"""The cache of machine code: entries on disk by the digests of their keys, which several processes read and write.

An entry is code that will run. The folder is this user's alone, each entry is checked by its digests, and anything else
in the folder is ignored. Failures to read or write are not errors: the cache is then empty.

place.py       where the folder is, or why there is none
store.py       entries in a folder: read, written in one step, the least recently used removed
fingerprint.py what every key has: a digest of the package's sources, and the versions of what it compiles with
record.py      dataclasses as bytes, and back
entries.py     `get` and `put`: dataclasses by words
"""
