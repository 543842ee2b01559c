"""Exchanges the offsets log between our core and a real broker, in both directions."""

import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.disk.offsets_log import partition_folder, write_log
from coordinator_sim.errors import DataError
from coordinator_sim.harness.group_driver import answer
from coordinator_sim.harness.harness import Harness
from coordinator_sim.kafka.completion import CompleteTransaction
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.log.format.log_batches import DEFAULT_FORM, BatchForm, encode_log
from coordinator_sim.log.format.record_batches import RecordBatch
from coordinator_sim.log.format.segments import SegmentReader, segment_name
from coordinator_sim.messages.embedded.consumer_protocol import (
    encode_assignment,
    encode_subscription,
)
from coordinator_sim.messages.embedded.contents import ConsumerAssignment, Subscription
from coordinator_sim.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from coordinator_sim.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from coordinator_sim.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from coordinator_sim.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from coordinator_sim.messages.records import LogBatch
from coordinator_sim.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from coordinator_sim.messages.txn_offset_commit import TxnOffsetCommitRequest
from coordinator_sim_conformance.real_kafka.kafka import TOOLS_VERSION, Broker, run_java

TOPIC: Final = "orders"
PARTITIONS: Final = 3
"""Number of partitions of `TOPIC`, as OffsetsClient.java creates it."""
OFFSETS_PARTITIONS: Final = 5
"""Number of partitions of `__consumer_offsets` in every round trip; few, for readable folders."""

EAGER_CLEANER: Final = {
    "log.cleaner.min.cleanable.ratio": "0.0",
    "log.cleaner.backoff.ms": "100",
}
"""Settings with which a broker cleans all dirty segments at once."""

PROPERTIES: Final = {"offsets.topic.num.partitions": str(OFFSETS_PARTITIONS)}

_SESSION_TIMEOUT_MS: Final = 300_000
_CLEANING_TIMEOUT_S: Final = 60
_POLL_S: Final = 0.1
_KEPT_FILE: Final = "partition.metadata"
_CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"


class StoredOffset(Struct, frozen=True, order=True):
    """One offset as a client fetches it, from a real broker or from ours."""

    group_id: str
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str


def offset_of(line: str) -> StoredOffset:
    """Parse one line of OffsetsClient.java's `fetch`."""
    group_id, topic, partition, offset, leader_epoch, metadata = line.split("\t")
    return StoredOffset(group_id, topic, int(partition), int(offset), int(leader_epoch), metadata)


def our_broker(start_ms: int) -> Harness:
    """Return a broker of ours with as many offsets partitions as the real one."""
    config = CoordinatorConfig(
        offsets_topic_num_partitions=OFFSETS_PARTITIONS, group_initial_rebalance_delay_ms=0
    )
    return Harness(config, start_ms=start_ms)


def fetched_from(harness: Harness, groups: Sequence[str]) -> list[StoredOffset]:
    """Return all offsets of these groups as a client of ours fetches them; sorted."""
    wanted = tuple(OffsetFetchRequestGroup(group_id=group_id, topics=None) for group_id in groups)
    step = harness.call(OffsetFetchRequest(groups=wanted), api_version=8)
    return sorted(
        StoredOffset(
            group.group_id,
            topic.name,
            found.partition_index,
            found.committed_offset,
            found.committed_leader_epoch,
            found.metadata or "",
        )
        for group in answer(step, OffsetFetchResponse).groups
        for topic in group.topics
        for found in topic.partitions
    )


def loaded(batches: Iterable[LogBatch], start_ms: int) -> Harness:
    """Return a broker of ours that has loaded a log."""
    harness = our_broker(start_ms)
    harness.resign()
    harness.append_batches(batches)
    harness.elect(leader_epoch=2)
    return harness


def live_through_everything(harness: Harness) -> tuple[str, ...]:
    """Give our broker groups with every kind of record in their log; return their ids.

    Among them are a Stable group of two members, offsets without a group, a deleted offset's
    tombstone, and transactions that were committed, aborted and left open.
    """
    leader, generation_id = _stable(harness, "stable", ("c1", "c2"))
    commit(harness, "stable", {0: 5, 1: 6}, member_id=leader, generation_id=generation_id)
    commit(harness, "stable", {0: 17}, member_id=leader, generation_id=generation_id)
    commit(harness, "simple", {0: 100, 2: 300})
    for producer_id, (offset, committed) in enumerate(((40, True), (50, False), (60, None))):
        _transaction(harness, "txn", offset, producer_id=1000 + producer_id, committed=committed)
    commit(harness, "txn", {2: 9})
    return ("stable", "simple", "txn")


def commit(
    harness: Harness,
    group_id: str,
    offsets: dict[int, int],
    *,
    member_id: str = "",
    generation_id: int = -1,
) -> None:
    """Commit offsets of `TOPIC` by partition."""
    request = OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation_id,
        member_id=member_id,
        topics=(_topic(offsets),),
    )
    harness.call(request, api_version=9)


def erase(harness: Harness, group_id: str, partition: int) -> None:
    """Delete one offset of `TOPIC`."""
    request = OffsetDeleteRequest(
        group_id=group_id,
        topics=(OffsetDeleteRequestTopic(TOPIC, (OffsetDeleteRequestPartition(partition),)),),
    )
    harness.call(request, api_version=0)


