"""The museum: faults of one line each, seeded into the core and into the ports of clients."""

from typing import Final

from coordinator_sim.errors import ConfigError
from coordinator_sim_conformance.museum.client_bugs import CLIENT_BUGS
from coordinator_sim_conformance.museum.connect_bugs import CONNECT_BUGS, CONNECT_FAULTS
from coordinator_sim_conformance.museum.exhibit import Exhibit
from coordinator_sim_conformance.museum.kafka_bugs import KAFKA_BUGS
from coordinator_sim_conformance.museum.port_faults import PORT_FAULTS
from coordinator_sim_conformance.museum.report_bugs import REPORT_BUGS
from coordinator_sim_conformance.museum.share_faults import SHARE_FAULTS

EXHIBITS: Final = (
    *KAFKA_BUGS,
    *CLIENT_BUGS,
    *CONNECT_BUGS,
    *PORT_FAULTS,
    *SHARE_FAULTS,
    *CONNECT_FAULTS,
    *REPORT_BUGS,
)
"""Every exhibit: Kafka's own bugs first, those of brokers before those of clients."""

HEALTHY: Final = Exhibit(
    "none", "Nothing is wrong.", "coordinator_sim.coordinator.coordinator", "", "", ""
)
"""No fault at all, to see that the suite passes without one."""


def exhibit_named(exhibit_id: str) -> Exhibit:
    """The exhibit of that id.

    Raises:
        ConfigError: there is none.
    """
    for exhibit in (*EXHIBITS, HEALTHY):
        if exhibit.exhibit_id == exhibit_id:
            return exhibit
    known = ", ".join(exhibit.exhibit_id for exhibit in EXHIBITS)
    raise ConfigError(f"no exhibit {exhibit_id!r}: use one of {known}")
