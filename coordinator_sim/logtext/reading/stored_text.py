"""Keys and values of the offsets topic as older tools print them: text, not JSON.

Of a group's record some forms leave out its leader, its times or its assignments; what is left out
is unknown in the record. Hexadecimal assignments lost their leading zeros.

Source: kafka 0.10.2 to 3.9, GroupMetadataManager.scala: OffsetsMessageFormatter,
GroupMetadataMessageFormatter, formatRecordKeyAndValue; DumpLogSegments.scala, OffsetsMessageParser.
"""

import json
import re
from typing import Final

from coordinator_sim.errors import DataError, WireFormatError
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.embedded.connect_protocol import decode_connect_assignment
from coordinator_sim.messages.embedded.consumer_protocol import encode_assignment
from coordinator_sim.messages.embedded.contents import ConsumerAssignment
from coordinator_sim.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from coordinator_sim.messages.records import LogRecord

_UNKNOWN: Final = -1
DELETED: Final = "<DELETE>"
_NO_METADATA: Final = "NO_METADATA"
_PARTITION: Final = re.compile(r"(.+)-(\d{1,9})")
_MEMBER_GIVEN: Final = re.compile(
    r"(?:^|,)([^=\[\],]{1,1000})=(?:\[([^\]]*)\](?::[0-9A-Fa-f]*)?|([0-9A-Fa-f]*))(?=,|$)"
)
_LOST_ZEROS: Final = 6
"""Bytes of zeros that a Connect assignment can begin with: version, error, half a size."""
_OLD_OFFSET: Final = re.compile(
    r"\[OffsetMetadata\[(?P<offset>-?\d+),(?P<metadata>.*)\],"
    r"CommitTime (?P<commit>-?\d+),ExpirationTime (?P<expire>-?\d+)\]$",
    re.DOTALL,
)
_OFFSET: Final = re.compile(
    r"OffsetAndMetadata\(offset=(?P<offset>-?\d+), (?:leaderEpoch=(?P<epoch>[^,]*), )?"
    r"metadata=(?P<metadata>.*), commitTimestamp=(?P<commit>-?\d+), "
    r"expireTimestamp=(?P<expire>[^)]*\)?)\)$",
    re.DOTALL,
)
_DIGITS: Final = re.compile(r"-?\d+")
_OFFSET_LINE: Final = re.compile(
    r"\[(?P<group>.*),(?P<topic>[^,\]]+),(?P<partition>-?\d+)\]::"
    r"(?P<value>NULL$|\[OffsetMetadata\[.*|OffsetAndMetadata\(.*)",
    re.DOTALL,
)
_GROUP_VALUE: Final = re.compile(
    r".*?, generation=(?P<generation>-?\d+), "
    r"protocolType=(?P<type>None|Some\([^)]{0,300}\)), currentState=\w{1,30}, "
    r"members=Map\((?P<members>.*)\)\s*,?\s*\)\s*$",
    re.DOTALL,
)
_GROUP_MARK: Final = "::GroupMetadata(groupId="
_MEMBER: Final = re.compile(
    r"MemberMetadata\(memberId=(?P<id>[^,]{0,1000}), "
    r"(?:groupInstanceId=(?P<instance>[^,]{0,1000}), )?"
    r"clientId=(?P<client>[^,]{0,1000}), clientHost=(?P<host>[^,]{0,300}), "
    r"sessionTimeoutMs=(?P<session>\d+), rebalanceTimeoutMs=(?P<rebalance>\d+)"
)
_NONE: Final = frozenset({"None", "Some(null)", "null", "", None})


# -- what console formatters print -----------------------------------------------------------


def formatter_record(text: str) -> LogRecord | None:
    """Parse one line of a formatter as a record; None for a line of another form.

    Raises:
        DataError: The line begins like a record, and is cut or malformed.
    """
    found = _OFFSET_LINE.match(text)
    if found is not None:
        key = OffsetCommitKey(found["group"], found["topic"], int(found["partition"]))
        value = None if found["value"] == "NULL" else _offset_value(found["value"])
        return LogRecord(key, value, 0)
    text = text.rstrip()
    if text.endswith("::NULL"):
        return LogRecord(GroupMetadataKey(text.removesuffix("::NULL")), None, 0)
    group_id, mark, rest = text.partition(_GROUP_MARK)
    if not mark:
        return None
    told = _GROUP_VALUE.match(rest)
    if told is None:
        raise DataError("a group's metadata that is cut, or of another form")
    kind = told["type"]
    members = tuple(_stored_member(each) for each in _MEMBER.finditer(told["members"]))
    group = GroupMetadataValue(
        protocol_type="" if kind in _NONE else kind[len("Some(") : -1],
        generation=int(told["generation"]),
        protocol=None,
        leader=None,
        members=members,
    )
    return LogRecord(GroupMetadataKey(group_id), group, 0)


