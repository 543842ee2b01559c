"""What a damaged log directory has lost, in the words of its user.

A loss is something that a client was told is stored and that is not there any more. What Kafka
mends by itself is no loss; `RecoveryReport` tells of that.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from coordinator_sim.errors import ConfigError
from coordinator_sim.protocol.partitioning import OFFSETS_TOPIC

TRANSACTIONS_TOPIC: Final = "__transaction_state"
WHOLE_TOPICS: Final = (OFFSETS_TOPIC, TRANSACTIONS_TOPIC)
"""Topics that coordinators read whole when they load: all of their batches are checked."""


class Loss(Struct, frozen=True, kw_only=True):
    """Acknowledged data that is not there.

    Args:
        path: File or folder that shows it.
        finding: What is wrong with that, as "is gone".
        meaning: What that means to whoever relied on it.
    """

    path: str
    finding: str
    meaning: str

    def line(self) -> str:
        """One line for a log or a message."""
        return f"{self.path} {self.finding}: {self.meaning}"


class LossError(ConfigError):
    """Acknowledged data is missing, and nobody has said to go on without it."""


def refusal(path: str, losses: Sequence[Loss]) -> LossError:
    """The error of a start that is refused; its message names every loss.

    Args:
        path: Of the directory.
        losses: At least one.
    """
    lines = "".join(f"\n  {loss.line()}" for loss in losses)
    return LossError(
        f"{path} has lost data that was acknowledged:{lines}\n"
        "Put the files back from a copy, or give --accept-loss to go on without what is lost; "
        "damaged bytes are then kept beside, in files that end in .damaged"
    )


def meaning_of(topic: str, partition: int, first: int, end: int) -> str:
    """What it means that offsets of a partition are not there.

    Args:
        topic: Name.
        partition: Number.
        first: First offset that is lost.
        end: Past the last one; the log's end where it is not known, then equal to `first`.
    """
    place = f"{topic}-{partition}"
    span = f"from {first} on" if end <= first + 1 else f"{first} to {end - 1}"
    if topic == OFFSETS_TOPIC:
        return f"committed offsets and members of groups in {place}, written at {span}, are lost"
    if topic == TRANSACTIONS_TOPIC:
        return f"states of transactional ids in {place}, written at {span}, are lost"
    return f"records {span} of {place} are lost"
