"""Logs of partitions as a broker keeps them: record batches as bytes, in memory or in files.

The package accesses files, but has no sockets, clocks or random draws, and knows nothing of
leaders, groups and requests.
"""
