"""Losses of a damaged log directory, described for its user.

A loss is acknowledged data that is missing. Damage that Kafka repairs by itself is no loss;
`RecoveryReport` lists it.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.partitioning import (
    OFFSETS_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTIONS_TOPIC,
)

WHOLE_TOPICS: Final = (OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC)
"""Topics that coordinators load completely: all of their batches are checked."""


class Loss(Struct, frozen=True, kw_only=True):
    """Acknowledged data that is missing.

    Args:
        path: File or folder that shows the loss.
        finding: What is wrong with the path, for example "is gone".
        meaning: Consequence for users of the data.
    """

    path: str
    finding: str
    meaning: str

    def line(self) -> str:
        """One line for a log or a message."""
        return f"{self.path} {self.finding}: {self.meaning}"


class LossError(ConfigError):
    """Acknowledged data is missing, and `accept_loss` is not set."""


def refusal(path: str, losses: Sequence[Loss]) -> LossError:
    """The error that refuses a start; its message names every loss.

    Args:
        path: Path of the directory.
        losses: At least one.
    """
    lines = "".join(f"\n  {loss.line()}" for loss in losses)
    return LossError(
        f"{path} has lost data that was acknowledged:{lines}\n"
        "Put the files back from a copy, or give --accept-loss to go on without what is lost; "
        "damaged bytes are then kept beside, in files that end in .damaged"
    )


def meaning_of(topic: str, partition: int, first: int, end: int) -> str:
    """The consequence of missing offsets of a partition.

    Args:
        topic: Name of the topic.
        partition: Number of the partition.
        first: First lost offset.
        end: Offset after the last lost one; equal to `first` if unknown.
    """
    place = f"{topic}-{partition}"
    span = f"from {first} on" if end <= first + 1 else f"{first} to {end - 1}"
    if topic == OFFSETS_TOPIC:
        return f"committed offsets and members of groups in {place}, written at {span}, are lost"
    if topic == TRANSACTIONS_TOPIC:
        return f"states of transactional ids in {place}, written at {span}, are lost"
    if topic == SHARE_STATE_TOPIC:
        return f"what share groups are done with, in {place}, written at {span}, is lost"
    return f"records {span} of {place} are lost"
