"""Everything a Kafka cluster answers over the wire, around the group coordinator.

The package takes requests and gives answers as structs with Kafka's field names; it has no
sockets, clock or threads. A driver (`server`) brings frames and instants. Replicas are labels: a
partition has one log.
"""
