"""A port of Java's AsyncKafkaConsumer, the client of `group.protocol=consumer` (KIP-848)."""

from coordinator_sim.clients.async_consumer.consumer import AsyncConsumer

__all__ = ["AsyncConsumer"]
