"""Share partitions of a broker: which records of a partition a share group's members work on.

Nothing here knows who is in a group: that is the group coordinator (`coordinator/modern/share`),
and what is remembered of a partition is kept by the share coordinator (`broker/share_coordinator`).
"""
