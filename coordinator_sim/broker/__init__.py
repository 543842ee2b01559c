"""The surroundings of a group coordinator: brokers, metadata, leaders, the offsets log.

The package is pure: a driver carries time and messages, and every function returns values.
"""

from coordinator_sim.broker.broker import Broker, Coordinator, Handler, Services, make_services
from coordinator_sim.broker.cluster import Cluster, CoordinatorFactory, Load, Outcome

__all__ = [
    "Broker",
    "Cluster",
    "Coordinator",
    "CoordinatorFactory",
    "Handler",
    "Load",
    "Outcome",
    "Services",
    "make_services",
]
