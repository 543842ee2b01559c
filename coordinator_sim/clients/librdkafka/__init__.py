"""A model of the consumer of librdkafka, by layers: assignment, coordinator, joins, consumer."""

from coordinator_sim.clients.librdkafka.consumer import LibrdkafkaConsumer

__all__ = ["LibrdkafkaConsumer"]
