"""Offset commits of `__consumer_offsets` segments as numpy columns, at a million records a second.

Bytes in, columns out; files are read by whoever gives a `SegmentSource`. The plain reader
(`log.format`) says what a segment holds: batches and records of an unusual form are handed to it,
and what comes back is the same.
"""
