"""How long the steps of a worker's start take that wait for nobody outside the process.

Read off the log of Connect 4.3.1 (Java 17, 92 jars on the class path, one connector on the plugin
path) on two cores that others used too, four starts; where a figure of an idle machine is known, it
is taken. The scan of classes took 9.1 s in `only_scan` and 9.2 s in `hybrid_warn` there; idle, a
worker that scans is ready 7 s later than one that does not.
"""

from typing import Final

from msgspec import Struct

from coordinator_sim.connect.settings.worker_config import PluginDiscovery


class StartUpTimes(Struct, frozen=True, kw_only=True):
    """Durations in milliseconds.

    Args:
        process_ms: From the start of the process to the scan of plugins: the JVM itself.
        scan_ms: The scan where every class is looked at (`only_scan` and both hybrid modes).
        listing_ms: The scan where only listings of services are read (`service_load`).
        admin_client_ms: From the parsed configuration until the cluster id is asked for.
        server_ms: From the cluster id until the REST server listens.
        construction_ms: From then to the herder's start: stores, worker, herder.
        resources_ms: From the herder's start until the REST resources are in.
    """

    process_ms: int = 800
    scan_ms: int = 7_350
    listing_ms: int = 350
    admin_client_ms: int = 600
    server_ms: int = 400
    construction_ms: int = 130
    resources_ms: int = 1_300

    def plugin_scan_ms(self, discovery: PluginDiscovery) -> int:
        """How long plugins are looked for."""
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
"""A start that only waits for answers, as where real time passes anyway."""
