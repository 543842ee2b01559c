"""The most frequent answers to group members, packed by hand.

A packer here knows one API in its usual form, short texts; for what is not, it gives up, and the
general codec writes the answer or says why it cannot be written. The bytes are the same.
"""

import struct
from collections.abc import Callable
from typing import Any, Final

from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.protocol.messages import (
    FetchedOffset,
    FetchedTopic,
    HeartbeatResponse,
    JoinGroupResponse,
    OffsetCommitResponse,
    OffsetFetchResponse,
    SyncGroupResponse,
)
from coordinator_sim.wire.compact_types import unsigned_varint_bytes

HotWrite = Callable[[int, Any], bytes]
"""Packs the frame of an answer in its usual form: correlation id, and the response."""

_LONGEST_COMPACT: Final = 126
"""Bytes of a text whose compact length has one byte."""
_LONGEST_CLASSIC: Final = 0x7FFF
_NO_TAGS: Final = b"\x00"
_NULL_TEXT: Final = b"\xff\xff"
_NULL_COMPACT: Final = b"\x00"

_INT16: Final = struct.Struct(">h").pack
_INT32: Final = struct.Struct(">i").pack
_START: Final = struct.Struct(">i").pack
_START_THROTTLED: Final = struct.Struct(">ii").pack
_START_FLEXIBLE: Final = struct.Struct(">iBi").pack
_PARTITION_ERROR: Final = struct.Struct(">ih").pack
_PARTITION_ERROR_FLEXIBLE: Final = struct.Struct(">ihB").pack
_ONE_BYTE: Final = tuple(bytes((number,)) for number in range(128))
"""Varints up to 127."""


class UnusualAnswerError(Exception):
    """The answer is for the general codec. Never leaves this room."""


def _text(text: str) -> bytes:
    raw = text.encode()
    if len(raw) > _LONGEST_CLASSIC:
        raise UnusualAnswerError
    return _INT16(len(raw)) + raw


def _nullable_text(text: str | None) -> bytes:
    return _NULL_TEXT if text is None else _text(text)


def _compact_text(text: str) -> bytes:
    raw = text.encode()
    if len(raw) > _LONGEST_COMPACT:
        raise UnusualAnswerError
    return _ONE_BYTE[len(raw) + 1] + raw


def _compact_nullable_text(text: str | None) -> bytes:
    return _NULL_COMPACT if text is None else _compact_text(text)


def _bytes(data: bytes) -> bytes:
    return _INT32(len(data)) + data


def _compact_bytes(data: bytes) -> bytes:
    return unsigned_varint_bytes(len(data) + 1) + data


def _start(*, throttled: bool, flexible: bool) -> Callable[[int], bytes]:
    """Header and throttle time, which is 0 here."""
    if flexible:
        return lambda correlation_id: _START_FLEXIBLE(correlation_id, 0, 0)
    if throttled:
        return lambda correlation_id: _START_THROTTLED(correlation_id, 0)
    return _START


# -- Heartbeat -----------------------------------------------------------------------------

_HEARTBEAT: Final = struct.Struct(">iBihB").pack


def _heartbeat(version: int) -> HotWrite:
    if version == 0:
        short = struct.Struct(">ih").pack
        return lambda correlation_id, response: short(correlation_id, response.error_code)
    if version < 4:  # noqa: PLR2004  first flexible version
        throttled = struct.Struct(">iih").pack
        return lambda correlation_id, response: throttled(correlation_id, 0, response.error_code)
    return _heartbeat_flexible


def _heartbeat_flexible(correlation_id: int, response: HeartbeatResponse) -> bytes:
    return _HEARTBEAT(correlation_id, 0, 0, response.error_code, 0)


# -- OffsetCommit --------------------------------------------------------------------------


def _offset_commit(version: int) -> HotWrite:
    """Versions 0 to 7."""
    start = _start(throttled=version >= 3, flexible=False)  # noqa: PLR2004  throttle time

    def write(correlation_id: int, response: OffsetCommitResponse) -> bytes:
        parts = [start(correlation_id), _INT32(len(response.topics))]
        for topic in response.topics:
            parts += (_text(topic.name), _INT32(len(topic.partitions)))
            parts += [
                _PARTITION_ERROR(each.partition, each.error_code) for each in topic.partitions
            ]
        return b"".join(parts)

    return write


