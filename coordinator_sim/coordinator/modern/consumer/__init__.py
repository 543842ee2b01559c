"""Consumer groups (KIP-848): members, targets, reconciliation, their records. Pure.

A group is a function of the log: handlers compute records from a group as it is, and the records'
replay is the only thing that changes it. What a handler does beside that is timers.
"""
