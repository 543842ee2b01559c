"""The messages of WriteTxnMarkers.

Written by tools/write_messages.py from schemas/WriteTxnMarkers.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class WritableTxnMarkerTopic(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    name: str = ""
    partition_indexes: tuple[int, ...] = ()


class WritableTxnMarker(Struct, frozen=True, gc=False):
    """An entry of `markers`."""

    producer_id: int = 0
    producer_epoch: int = 0
    transaction_result: bool = False
    topics: tuple[WritableTxnMarkerTopic, ...] = ()
    coordinator_epoch: int = 0
    transaction_version: int = 0


class WriteTxnMarkersRequest(Struct, frozen=True, gc=False):
    """WriteTxnMarkersRequest of versions 0 to 2."""

    api_key: ClassVar[ApiKey] = ApiKey.WRITE_TXN_MARKERS
    markers: tuple[WritableTxnMarker, ...] = ()


class WritableTxnMarkerPartitionResult(Struct, frozen=True, gc=False):
    """An entry of `partitions`."""

    partition_index: int = 0
    error_code: ErrorCode = ErrorCode.NONE


class WritableTxnMarkerTopicResult(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    name: str = ""
    partitions: tuple[WritableTxnMarkerPartitionResult, ...] = ()


class WritableTxnMarkerResult(Struct, frozen=True, gc=False):
    """An entry of `markers`."""

    producer_id: int = 0
    topics: tuple[WritableTxnMarkerTopicResult, ...] = ()


class WriteTxnMarkersResponse(Struct, frozen=True, gc=False):
    """WriteTxnMarkersResponse of versions 0 to 2."""

    api_key: ClassVar[ApiKey] = ApiKey.WRITE_TXN_MARKERS
    markers: tuple[WritableTxnMarkerResult, ...] = ()