def _offset_commit_flexible(correlation_id: int, response: OffsetCommitResponse) -> bytes:
    """Versions 8 and 9."""
    parts = [
        _START_FLEXIBLE(correlation_id, 0, 0),
        unsigned_varint_bytes(len(response.topics) + 1),
    ]
    for topic in response.topics:
        parts += (_compact_text(topic.name), unsigned_varint_bytes(len(topic.partitions) + 1))
        parts += [
            _PARTITION_ERROR_FLEXIBLE(each.partition, each.error_code, 0)
            for each in topic.partitions
        ]
        parts.append(_NO_TAGS)
    parts.append(_NO_TAGS)
    return b"".join(parts)


# -- OffsetFetch ---------------------------------------------------------------------------

_FETCHED: Final = struct.Struct(">iq").pack
_FETCHED_WITH_EPOCH: Final = struct.Struct(">iqi").pack
_FETCHED_PLAIN: Final = struct.Struct(">iqiBhB").pack
_ERROR_AND_NO_TAGS: Final = struct.Struct(">hB").pack


def _fetched(entry: FetchedOffset) -> bytes:
    """A partition of versions 2 to 4."""
    return b"".join(
        (
            _FETCHED(entry.partition, entry.offset),
            _nullable_text(entry.metadata),
            _INT16(entry.error_code),
        )
    )


def _fetched_with_epoch(entry: FetchedOffset) -> bytes:
    """A partition of version 5."""
    return b"".join(
        (
            _FETCHED_WITH_EPOCH(entry.partition, entry.offset, entry.leader_epoch),
            _nullable_text(entry.metadata),
            _INT16(entry.error_code),
        )
    )


def _fetched_flexible(entry: FetchedOffset) -> bytes:
    """A partition of versions 6 to 9; most have empty metadata."""
    if entry.metadata == "":
        return _FETCHED_PLAIN(
            entry.partition, entry.offset, entry.leader_epoch, 1, entry.error_code, 0
        )
    return b"".join(
        (
            _FETCHED_WITH_EPOCH(entry.partition, entry.offset, entry.leader_epoch),
            _compact_nullable_text(entry.metadata),
            _ERROR_AND_NO_TAGS(entry.error_code, 0),
        )
    )


def _fetched_topics(topics: tuple[FetchedTopic, ...]) -> list[bytes]:
    """The topics of versions 6 to 9."""
    parts = [unsigned_varint_bytes(len(topics) + 1)]
    for topic in topics:
        parts += (_compact_text(topic.name), unsigned_varint_bytes(len(topic.partitions) + 1))
        parts += map(_fetched_flexible, topic.partitions)
        parts.append(_NO_TAGS)
    return parts


def _offset_fetch(version: int) -> HotWrite:
    """Versions 2 to 5."""
    start = _start(throttled=version >= 3, flexible=False)  # noqa: PLR2004  throttle time
    fetched = _fetched_with_epoch if version >= 5 else _fetched  # noqa: PLR2004  leader epochs

    def write(correlation_id: int, response: OffsetFetchResponse) -> bytes:
        group = response.groups[0]
        parts = [start(correlation_id), _INT32(len(group.topics))]
        for topic in group.topics:
            parts += (_text(topic.name), _INT32(len(topic.partitions)))
            parts += map(fetched, topic.partitions)
        parts.append(_INT16(group.error_code))
        return b"".join(parts)

    return write


def _offset_fetch_flexible(correlation_id: int, response: OffsetFetchResponse) -> bytes:
    """Versions 6 and 7."""
    group = response.groups[0]
    parts = [
        _START_FLEXIBLE(correlation_id, 0, 0),
        *_fetched_topics(group.topics),
        _ERROR_AND_NO_TAGS(group.error_code, 0),
    ]
    return b"".join(parts)


def _offset_fetch_batched(correlation_id: int, response: OffsetFetchResponse) -> bytes:
    """Versions 8 and 9."""
    parts = [
        _START_FLEXIBLE(correlation_id, 0, 0),
        unsigned_varint_bytes(len(response.groups) + 1),
    ]
    for group in response.groups:
        parts.append(_compact_text(group.group_id))
        parts += _fetched_topics(group.topics)
        parts.append(_ERROR_AND_NO_TAGS(group.error_code, 0))
    parts.append(_NO_TAGS)
    return b"".join(parts)


# -- JoinGroup and SyncGroup ---------------------------------------------------------------

_ERROR_AND_NUMBER: Final = struct.Struct(">hi").pack
"""An error with what follows it: JoinGroup's generation, or the size of an assignment."""


