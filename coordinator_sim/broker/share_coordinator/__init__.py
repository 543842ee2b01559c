"""The share coordinators: what is kept of share partitions, in the topic `__share_group_state`.

`service` answers requests of one broker, `runtime` writes and loads partitions of the topic,
`shard` has the state of one of them. `family` has those of all brokers, `persister` is how share
partitions and group coordinators reach them. Nothing here knows groups or their members.
"""
