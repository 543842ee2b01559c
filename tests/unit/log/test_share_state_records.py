"""Records of the share coordinator: the bytes and the text that Kafka 4.3.1 has for them."""

from base64 import b64decode

import pytest

from coordinator_sim.errors import WireFormatError
from coordinator_sim.log.dump_text import dump_segment, share_state_contents
from coordinator_sim.log.format.record_batches import Record, batch_of, encode_record_batch
from coordinator_sim.log.format.share_state_records import decode_share_state, encode_share_state
from coordinator_sim.messages.share_state_records import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareStateKey,
    ShareStateValue,
    ShareUpdateKey,
    ShareUpdateValue,
    StateBatch,
)

KNOWN: tuple[tuple[ShareStateKey, ShareStateValue | None, str, str | None], ...] = (
    # Written by Kafka 4.4.0's own classes; `keyBytes` and `valueBytes` of the oracle's records.
    (
        ShareSnapshotKey(
            group_id="g",
            topic_id=b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xb4",
            partition=0,
        ),
        ShareSnapshotValue(
            snapshot_epoch=8,
            state_epoch=1,
            leader_epoch=0,
            start_offset=10,
            delivery_complete_count=0,
            create_timestamp=1425026,
            write_timestamp=1425026,
            state_batches=(
                StateBatch(first_offset=12, last_offset=14, delivery_state=0, delivery_count=1),
                StateBatch(first_offset=29, last_offset=33, delivery_state=0, delivery_count=1),
            ),
        ),
        "AAAAAWcAAAAAAAAAAAAAAAAAAAC0AAAAAA==",
        "AAAAAAAIAAAAAQAAAAAAAAAAAAAACgAAAAAAFb6CAAAAAAAVvoIDAAAAAAAAAAwAAAAAAAAADgAAAQAAAAAAAAAAHQAAAAAAAAAhAAABAAEABAAAAAA=",
    ),
    (
        ShareSnapshotKey(
            group_id="g",
            topic_id=b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xb4",
            partition=1,
        ),
        None,
        "AAAAAWcAAAAAAAAAAAAAAAAAAAC0AAAAAQ==",
        None,
    ),
    (
        ShareUpdateKey(
            group_id="größe",
            topic_id=b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xb4",
            partition=2,
        ),
        ShareUpdateValue(
            snapshot_epoch=0,
            leader_epoch=0,
            start_offset=5,
            delivery_complete_count=-1,
            state_batches=(
                StateBatch(first_offset=9, last_offset=11, delivery_state=2, delivery_count=1),
                StateBatch(first_offset=26, last_offset=30, delivery_state=0, delivery_count=1),
            ),
        ),
        "AAEAB2dyw7bDn2UAAAAAAAAAAAAAAAAAAAC0AAAAAg==",
        "AAAAAAAAAAAAAAAAAAAAAAAFAwAAAAAAAAAJAAAAAAAAAAsCAAEAAAAAAAAAABoAAAAAAAAAHgAAAQAA",
    ),
)
TEXT = """\
Dumping /tmp/sg/00000000000000000000.log
Log starting offset: 0
baseOffset: 0 lastOffset: 2 count: 3 baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 partitionLeaderEpoch: -1 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty position: 0 CreateTime: 5 size: 245 magic: 2 compresscodec: none crc: 2426559738 isvalid: true
| offset: 0 CreateTime: 5 keySize: 25 valueSize: 66 sequence: -1 headerKeys: [] key: {"type":"0","data":{"groupId":"g","topicId":"AAAAAAAAAAAAAAAAAAAAAA","partition":1}} payload: {"version":"0","data":{"snapshotEpoch":0,"stateEpoch":1,"leaderEpoch":2,"startOffset":3,"deliveryCompleteCount":4,"createTimestamp":5,"writeTimestamp":6,"stateBatches":[{"firstOffset":1,"lastOffset":2,"deliveryState":0,"deliveryCount":1}]}}
| offset: 1 CreateTime: 5 keySize: 25 valueSize: 20 sequence: -1 headerKeys: [] key: {"type":"1","data":{"groupId":"g","topicId":"AAAAAAAAAAAAAAAAAAAAAA","partition":1}} payload: {"version":"0","data":{"snapshotEpoch":0,"leaderEpoch":1,"startOffset":2,"stateBatches":[]}}
| offset: 2 CreateTime: 5 keySize: 25 valueSize: -1 sequence: -1 headerKeys: [] key: {"type":"0","data":{"groupId":"g","topicId":"AAAAAAAAAAAAAAAAAAAAAA","partition":1}} payload: <DELETE>
"""  # noqa: E501 - lines as they are printed
"""What `kafka-dump-log --share-group-state-decoder` of 4.3.1 prints."""


@pytest.mark.parametrize(("key", "value", "key_bytes", "value_bytes"), KNOWN)
def test_a_record_has_the_bytes_that_kafka_writes(
    key: ShareStateKey, value: ShareStateValue | None, key_bytes: str, value_bytes: str | None
) -> None:
    """Both directions."""
    written = b64decode(key_bytes), None if value_bytes is None else b64decode(value_bytes)
    assert encode_share_state(key, value) == written
    assert decode_share_state(*written) == (key, value)


def test_records_that_kafka_does_not_know() -> None:
    """Another type is passed over; another version of a value is none that can be read."""
    key, _ = encode_share_state(ShareSnapshotKey("g"), None)
    assert decode_share_state(b"\x00\x07" + key[2:], b"\x00\x00") is None
    with pytest.raises(WireFormatError, match="value version 9"):
        decode_share_state(key, b"\x00\x09")
    with pytest.raises(WireFormatError, match="needs 2 bytes"):
        decode_share_state(b"\x00", None)


def test_a_segment_is_printed_as_kafkas_tool_does() -> None:
    """A snapshot, an update without a count, a tombstone."""
    records: tuple[tuple[ShareStateKey, ShareStateValue | None], ...] = (
        (
            ShareSnapshotKey("g", bytes(16), 1),
            ShareSnapshotValue(0, 1, 2, 3, 4, 5, 6, (StateBatch(1, 2, 0, 1),)),
        ),
        (ShareUpdateKey("g", bytes(16), 1), ShareUpdateValue(0, 1, 2)),
        (ShareSnapshotKey("g", bytes(16), 1), None),
    )
    entries = tuple(
        Record(offset=offset, timestamp_ms=5, key=key, value=value)
        for offset, (key, value) in enumerate(encode_share_state(*each) for each in records)
    )
    path = "/tmp/sg/00000000000000000000.log"  # noqa: S108 - a name, as it was given to the tool
    lines = dump_segment(path, encode_record_batch(batch_of(entries)), share_state_contents)
    assert "".join(f"{line}\n" for line in lines) == TEXT


def test_what_cannot_be_read_is_said() -> None:
    """Unknown types, broken values, records without a key."""
    key, _ = encode_share_state(ShareSnapshotKey("g"), None)
    pairs = ((b"\x00\x07" + key[2:], None), (key, b"\x00\x00\x01"), (None, b"x"))
    entries = tuple(
        Record(offset=offset, timestamp_ms=5, key=one, value=value)
        for offset, (one, value) in enumerate(pairs)
    )
    data = encode_record_batch(batch_of(entries))
    told = [
        line.partition("headerKeys: [] ")[2]
        for line in dump_segment("x", data, share_state_contents)
    ]
    assert told[3] == "key: Unknown record type 7 at offset 0, skipping."
    assert told[4].startswith("key: Error at offset 1, skipping. ")
    assert told[5] == "key: none"
