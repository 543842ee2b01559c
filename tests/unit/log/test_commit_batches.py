"""Commits packed by hand are the bytes that the general writer makes."""

from msgspec.structs import replace

from coordinator_sim.log.format.log_batches import BatchForm, encode_batch, usual_commit_records
from coordinator_sim.messages import group_records
from coordinator_sim.messages.records import LogBatch, LogRecord

NOW_MS = 1_763_755_200_000
TOPIC_ID = bytes(range(16))


def commit(*topics: str, partitions: int = 10, version: int = 4, **value: object) -> LogBatch:
    """Offsets of these topics, committed together."""
    fields = {"offset": 7, "leader_epoch": 3, "commit_timestamp": NOW_MS, **value}
    return LogBatch(
        partition=3,
        base_offset=1_000,
        timestamp_ms=NOW_MS,
        records=tuple(
            LogRecord(
                group_records.OffsetCommitKey("g", topic, index),
                group_records.OffsetCommitValue(**fields),  # type: ignore[arg-type] # the caller's
                version,
            )
            for topic in topics
            for index in range(partitions)
        ),
    )


def in_general(batch: LogBatch, form: BatchForm) -> bytes:
    """A batch whose records have times of their own is not the packer's, though all are equal."""
    times = (batch.timestamp_ms,) * len(batch.records)
    return encode_batch(replace(batch, record_times_ms=times), form)


def test_every_usual_form_has_the_general_bytes() -> None:
    """Both versions, with and without a topic's id, of one topic and several, in a transaction."""
    usual = [
        commit("t"),
        commit("t", version=3),
        commit("t", topic_id=TOPIC_ID),
        commit("t", topic_id=bytes(16)),
        commit("t", "a topic of a longer name", "ü" * 80, partitions=20),
        commit("t", partitions=64),
        commit("t", offset=2**63 - 1, leader_epoch=-1),
        replace(commit("t"), transactional=True, producer_id=2**40, producer_epoch=5),
    ]
    form = BatchForm(leader_epoch=9)
    for batch in usual:
        assert usual_commit_records(batch) is not None
        assert encode_batch(batch, form) == in_general(batch, form)


def test_what_is_not_usual_is_left_to_the_general_writer() -> None:
    """Metadata, tombstones, other keys and versions, too many records, none at all."""
    plain = commit("t")
    first = plain.records[0]
    unusual = [
        commit("t", metadata="m"),
        commit("t", version=1),
        commit("t", partitions=65),
        replace(plain, records=()),
        replace(plain, records=(*plain.records, replace(first, value=None))),
        replace(plain, records=(replace(first, legacy_key=True),)),
        replace(plain, records=(first, LogRecord(group_records.GroupMetadataKey("g"), None, 0))),
    ]
    for batch in unusual:
        assert usual_commit_records(batch) is None
