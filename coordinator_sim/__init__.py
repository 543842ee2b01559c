"""Broker-side group coordinator simulator for Apache Kafka's group protocol.

The pure rooms (see `docs/architecture.md`) import no clock, randomness, sockets or threads;
the drivers around them (`sim`, `cli`) hold no protocol logic.
"""

__version__ = "0.1.0"
