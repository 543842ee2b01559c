"""Kafka's coordinator-common: a runtime for coordinators that keep their state in a topic.

`runtime` appends, batches, defers and times out the operations on the topic's partitions;
`timeline` has the tables that a refused append takes back. The group coordinator and the share
coordinator (`broker.share_coordinator`) stand on it. Nothing here knows groups.
"""
