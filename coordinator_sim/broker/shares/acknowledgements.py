"""What a request acknowledges: read, and checked before any share partition is asked.

Source: kafka 4.3.1, KafkaApis.getAcknowledgeBatchesFromShareFetchRequest,
getAcknowledgeBatchesFromShareAcknowledgeRequest and validateAcknowledgementBatches.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from coordinator_sim.broker.records.fetch_sessions import FetchPlace
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.share_acknowledge import (
    AcknowledgementBatch,
    AcknowledgeTopic,
)
from coordinator_sim.messages.share_acknowledge import PartitionData as AcknowledgedPartition
from coordinator_sim.messages.share_fetch import AcknowledgementBatch as FetchAcknowledgementBatch
from coordinator_sim.messages.share_fetch import FetchTopic

RENEW: Final = 4
"""The type of an acknowledgement that only prolongs the lock, from version 2 on."""
_REJECT: Final = 3

Batch = AcknowledgementBatch | FetchAcknowledgementBatch
"""Records in a row, with one type for all of them or one for each."""
Batches = dict[FetchPlace, tuple[Batch, ...]]
"""By partition, in the order of the request."""
Outcomes = dict[FetchPlace, AcknowledgedPartition]
"""What became of the acknowledgements of each partition."""


class Renewal(NamedTuple):
    """Whether a request may renew locks.

    Args:
        is_known: Its version knows of it.
        is_said: It says that it does.
    """

    is_known: bool
    is_said: bool


@dataclass(slots=True)
class Acknowledgements:
    """What a request acknowledges.

    Attributes:
        batches: Of partitions whose topics are known.
        refused: The others, and those that make no sense.
    """

    batches: Batches = field(default_factory=dict)
    refused: Outcomes = field(default_factory=dict)


def outcome(
    place: FetchPlace, error: ErrorCode = ErrorCode.NONE, text: str | None = None
) -> AcknowledgedPartition:
    """What became of one partition."""
    return AcknowledgedPartition(
        partition_index=place.partition, error_code=error, error_message=text
    )


def acknowledgements_of(
    topics: Iterable[FetchTopic | AcknowledgeTopic],
    topic_names: Mapping[bytes, str],
    renewal: Renewal,
) -> Acknowledgements:
    """Read what a request acknowledges, and check it by itself.

    Args:
        topics: Of the request.
        topic_names: By topic id.
        renewal: Whether locks may be renewed.
    """
    read = Acknowledgements()
    for topic in topics:
        name = topic_names.get(topic.topic_id)
        for partition in topic.partitions:
            place = FetchPlace(topic.topic_id, name, partition.partition_index)
            batches = partition.acknowledgement_batches
            if name is None:
                read.refused[place] = outcome(place, ErrorCode.UNKNOWN_TOPIC_ID)
            elif _make_sense(batches, renewal):
                read.batches[place] = batches
            else:
                read.refused[place] = outcome(place, ErrorCode.INVALID_REQUEST)
    return read


def _make_sense(batches: Iterable[Batch], renewal: Renewal) -> bool:
    """Whether batches are in order, and their types known and as many as there must be."""
    highest = RENEW if renewal.is_known else _REJECT
    last_offset = -1
    for batch in batches:
        types = batch.acknowledge_types
        count = batch.last_offset - batch.first_offset + 1
        if count < 1 or batch.first_offset < last_offset:
            return False
        if not types or (len(types) > 1 and count != len(types)):
            return False
        kinds = set(types)
        if not all(0 <= each <= highest for each in kinds):
            return False
        if RENEW in kinds and not renewal.is_said:
            return False
        last_offset = batch.last_offset
    return True
