"""Models of the consumer of librdkafka, for both group protocols, by layers.

Offsets, assignment and coordinator are common. `consumer` is the classic protocol;
`heartbeats` and `new_consumer` are the consumer protocol (KIP-848).
"""

from coordinator_sim.clients.librdkafka.consumer import LibrdkafkaConsumer
from coordinator_sim.clients.librdkafka.new_consumer import LibrdkafkaNewConsumer

__all__ = ["LibrdkafkaConsumer", "LibrdkafkaNewConsumer"]