def end_transaction(harness: Harness, group_id: str, *, producer_id: int, committed: bool) -> None:
    """Write the marker of a producer's transaction."""
    end = CompleteTransaction(
        partition=harness.partition_of(group_id),
        producer_id=producer_id,
        producer_epoch=0,
        committed=committed,
    )
    harness.complete_transaction(end)


def place_log(
    broker: Broker, batches: Iterable[LogBatch], form: BatchForm = DEFAULT_FORM
) -> list[Path]:
    """Write these batches as the offsets log of a stopped broker; return the files written.

    Everything except the topic's id is removed from the partitions' folders, and so is the mark of
    a clean shutdown, so that the broker recovers the segments and rebuilds indexes and epochs.
    """
    (broker.data / _CLEAN_SHUTDOWN).unlink(missing_ok=True)
    for partition in range(OFFSETS_PARTITIONS):
        for path in (broker.data / partition_folder(partition)).iterdir():
            if path.name != _KEPT_FILE:
                path.unlink()
    return write_log(broker.data, batches, form)


def cleaned_by(broker: Broker, batches: Sequence[LogBatch]) -> list[RecordBatch]:
    """Return what the log cleaner of a stopped broker makes of batches of one partition.

    The last batch becomes the active segment, which no cleaner touches. The broker is started, and
    stopped again when the first segment has changed.

    Raises:
        DataError: the segment stays unchanged for longer than a cleaner needs.
    """
    place_log(broker, ())
    folder = broker.data / partition_folder(batches[0].partition)
    *closed, active = encode_log(batches)
    first = folder / segment_name(closed[0].base_offset)
    first.write_bytes(b"".join(batch.data for batch in closed))
    (folder / segment_name(active.base_offset)).write_bytes(active.data)
    before = first.stat().st_ino
    broker.start()
    deadline_s = time.monotonic() + _CLEANING_TIMEOUT_S
    while first.stat().st_ino == before:
        if time.monotonic() > deadline_s:
            raise DataError(f"{first}: not cleaned within {_CLEANING_TIMEOUT_S} s")
        time.sleep(_POLL_S)
    broker.stop()
    return decoded_segment(first.read_bytes())


def decoded_segment(data: bytes) -> list[RecordBatch]:
    """Return the batches of one segment.

    Raises:
        CorruptSegmentError: the batches end before the segment does.
    """
    reader = SegmentReader(data)
    batches = [stored.decoded() for stored in reader]
    reader.require_whole()
    return batches


def dump_by_kafka(files: Sequence[Path]) -> tuple[str, str]:
    """Return kafka-dump-log's output for segments: standard output and errors."""
    names = ",".join(map(str, files))
    tool = "org.apache.kafka.tools.DumpLogSegments"
    done = run_java(TOOLS_VERSION, tool, "--offsets-decoder", "--files", names)
    return done.stdout, done.stderr


def _topic(offsets: dict[int, int]) -> OffsetCommitRequestTopic:
    partitions = tuple(
        OffsetCommitRequestPartition(partition, offset, 0, committed_metadata=f"at {offset}")
        for partition, offset in offsets.items()
    )
    return OffsetCommitRequestTopic(TOPIC, partitions=partitions)


def _transaction(
    harness: Harness, group_id: str, offset: int, *, producer_id: int, committed: bool | None
) -> None:
    request = TxnOffsetCommitRequest(
        transactional_id=f"tx-{producer_id}",
        group_id=group_id,
        producer_id=producer_id,
        producer_epoch=0,
        topics=(_topic({1: offset}),),
    )
    harness.call(request, api_version=3)
    if committed is not None:
        end_transaction(harness, group_id, producer_id=producer_id, committed=committed)


def _stable(harness: Harness, group_id: str, clients: tuple[str, str]) -> tuple[str, int]:
    """Create a Stable consumer group of two members; return its leader and generation."""
    first, second = (_admitted_id(harness, group_id, client) for client in clients)
    _join(harness, group_id, clients[0], first)
    _join(harness, group_id, clients[1], second)
    rejoined = _join(harness, group_id, clients[0], first)
    owned = {first: (0, 1), second: (2,)}
    assignments = tuple(
        SyncGroupRequestAssignment(
            member_id,
            encode_assignment(
                ConsumerAssignment(partitions=tuple(TopicPartition(TOPIC, p) for p in partitions))
            ),
        )
        for member_id, partitions in owned.items()
    )
    for member_id in (first, second):
        request = SyncGroupRequest(
            group_id=group_id,
            generation_id=rejoined.generation_id,
            member_id=member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=assignments if member_id == first else (),
        )
        harness.call(request, api_version=5)
    return first, rejoined.generation_id


def _admitted_id(harness: Harness, group_id: str, client_id: str) -> str:
    """Return the id that MEMBER_ID_REQUIRED gives."""
    return _join(harness, group_id, client_id, "").member_id


def _join(harness: Harness, group_id: str, client_id: str, member_id: str) -> JoinGroupResponse:
    """Send a JoinGroup; a parked one is answered with another member's."""
    subscription = encode_subscription(Subscription(topics=(TOPIC,)))
    request = JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=_SESSION_TIMEOUT_MS,
        rebalance_timeout_ms=_SESSION_TIMEOUT_MS,
        member_id=member_id,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol("range", subscription),),
    )
    step = harness.call(request, api_version=9, client_id=client_id)
    response = step.response
    return (
        response
        if isinstance(response, JoinGroupResponse)
        else JoinGroupResponse(protocol_name=None)
    )