def _offset_value(text: str) -> OffsetCommitValue:
    found = _OLD_OFFSET.match(text) or _OFFSET.match(text)
    if found is None:
        raise DataError("an offset that is cut, or of another form")
    told = found.groupdict()
    epoch = _DIGITS.search(told.get("epoch") or "")
    expire = _DIGITS.search(told["expire"] or "")
    metadata = told["metadata"]
    return OffsetCommitValue(
        offset=int(told["offset"]),
        leader_epoch=_UNKNOWN if epoch is None else int(epoch[0]),
        metadata="" if metadata == _NO_METADATA else metadata,
        commit_timestamp=int(told["commit"]),
        expire_timestamp=_UNKNOWN if expire is None else int(expire[0]),
    )


def _stored_member(found: re.Match[str]) -> MemberMetadata:
    instance = found["instance"]
    name = None if instance in _NONE else instance.removeprefix("Some(").removesuffix(")")
    return MemberMetadata(
        member_id=found["id"],
        group_instance_id=name,
        client_id=found["client"],
        client_host=found["host"],
        rebalance_timeout=int(found["rebalance"]),
        session_timeout=int(found["session"]),
        subscription=b"",
        assignment=b"",
    )


# -- what kafka-dump-log prints up to 3.7 ------------------------------------------------------


def dumped_record(key: str, payload: str) -> LogRecord | None:
    """The record of a key and a payload of kafka-dump-log up to 3.7; None for another type.

    Raises:
        DataError: They are cut, or of another form.
    """
    try:
        return _dumped(key, payload)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"a dumped record of another form: {error}") from error


def _dumped(key: str, payload: str) -> LogRecord | None:
    if key.startswith("offset_commit::group="):
        group_id, _, name = key.removeprefix("offset_commit::group=").rpartition(",partition=")
        return _dumped_offset(group_id, *_topic_partition(name), payload)
    if key.startswith("offset::"):
        group_id, topic, partition = key.removeprefix("offset::").rsplit(":", 2)
        return _dumped_offset(group_id, topic, int(partition), payload)
    for mark in ("group_metadata::group=", "metadata::"):
        if key.startswith(mark):
            return _dumped_group(key.removeprefix(mark), payload)
    if key.startswith("{"):
        node = json.loads(key)
        return _dumped_group(node["metadata"], payload) if "metadata" in node else None
    return None


def _topic_partition(name: str) -> tuple[str, int]:
    found = _PARTITION.fullmatch(name)
    if found is None:
        raise DataError(f"{name!r} is no partition")
    return found[1], int(found[2])


def _dumped_offset(group_id: str, topic: str, partition: int, payload: str) -> LogRecord:
    key = OffsetCommitKey(group_id, topic, partition)
    if payload in (DELETED, "NULL", ""):
        return LogRecord(key, None, 0)
    offset, _, metadata = (
        payload.removeprefix("offset=").partition(",metadata=")
        if payload.startswith("offset=")
        else payload.partition(":")
    )
    value = OffsetCommitValue(int(offset), metadata=metadata, commit_timestamp=_UNKNOWN)
    return LogRecord(key, value, 0)


def _dumped_group(group_id: str, payload: str) -> LogRecord:
    key = GroupMetadataKey(group_id)
    if payload in (DELETED, "NULL", ""):
        return LogRecord(key, None, 0)
    if payload.startswith('{"'):
        node = json.loads(payload)
        protocol_type, protocol = node["protocolType"], node.get("protocol")
        generation, given = int(node["generationId"]), node["assignment"]
    else:
        protocol_type, protocol, number, given = payload.split(":", 3)
        generation = int(number)
    value = GroupMetadataValue(
        protocol_type=protocol_type or "",
        generation=generation,
        protocol=None if protocol in _NONE else protocol,
        leader=None,
        members=_given(given, is_consumer=protocol_type == "consumer"),
    )
    return LogRecord(key, value, 0)


def _given(text: str, *, is_consumer: bool) -> tuple[MemberMetadata, ...]:
    """The members of `{member=[t-0, t-1],...}`, or of `{member=00FF,...}` for other protocols."""
    members = []
    for found in _MEMBER_GIVEN.finditer(text.strip().removeprefix("{").removesuffix("}")):
        member_id, partitions, digits = found.groups()
        if partitions is not None:
            names = [name for name in partitions.split(", ") if name]
            owned = tuple(TopicPartition(*_topic_partition(name)) for name in names)
            assignment = encode_assignment(ConsumerAssignment(partitions=owned), 0)
        else:
            assignment = b"" if is_consumer or not digits else _with_zeros(digits)
        members.append(
            MemberMetadata(
                member_id=member_id,
                group_instance_id=None,
                client_id="",
                client_host="",
                rebalance_timeout=_UNKNOWN,
                session_timeout=_UNKNOWN,
                subscription=b"",
                assignment=assignment,
            )
        )
    return tuple(members)


def _with_zeros(digits: str) -> bytes:
    """Bytes whose leading zeros were lost: with the fewest that a Connect assignment can have."""
    data = bytes.fromhex(digits.zfill(len(digits) + len(digits) % 2))
    for count in range(_LOST_ZEROS):
        try:
            decode_connect_assignment(bytes(count) + data)
        except (WireFormatError, ValueError):
            continue
        return bytes(count) + data
    return data
