"""The log of one partition: checks, appends, reads, retention, compaction, a store in memory.

The package is pure: `coordinator_sim.disk` has the store in files. A log knows nothing of leaders,
groups and requests.
"""
