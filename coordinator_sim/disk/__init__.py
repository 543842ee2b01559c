"""Logs and metadata in files: folders of segments, checkpoints, the journal, and their recovery.

The package accesses files, but has no sockets, clocks or random draws.
"""
