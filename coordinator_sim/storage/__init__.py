"""Logs of partitions as a broker keeps them: record batches as bytes, in memory or in files.

Leaders, groups and requests are not here. File access is; sockets, clocks and chance are not.
"""
