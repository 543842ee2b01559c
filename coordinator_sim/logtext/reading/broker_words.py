"""What shows that a group coordinator wrote a line, and on which broker."""

import re
from typing import Final

from coordinator_sim.logtext.reading.envelopes import Envelope
from coordinator_sim.logtext.wordings.values import whole_number

BROKER_ID: Final = re.compile(
    r"\[Group ?(?:Coordinator|Metadata ?Manager)"
    r"(?: (?:id=|brokerId=|on Broker )?(\d+)(?: topic=\S+ partition=(\d+))?)?"
)
"""The prefix of a coordinator's messages: its broker, and its partition of the offsets topic."""
_LOADS: Final = re.compile(
    r"(?:Scheduling (?:un)?loading of |Finished (?:un)?loading |Started unloading |"
    r"Loading offsets |Error loading offsets |Failed to load metadata ).*__consumer_offsets"
    r"|(?:Elected|Resigned) as the group coordinator for partition "
)
"""Lines that only a coordinator writes, whatever the layout around them."""
_BROKER_LOGGERS: Final = ("kafka.coordinator.group.", "kafka.coordinator.Group")


def is_brokers(envelope: Envelope) -> bool:
    """Whether a group coordinator wrote the line."""
    message = envelope.message
    if "[GroupCoordinator" in message or "[GroupMetadataManager" in message:
        return True
    if "[Group Metadata Manager" in message or message.startswith("Loaded member Member"):
        return True
    if any(name in envelope.logger for name in _BROKER_LOGGERS) or _LOADS.match(message):
        return True
    return envelope.instant is None and "with old generation" in message


def fill_prefix(message: str, columns: dict[str, object]) -> None:
    """Fill in the broker and the partition that a message's prefix names."""
    prefix = BROKER_ID.search(message)
    if prefix is None:
        return
    broker_id, partition = prefix.groups()
    if broker_id is not None:
        columns["broker_id"] = whole_number(broker_id)
    if partition is not None:
        columns["offsets_partition"] = whole_number(partition)
