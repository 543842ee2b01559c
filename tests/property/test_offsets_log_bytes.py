"""The offsets log as bytes: nothing is lost, nothing breaks, cleaning changes no state."""

from contextlib import suppress

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.errors import WireFormatError
from coordinator_sim.harness.group_driver import answer
from coordinator_sim.harness.harness import Harness
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.log.compaction import CleaningPass, compacted
from coordinator_sim.log.dump_text import dump_segment
from coordinator_sim.log.format import log_batches
from coordinator_sim.log.format.compression import Compression
from coordinator_sim.log.format.record_batches import encode_record_batch
from coordinator_sim.log.format.segments import SegmentReader
from coordinator_sim.messages import offset_fetch
from coordinator_sim.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from coordinator_sim.messages.records import (
    EndTransactionMarker,
    LogBatch,
    LogRecord,
    OpaqueKey,
    OpaqueValue,
)
from coordinator_sim.messages.schema import ZERO_UUID

pytestmark = pytest.mark.property

GROUPS = ("g", "é" * 30, "")
DAY_MS = 86_400_000

names = st.text(max_size=12)
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
times_ms = st.integers(-1, 2**45)
blobs = st.binary(max_size=20)

offset_keys = st.builds(
    OffsetCommitKey, st.sampled_from(GROUPS), st.sampled_from(("t", "u")), st.integers(0, 2)
)
group_keys = st.builds(GroupMetadataKey, st.sampled_from(GROUPS))
members = st.builds(
    MemberMetadata,
    member_id=names,
    group_instance_id=st.none() | names,
    client_id=names,
    client_host=names,
    rebalance_timeout=int32,
    session_timeout=st.integers(6_000, 60_000),
    subscription=blobs,
    assignment=blobs,
)
group_values = st.builds(
    GroupMetadataValue,
    protocol_type=names,
    generation=st.integers(0, 2**31 - 1),
    protocol=st.none() | names,
    leader=st.none() | names,
    current_state_timestamp=times_ms,
    members=st.lists(members, max_size=3, unique_by=lambda one: one.member_id).map(tuple),
)
topic_ids = st.just(ZERO_UUID) | st.binary(min_size=16, max_size=16).filter(any)


@st.composite
def offset_records(draw: st.DrawFn) -> LogRecord:
    """An offset, or its tombstone, in a version that has all its fields."""
    key = draw(offset_keys)
    if draw(st.booleans()):
        return LogRecord(key, None, 0)
    version = draw(st.sampled_from((1, 3, 4)))
    value = OffsetCommitValue(
        offset=draw(int64),
        leader_epoch=draw(int32) if version >= 3 else -1,
        metadata=draw(names),
        commit_timestamp=draw(times_ms),
        expire_timestamp=draw(times_ms) if version == 1 else -1,
        topic_id=draw(topic_ids) if version == 4 else ZERO_UUID,
    )
    return LogRecord(key, value, version, legacy_key=version == 1 and draw(st.booleans()))


group_records = st.builds(LogRecord, group_keys, group_values, st.sampled_from((3, 4))) | st.builds(
    LogRecord, group_keys, st.none(), st.just(0)
)
foreign_records = st.builds(
    lambda version, body: LogRecord(OpaqueKey(version, body), OpaqueValue(b"\x00\x00" + body), 0),
    st.integers(3, 2**15 - 1),
    blobs,
)
plain_records = st.lists(offset_records() | group_records | foreign_records, min_size=1, max_size=5)
Step = tuple[str, int, tuple[LogRecord, ...]]
steps = st.lists(
    st.tuples(st.just("plain"), st.just(-1), plain_records.map(tuple))
    | st.tuples(
        st.just("txn"),
        st.integers(1, 2),
        # Tombstones are never part of a transaction.
        st.lists(offset_records().filter(lambda one: one.value), min_size=1, max_size=3).map(tuple),
    )
    | st.tuples(st.sampled_from(("commit", "abort")), st.integers(1, 2), st.just(())),
    max_size=14,
)


def log_of(script: list[Step], *, closed: bool = False) -> list[LogBatch]:
    """The batches of a script; a transaction left open is aborted where `closed` says so."""
    if closed:
        script = [*script, ("abort", 1, ()), ("abort", 2, ())]
    log: list[LogBatch] = []
    for kind, producer_id, records in script:
        ends = kind in ("commit", "abort")
        log.append(
            LogBatch(
                partition=0,
                base_offset=log[-1].next_offset if log else 0,
                timestamp_ms=1_700_000_000_000,
                records=records,
                producer_id=producer_id,
                producer_epoch=0 if producer_id > 0 else -1,
                transactional=producer_id > 0,
                marker=EndTransactionMarker(committed=kind == "commit") if ends else None,
                control=ends,
            )
        )
    return log


@given(steps, st.sampled_from(Compression), st.integers(-1, 2**31 - 1))
def test_a_log_survives_its_bytes(
    script: list[Step], codec: Compression, leader_epoch: int
) -> None:
    """Whatever can be stored reads back the same, and its text can be printed."""
    log = log_of(script)
    form = log_batches.BatchForm(compression=codec, leader_epoch=leader_epoch)
    data = b"".join(log_batches.encode_batch(batch, form) for batch in log)

    assert list(log_batches.decode_batches(data, 0)) == log
    assert sum(1 for _ in dump_segment("x", data)) == 2 + sum(
        1 + (batch.next_offset - batch.base_offset) for batch in log
    )


