"""What a group needs around its coordinator: brokers, metadata, leaders, the offsets log.

Pure: a driver carries time and messages; every verb here returns values.
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
