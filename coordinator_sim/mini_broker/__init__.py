"""Everything a Kafka cluster answers over the wire, around the group coordinator.

Requests in, answers out, by the API's number and Kafka's field names; no sockets, no clock, no
threads. A driver (`server`) brings frames and instants. Replicas are labels: one log a partition.
"""
