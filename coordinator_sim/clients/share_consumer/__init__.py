"""Port of Java's share consumer (KIP-932): a member of a share group, with its share sessions."""

from coordinator_sim.clients.share_consumer.consumer import ShareConsumer

__all__ = ["ShareConsumer"]