def _join_group(version: int) -> HotWrite:
    """Versions 0 to 5: before there were tagged fields, or a protocol type."""
    start = _start(throttled=version >= 2, flexible=False)  # noqa: PLR2004  throttle time
    named = version >= 5  # noqa: PLR2004  instance ids

    def write(correlation_id: int, response: JoinGroupResponse) -> bytes:
        if response.skip_assignment:
            raise UnusualAnswerError
        parts = [
            start(correlation_id),
            _ERROR_AND_NUMBER(response.error_code, response.generation_id),
            _text(response.protocol_name or ""),
            _text(response.leader),
            _text(response.member_id),
            _INT32(len(response.members)),
        ]
        for member in response.members:
            parts.append(_text(member.member_id))
            if named:
                parts.append(_nullable_text(member.group_instance_id))
            parts.append(_bytes(member.metadata))
        return b"".join(parts)

    return write


def _join_group_flexible(version: int) -> HotWrite:
    """Versions 6 to 9."""
    typed = version >= 7  # noqa: PLR2004  a protocol type, and no protocol is null
    skipping = version >= 9  # noqa: PLR2004  says whether to skip the assignment

    def write(correlation_id: int, response: JoinGroupResponse) -> bytes:
        if response.skip_assignment and not skipping:
            raise UnusualAnswerError
        protocol = response.protocol_name or ("" if not typed else None)
        parts = [
            _START_FLEXIBLE(correlation_id, 0, 0),
            _ERROR_AND_NUMBER(response.error_code, response.generation_id),
            _compact_nullable_text(response.protocol_type) if typed else b"",
            _compact_nullable_text(protocol),
            _compact_text(response.leader),
            _ONE_BYTE[response.skip_assignment] if skipping else b"",
            _compact_text(response.member_id),
            unsigned_varint_bytes(len(response.members) + 1),
        ]
        for member in response.members:
            parts += (
                _compact_text(member.member_id),
                _compact_nullable_text(member.group_instance_id),
                _compact_bytes(member.metadata),
                _NO_TAGS,
            )
        parts.append(_NO_TAGS)
        return b"".join(parts)

    return write


def _sync_group(version: int) -> HotWrite:
    """Versions 0 to 3."""
    start = _start(throttled=version >= 1, flexible=False)

    def write(correlation_id: int, response: SyncGroupResponse) -> bytes:
        assignment = response.assignment
        return b"".join(
            (
                start(correlation_id),
                _ERROR_AND_NUMBER(response.error_code, len(assignment)),
                assignment,
            )
        )

    return write


def _sync_group_flexible(version: int) -> HotWrite:
    """Versions 4 and 5."""
    protocolled = version >= 5  # noqa: PLR2004  repeats the protocol

    def write(correlation_id: int, response: SyncGroupResponse) -> bytes:
        parts = [_START_FLEXIBLE(correlation_id, 0, 0), _INT16(response.error_code)]
        if protocolled:
            parts += (
                _compact_nullable_text(response.protocol_type),
                _compact_nullable_text(response.protocol_name),
            )
        parts += (_compact_bytes(response.assignment), _NO_TAGS)
        return b"".join(parts)

    return write


_WRITERS: Final[dict[tuple[int, int], HotWrite]] = {
    **{(ApiKey.HEARTBEAT, version): _heartbeat(version) for version in range(5)},
    **{(ApiKey.OFFSET_COMMIT, version): _offset_commit(version) for version in range(8)},
    (ApiKey.OFFSET_COMMIT, 8): _offset_commit_flexible,
    (ApiKey.OFFSET_COMMIT, 9): _offset_commit_flexible,
    **{(ApiKey.OFFSET_FETCH, version): _offset_fetch(version) for version in range(2, 6)},
    (ApiKey.OFFSET_FETCH, 6): _offset_fetch_flexible,
    (ApiKey.OFFSET_FETCH, 7): _offset_fetch_flexible,
    (ApiKey.OFFSET_FETCH, 8): _offset_fetch_batched,
    (ApiKey.OFFSET_FETCH, 9): _offset_fetch_batched,
    **{(ApiKey.JOIN_GROUP, version): _join_group(version) for version in range(6)},
    **{(ApiKey.JOIN_GROUP, version): _join_group_flexible(version) for version in range(6, 10)},
    **{(ApiKey.SYNC_GROUP, version): _sync_group(version) for version in range(4)},
    **{(ApiKey.SYNC_GROUP, version): _sync_group_flexible(version) for version in (4, 5)},
}


def write_usual_response(
    api: ApiKey, version: int, correlation_id: int, response: object
) -> bytes | None:
    """The frame of an answer in its usual form; None: ask the general codec."""
    write = _WRITERS.get((api, version))
    if write is None:
        return None
    try:
        return write(correlation_id, response)
    except (UnusualAnswerError, UnicodeEncodeError, struct.error):
        return None
