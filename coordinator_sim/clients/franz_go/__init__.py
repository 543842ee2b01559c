"""A model of the consumer of franz-go, by layers: requests, offsets, session, consumer."""

from coordinator_sim.clients.franz_go.consumer import FranzGoConsumer

__all__ = ["FranzGoConsumer"]
