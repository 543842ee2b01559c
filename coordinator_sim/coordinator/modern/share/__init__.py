"""Share groups (KIP-932): members, targets, the state that is kept of their partitions. Pure.

As a consumer group, a share group is a function of the log: handlers compute records, and the
records' replay changes it. Nobody waits for another to give partitions up, so a member gets its
target at once. What the share coordinator is asked to do leaves as calls, which a driver answers.
"""
