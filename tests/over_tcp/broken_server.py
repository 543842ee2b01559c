"""`coordinator-sim serve` with one line broken: `python -m tests.over_tcp.broken_server ID ...`.

What follows the id are options of `serve`. The museum has faults of the coordinator; those of the
wire are here.
"""

import sys
from typing import Final

from coordinator_sim_conformance.museum.breaking import install
from coordinator_sim_conformance.museum.exhibit import Exhibit
from coordinator_sim_conformance.museum.exhibits import exhibit_named

_BROKER: Final = "coordinator_sim.broker."
_WRITE: Final = """\
                write = response_writer(self.api, self.version)
                self.asker.answered(write(self.correlation_id, fitting))
"""
WIRE_FAULTS: Final = (
    Exhibit(
        "byte-behind-an-answer",
        "An answer to Heartbeat of version 2 has a byte behind its end.",
        _BROKER + "pending_answer",
        _WRITE,
        _WRITE.replace(
            "fitting)",
            'fitting) + (b"\\0" if (self.api, self.version) == (ApiKey.HEARTBEAT, 2) else b"")',
        ),
        "VERSION-HEARTBEAT",
    ),
    Exhibit(
        "answer-of-another-version",
        "SyncGroup of version 3 is answered as version 0 is.",
        _BROKER + "pending_answer",
        _WRITE,
        _WRITE.replace(
            "self.version)",
            "0 if (self.api, self.version) == (ApiKey.SYNC_GROUP, 3) else self.version)",
        ),
        "VERSION-SYNC",
    ),
    Exhibit(
        "any-version-is-taken",
        "Versions above those offered are taken for the newest one.",
        _BROKER + "connection",
        "        pending = PendingAnswer(self, api, version, correlation_id, self._cluster.jobs)\n",
        "        version = min(version, span[1])\n"
        "        pending = PendingAnswer(self, api, version, correlation_id, self._cluster.jobs)\n",
        "VERSION-ABOVE",
    ),
)


def main() -> None:
    """Break the code as the first argument says, and serve."""
    exhibit_id, *options = sys.argv[1:]
    own = {each.exhibit_id: each for each in WIRE_FAULTS}
    install(own.get(exhibit_id) or exhibit_named(exhibit_id))
    sys.argv[1:] = ["serve", *options]
    from coordinator_sim.cli.entry import main as coordinator_sim

    coordinator_sim()


if __name__ == "__main__":
    main()
