"""A whole Kafka cluster as a pure object, around the group coordinator.

The package takes requests and gives answers as structs with Kafka's field names; it has no
sockets, clock, files or threads. A driver (`server`, `sim`) brings requests and instants. Replicas
are labels: a partition has one log.
"""