def fetched(log: list[LogBatch], profile: str) -> tuple[offset_fetch.OffsetFetchResponseGroup, ...]:
    """All offsets of the groups, from a broker that loads the log; topics and offsets sorted."""
    config = CoordinatorConfig(offsets_topic_num_partitions=1)
    harness = Harness(config, profile_named(profile), elect=False, start_ms=1_700_000_000_000)
    harness.append_batches(log)
    harness.elect()
    wanted = tuple(
        offset_fetch.OffsetFetchRequestGroup(group_id=group_id, topics=None) for group_id in GROUPS
    )
    reply = answer(
        harness.call(offset_fetch.OffsetFetchRequest(groups=wanted), api_version=8),
        offset_fetch.OffsetFetchResponse,
    )
    return reply.groups


def flat(groups: tuple[offset_fetch.OffsetFetchResponseGroup, ...]) -> list[tuple[object, ...]]:
    """The same without the order of maps."""
    return sorted(
        (
            group.group_id,
            topic.name,
            one.partition_index,
            one.committed_offset,
            one.committed_leader_epoch,
            one.metadata,
        )
        for group in groups
        for topic in group.topics
        for one in topic.partitions
    )


def deletes_what_is_pending(script: list[Step]) -> bool:
    """Whether a tombstone comes between an offset of a transaction and the transaction's end.

    The cleaner then drops the offset for the tombstone's sake, also in Kafka; a load without
    cleaning brings the offset back with the end of the transaction.
    """
    pending: dict[int, set[object]] = {}
    for kind, producer_id, records in script:
        if kind == "txn":
            pending.setdefault(producer_id, set()).update(one.key for one in records)
        elif kind != "plain":
            pending.pop(producer_id, None)
        elif any(
            one.value is None and one.key in keys for keys in pending.values() for one in records
        ):
            return True
    return False


@given(steps, st.lists(st.integers(0, 3 * DAY_MS), min_size=1, max_size=3))
def test_cleaning_does_not_change_the_loaded_offsets(
    script: list[Step], after_ms: list[int]
) -> None:
    """OLOAD-020 over bytes: with transactions, any number of passes, any time apart."""
    offsets_only = [
        (kind, producer, tuple(one for one in records if isinstance(one.key, OffsetCommitKey)))
        for kind, producer, records in script
    ]
    # Two versions of a key are two keys to the cleaner, whose tombstones go on their own.
    one_version = [
        (kind, producer, tuple(LogRecord(r.key, r.value, r.value_version) for r in records))
        for kind, producer, records in offsets_only
        if records or kind != "plain"
    ]
    assume(not deletes_what_is_pending(one_version))
    log = log_of([step for step in one_version if step[2] or step[0] != "txn"], closed=True)
    stored = [
        one.decoded()
        for batch in log
        for one in SegmentReader(log_batches.encode_batch(batch, log_batches.BatchForm()))
    ]
    now_ms = 1_700_000_000_000
    for wait_ms in after_ms:
        now_ms += wait_ms
        stored = compacted(stored, CleaningPass(now_ms=now_ms))
    data = b"".join(map(encode_record_batch, stored))
    cleaned = [batch for one in SegmentReader(data) for batch in log_batches.log_batches_of(one, 0)]

    for profile in ("4.4", "3.9"):
        assert flat(fetched(cleaned, profile)) == flat(fetched(log, profile))
    assert (cleaned[-1].next_offset if cleaned else 0) == log[-1].next_offset


@given(steps, st.sampled_from(Compression), st.data())
def test_hostile_bytes_raise_one_kind_of_error(
    script: list[Step], codec: Compression, data: st.DataObject
) -> None:
    """Altered, cut or random segments: refused or read, never anything else."""
    whole = bytearray(
        b"".join(
            log_batches.encode_batch(batch, log_batches.BatchForm(compression=codec))
            for batch in log_of(script)
        )
    )
    for _ in range(data.draw(st.integers(0, 4))):
        if whole:
            at = data.draw(st.integers(0, len(whole) - 1))
            whole[at] = data.draw(st.integers(0, 255))
    altered = bytes(whole[: data.draw(st.integers(0, len(whole)))]) + data.draw(blobs)

    list(dump_segment("x", altered))
    for stored in SegmentReader(altered, check_crc=False):
        with suppress(WireFormatError):
            list(log_batches.log_batches_of(stored, 0))


@given(
    st.lists(
        st.builds(
            LogRecord,
            st.builds(OffsetCommitKey, names, st.sampled_from(("t", "u")), int32),
            st.builds(
                OffsetCommitValue,
                offset=int64,
                leader_epoch=int32,
                metadata=st.sampled_from(("", "", "m")),
                commit_timestamp=int64,
                topic_id=st.sampled_from((ZERO_UUID, b"i" * 16)),
            ),
            st.integers(1, 4),
        ),
        min_size=1,
        max_size=80,
    ),
    st.booleans(),
)
def test_commits_packed_by_hand_are_the_general_bytes(
    records: list[LogRecord], transactional: bool
) -> None:
    """Whatever is committed; times of their own keep records from the packer."""
    batch = LogBatch(
        partition=0,
        base_offset=5,
        timestamp_ms=77,
        records=tuple(records),
        producer_id=3 if transactional else -1,
        producer_epoch=1 if transactional else -1,
        transactional=transactional,
    )
    in_general = replace(batch, record_times_ms=(77,) * len(records))
    assert log_batches.encode_batch(batch) == log_batches.encode_batch(in_general)
