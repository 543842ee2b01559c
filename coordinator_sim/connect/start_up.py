"""Durations of the steps of a worker's start that depend on no other process.

Measured from the log of Connect 4.3.1 (Java 17, 92 jars on the class path, one connector on the
plugin path) in four starts on two shared cores; a figure of an idle machine is used where it is
known. The class scan took 9.1 s in `only_scan` and 9.2 s in `hybrid_warn` there; idle, a worker
that scans is ready 7 s later than one that does not.
"""

from typing import Final

from msgspec import Struct

from coordinator_sim.connect.settings.worker_config import PluginDiscovery


class StartUpTimes(Struct, frozen=True, kw_only=True):
    """Durations in milliseconds.

    Args:
        process_ms: From the start of the process to the plugin scan: the start of the JVM.
        scan_ms: Plugin scan that reads every class (`only_scan` and both hybrid modes).
        listing_ms: Plugin scan that reads only listings of services (`service_load`).
        admin_client_ms: From the parsed configuration to the request for the cluster id.
        server_ms: From the cluster id to the REST server's listening.
        construction_ms: From the listening to the herder's start: stores, worker, herder.
        resources_ms: From the herder's start to the initialized REST resources.
    """

    process_ms: int = 800
    scan_ms: int = 7_350
    listing_ms: int = 350
    admin_client_ms: int = 600
    server_ms: int = 400
    construction_ms: int = 130
    resources_ms: int = 1_300

    def plugin_scan_ms(self, discovery: PluginDiscovery) -> int:
        """Return the duration of plugin discovery."""
        return self.listing_ms if discovery is PluginDiscovery.SERVICE_LOAD else self.scan_ms


AT_ONCE: Final = StartUpTimes(
    process_ms=0,
    scan_ms=0,
    listing_ms=0,
    admin_client_ms=0,
    server_ms=0,
    construction_ms=0,
    resources_ms=0,
)
"""No durations: a start that only waits for answers, for use where real time passes anyway."""
