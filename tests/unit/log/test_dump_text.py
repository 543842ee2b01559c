"""The text of a segment: equal to what kafka-dump-log prints."""

from base64 import b64encode
from pathlib import Path

import pytest
from msgspec.structs import replace

from coordinator_sim.log.dump_text import dump_segment
from coordinator_sim.log.format.compression import Compression
from coordinator_sim.log.format.offsets_records import encode_key, encode_value
from coordinator_sim.log.format.record_batches import (
    Record,
    TimestampType,
    batch_of,
    encode_record_batch,
)
from coordinator_sim.messages import group_records

GOLDEN = Path(__file__).parent / "golden" / "offsets-log-4.4.0"
NAME = "00000000000000000000.log"
NOW_MS = 1_700_000_000_000
KEY = encode_key(group_records.OffsetCommitKey("grp", "foo", 3))


def test_segments_of_a_real_broker_are_printed_as_its_own_tool_does() -> None:
    """Groups, offsets, tombstones, transactions and markers of Kafka 4.4.0, line by line."""
    paths = sorted(GOLDEN.glob("*/*.log"))

    lines = [
        line
        for path in paths
        for line in dump_segment(str(path.relative_to(GOLDEN)), path.read_bytes())
    ]

    assert lines == (GOLDEN / "dump.txt").read_text(encoding="utf-8").splitlines()


def record(key: bytes | None, value: bytes | None = None, offset: int = 42) -> Record:
    """A record at one time."""
    return Record(offset=offset, timestamp_ms=NOW_MS, key=key, value=value)


def contents(key: bytes | None, value: bytes | None = None, **settings: object) -> str:
    """What is printed of a record after its headers."""
    data = encode_record_batch(batch_of((record(key, value),), **settings))
    return list(dump_segment(NAME, data))[-1].partition("headerKeys: [] ")[2]


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        (None, b"", "key: none"),
        (b"\x7f\xff", b"", "key: Unknown record type 32767 at offset 42, skipping."),
        (b"\x00\x10ab", b"\x00\x00c", 'key: {"type":"16","data":"YWI="} payload: '),
        (b"\x00\x00" + KEY[2:], None, 'key: {"type":"0","data":{"group":"grp",'),
        (
            KEY,
            b"\x00\x64",
            "key: Error at offset 42, skipping. OffsetCommitValue: value version 100 is",
        ),
    ],
)
def test_records_that_are_not_plain_say_what_they_are(
    key: bytes | None, value: bytes | None, text: str
) -> None:
    """Foreign, unknown and wrong records do not stop the printing."""
    assert contents(key, value).startswith(text)


def test_values_show_the_fields_of_their_version() -> None:
    """An explicit expiry in version 1; control characters with upper-case digits as Jackson has."""
    value = group_records.OffsetCommitValue(
        offset=5, metadata='\x1f"\\u001f', commit_timestamp=7, expire_timestamp=9
    )

    assert contents(KEY, encode_value(value, 1)).endswith(
        'payload: {"version":"1","data":{"offset":5,"metadata":"\\u001F\\"\\\\u001f",'
        '"commitTimestamp":7,"expireTimestamp":9}}'
    )


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        (b"\x00\x00\x00\x00", bytes(6), "endTxnMarker: ABORT coordinatorEpoch: 0"),
        (b"\x00\x00\x00\x63", b"", "controlType: UNKNOWN(99)"),
        (b"\x00", b"", "control record: a key of 1 bytes"),
    ],
)
def test_control_records_say_how_a_transaction_ended(key: bytes, value: bytes, text: str) -> None:
    """Others name their type."""
    assert text in contents(key, value, control=True, transactional=True)


def test_old_messages_say_their_own_checksum() -> None:
    """Before magic 2: no sequence and no headers; the batch line starts with its last offset."""
    value = encode_value(group_records.OffsetCommitValue(offset=1_234_567, metadata="meta"), 0)
    plain = batch_of((record(KEY, value),), magic=1, timestamp_type=TimestampType.LOG_APPEND_TIME)
    pair = (record(KEY, None, 43), record(KEY, None, 44))
    wrapped = batch_of(pair, magic=0, compression=Compression.GZIP, max_timestamp_ms=-1)

    lines = list(dump_segment(NAME, encode_record_batch(plain) + encode_record_batch(wrapped)))

    assert lines[2].startswith(f"offset: 42 position: 0 LogAppendTime: {NOW_MS} size: 74 magic: 1")
    assert lines[3].startswith(
        f"| offset: 42 LogAppendTime: {NOW_MS} keySize: 16 valueSize: 24 isValid: true crc: "
    )
    assert lines[4].startswith("offset: 44 position: 74 NoTimestampType: -1 size: ")
    assert [line[:40] for line in lines[5:]] == [
        "| offset: 43 NoTimestampType: -1 keySize",
        "| offset: 44 NoTimestampType: -1 keySize",
    ]


def test_damage_is_printed_where_it_is() -> None:
    """A wrong CRC and wrong records in place, a cut tail at the end, a foreign file name."""
    good = encode_record_batch(batch_of((record(KEY),)))
    wrong = bytearray(good)
    wrong[22] = 0x07
    data = bytes(wrong) + good + good[:20]

    lines = list(dump_segment("/x/copy.log", data))

    assert lines[1] == "Log starting offset: unknown, copy.log is no segment's name"
    assert "compresscodec: unknown(7)" in lines[2]
    assert lines[2].endswith("isvalid: false")
    assert lines[3] == "| records do not parse: record batch: compression 7 (at byte 0)"
    assert lines[-1] == "Found 20 invalid bytes at the end of copy.log"


def test_sequences_start_again_after_the_largest() -> None:
    """The delete horizon is shown; sequences wrap at 2^31."""
    batch = batch_of(
        (record(KEY, None, 1), record(KEY, None, 2)),
        base_sequence=2**31 - 1,
        has_delete_horizon=True,
        base_timestamp_ms=77,
    )

    lines = list(dump_segment(NAME, encode_record_batch(batch)))

    assert "lastSequence: 0 " in lines[2]
    assert "deleteHorizonMs: OptionalLong[77]" in lines[2]
    assert "sequence: 2147483647" in lines[3]
    assert "sequence: 0 " in lines[4]


@pytest.mark.parametrize(
    ("blob", "text"),
    [
        (b"", '"subscription":""'),
        (b"\x00\x01\x00", '"subscription":"AAEA"'),
        (b"\x00\x00" + bytes(4) + b"\x00\x00\x00\x02hi", '{"topics":[],"userData":"aGk="}'),
        (b"\x00\x01" + bytes(12), '"userData":"","ownedPartitions":[]}'),
        (b"\x00\x02" + bytes(16), '"ownedPartitions":[],"generationId":0}'),
        (b"\x00\x03" + bytes(18), '"generationId":0,"rackId":""}'),
    ],
)
def test_subscriptions_are_shown_by_their_version(blob: bytes, text: str) -> None:
    """What does not parse stays base64, and so does any blob of another protocol type."""
    member = group_records.MemberMetadata(
        member_id="m",
        group_instance_id=None,
        client_id="c",
        client_host="/h",
        rebalance_timeout=1,
        session_timeout=2,
        subscription=blob,
        assignment=b"",
    )
    value = group_records.GroupMetadataValue(
        protocol_type="consumer", generation=1, protocol="range", leader="m", members=(member,)
    )
    key = encode_key(group_records.GroupMetadataKey("g"))

    assert text in contents(key, encode_value(value, 3))
    connect = replace(value, protocol_type="connect")
    assert f'"subscription":"{b64encode(blob).decode()}"' in contents(key, encode_value(connect, 0))
