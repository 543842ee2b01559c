"""`run --broker-log`: the text log that the brokers of a run would have written."""

from collections.abc import Iterable
from pathlib import Path

from coordinator_sim.errors import naming
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.logtext.writing.writer import broker_log
from coordinator_sim.trace.events import TraceEvent


def write_broker_log(events: Iterable[TraceEvent], profile: str, path: Path) -> int:
    """Write the lines of all brokers, in the order of the trace, into one file.

    Args:
        events: Of one run.
        profile: Name of the Kafka whose words are used.
        path: Replaced if it is there.

    Returns:
        The lines written.

    Raises:
        OSError: The file cannot be written.
    """
    count = 0
    with naming(path), path.open("w", encoding="utf-8") as file:
        for line in broker_log(events, profile_named(profile)):
            file.write(f"{line}\n")
            count += 1
    return count
