"""What a group coordinator needs around it: the cluster, its metadata and the replicated log.

Routes a request to the coordinator that owns the group. Pure: a driver delivers and times.
"""
