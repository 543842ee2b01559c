"""The most frequent requests of group members, from a frame to the message without detours.

A reader here knows the usual form of one API in some versions: short texts, small arrays, no
tagged fields. Whatever else a frame holds, broken bytes included, is unusual: the reader gives up,
and the general codec reads it again or says what is wrong with it. So nothing here needs an error
of its own, and what it reads equals what the general codec reads.

INVARIANT: positions only grow, and a reader ends behind the last byte that it believed in, so that
one comparison with the frame's length at the end shows every text that was cut.
"""

import struct
from collections.abc import Callable
from typing import Final

from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.protocol.messages import (
    HeartbeatRequest,
    JoinGroupProtocol,
    JoinGroupRequest,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
    OffsetFetchGroup,
    OffsetFetchRequest,
    OffsetFetchTopic,
    SyncGroupAssignment,
    SyncGroupRequest,
)
from coordinator_sim.protocol.requests import Request

HotRead = Callable[[bytes], tuple[str, Request]]
"""Reads a frame of the usual form: the client id, and the request."""

_CLIENT_ID_AT: Final = 8
"""Where a request's header has the client id, behind API, version and correlation id."""
_MOST_ELEMENTS: Final = 100_000
_LONGEST_CLASSIC: Final = 0x7FFF
_MORE_BYTES: Final = 0x80
"""The bit of a varint's byte that says that more follow."""
_NULL_TEXT: Final = 0xFFFF

_INT32: Final = struct.Struct(">i").unpack_from
_INT64_SIZE: Final = 8
_TWO_INT32: Final = struct.Struct(">ii").unpack_from
_COMMITTED: Final = struct.Struct(">iqh")
_COMMITTED_WITH_EPOCH: Final = struct.Struct(">iqih")
_COMMITTED_COMPACT: Final = struct.Struct(">iqiB")
_COMMITTED_PLAIN: Final = struct.Struct(">iqiBB")
"""With the size of empty metadata, and no tags."""


class UnusualFrameError(Exception):
    """The frame is for the general codec. Never leaves this room."""


# -- texts, bytes, counts: each gives the value and the position behind it -------------------


def _text(frame: bytes, at: int) -> tuple[str, int]:
    size = frame[at] << 8 | frame[at + 1]
    if size > _LONGEST_CLASSIC:
        raise UnusualFrameError
    end = at + 2 + size
    return frame[at + 2 : end].decode(), end


def _nullable_text(frame: bytes, at: int) -> tuple[str | None, int]:
    if frame[at] << 8 | frame[at + 1] == _NULL_TEXT:
        return None, at + 2
    return _text(frame, at)


def _compact_text(frame: bytes, at: int) -> tuple[str, int]:
    size = frame[at]
    if not 0 < size < _MORE_BYTES:
        raise UnusualFrameError
    end = at + size
    return frame[at + 1 : end].decode(), end


def _compact_nullable_text(frame: bytes, at: int) -> tuple[str | None, int]:
    if frame[at]:
        return _compact_text(frame, at)
    return None, at + 1


def _size(frame: bytes, at: int) -> tuple[int, int]:
    """A length or count of the compact form, up to 16,382."""
    size = frame[at]
    at += 1
    if size >= _MORE_BYTES:
        high = frame[at]
        if high >= _MORE_BYTES:
            raise UnusualFrameError
        size = size & 0x7F | high << 7
        at += 1
    if not size:
        raise UnusualFrameError
    return size - 1, at


def _count(frame: bytes, at: int) -> tuple[int, int]:
    """A length or count of the classic form."""
    (count,) = _INT32(frame, at)
    if not 0 <= count <= _MOST_ELEMENTS:
        raise UnusualFrameError
    return count, at + 4


def _no_tags(frame: bytes, at: int) -> int:
    if frame[at]:
        raise UnusualFrameError
    return at + 1


def _named_bytes(frame: bytes, at: int, *, flexible: bool) -> tuple[str, bytes, int]:
    """One of the entries that JoinGroup and SyncGroup bring: a name and opaque bytes."""
    if flexible:
        name, at = _compact_text(frame, at)
        size, at = _size(frame, at)
        end = at + size
        return name, frame[at:end], _no_tags(frame, end)
    name, at = _text(frame, at)
    (size,) = _INT32(frame, at)
    if size < 0:
        raise UnusualFrameError
    end = at + 4 + size
    return name, frame[at + 4 : end], end


# -- Heartbeat -----------------------------------------------------------------------------


def _heartbeat(version: int) -> HotRead:
    """Versions 0 to 3; the last has an instance id."""
    named = version >= 3  # noqa: PLR2004  first version for static members

    def read(frame: bytes) -> tuple[str, Request]:
        client_id, at = _text(frame, _CLIENT_ID_AT)
        group_id, at = _text(frame, at)
        (generation_id,) = _INT32(frame, at)
        member_id, at = _text(frame, at + 4)
        instance, at = _nullable_text(frame, at) if named else (None, at)
        if at > len(frame):
            raise UnusualFrameError
        return client_id, HeartbeatRequest(
            group_id=group_id,
            generation_id=generation_id,
            member_id=member_id,
            group_instance_id=instance,
        )

    return read


def _heartbeat_flexible(frame: bytes) -> tuple[str, Request]:
    """Version 4, written out: a member sends more of these than of anything else."""
    group_at = 11 + (frame[8] << 8 | frame[9])
    generation_at = group_at + frame[group_at]
    member_at = generation_at + 4
    instance_at = member_at + frame[member_at]
    end = instance_at + (frame[instance_at] or 1)
    if (
        frame[8] >= _MORE_BYTES
        or frame[group_at - 1]
        or not 0 < frame[group_at] < _MORE_BYTES
        or not 0 < frame[member_at] < _MORE_BYTES
        or frame[instance_at] >= _MORE_BYTES
        or frame[end]
    ):
        raise UnusualFrameError
    return frame[10 : group_at - 1].decode(), HeartbeatRequest(
        group_id=frame[group_at + 1 : generation_at].decode(),
        generation_id=_INT32(frame, generation_at)[0],
        member_id=frame[member_at + 1 : instance_at].decode(),
        group_instance_id=frame[instance_at + 1 : end].decode() if frame[instance_at] else None,
    )


# -- OffsetCommit --------------------------------------------------------------------------


def _commits(frame: bytes, at: int) -> tuple[tuple[OffsetCommitPartition, ...], int]:
    """The partitions of a topic in versions 2 to 5."""
    count, at = _count(frame, at)
    partitions = []
    for _ in range(count):
        partition, offset, size = _COMMITTED.unpack_from(frame, at)
        at += _COMMITTED.size
        metadata = None
        if size >= 0:
            metadata = frame[at : at + size].decode()
            at += size
        partitions.append(OffsetCommitPartition(partition, offset, -1, metadata))
    return tuple(partitions), at


def _commits_with_epoch(frame: bytes, at: int) -> tuple[tuple[OffsetCommitPartition, ...], int]:
    """The partitions of a topic in versions 6 and 7; see `_commits_compact`."""
    count, at = _count(frame, at)
    end = at + count * _COMMITTED_WITH_EPOCH.size
    if end <= len(frame):
        plain = [
            OffsetCommitPartition(partition, offset, leader_epoch, None if size else "")
            for partition, offset, leader_epoch, size in _COMMITTED_WITH_EPOCH.iter_unpack(
                frame[at:end]
            )
            if size <= 0
        ]
        if len(plain) == count:
            return tuple(plain), end
    partitions = []
    for _ in range(count):
        partition, offset, leader_epoch, size = _COMMITTED_WITH_EPOCH.unpack_from(frame, at)
        at += _COMMITTED_WITH_EPOCH.size
        metadata = None
        if size >= 0:
            metadata = frame[at : at + size].decode()
            at += size
        partitions.append(OffsetCommitPartition(partition, offset, leader_epoch, metadata))
    return tuple(partitions), at


def _commits_compact(frame: bytes, at: int) -> tuple[tuple[OffsetCommitPartition, ...], int]:
    """The partitions of a topic in versions 8 and 9.

    Mostly none has metadata, so that all have one size. A row is where it seems to be when all
    before it are so.
    """
    count, at = _size(frame, at)
    end = at + count * _COMMITTED_PLAIN.size
    if end <= len(frame):
        plain = [
            OffsetCommitPartition(partition, offset, leader_epoch)
            for partition, offset, leader_epoch, size, tags in _COMMITTED_PLAIN.iter_unpack(
                frame[at:end]
            )
            if size == 1 and not tags
        ]
        if len(plain) == count:
            return tuple(plain), end
    partitions = []
    for _ in range(count):
        partition, offset, leader_epoch, size = _COMMITTED_COMPACT.unpack_from(frame, at)
        at += _COMMITTED_COMPACT.size
        metadata: str | None = ""
        if size != 1:
            metadata, at = _compact_nullable_text(frame, at - 1)
        if frame[at]:
            raise UnusualFrameError
        at += 1
        partitions.append(OffsetCommitPartition(partition, offset, leader_epoch, metadata))
    return tuple(partitions), at


def _offset_commit(version: int) -> HotRead:
    """Versions 2 to 7."""
    retained = version <= 4  # noqa: PLR2004  last version with a retention time of its own
    named = version >= 7  # noqa: PLR2004  first version for static members
    commits = _commits_with_epoch if version >= 6 else _commits  # noqa: PLR2004  leader epochs

    def read(frame: bytes) -> tuple[str, Request]:
        client_id, at = _text(frame, _CLIENT_ID_AT)
        group_id, at = _text(frame, at)
        (generation_id,) = _INT32(frame, at)
        member_id, at = _text(frame, at + 4)
        instance, at = _nullable_text(frame, at) if named else (None, at)
        retention_time_ms = -1
        if retained:
            retention_time_ms = int.from_bytes(frame[at : at + _INT64_SIZE], "big", signed=True)
            at += _INT64_SIZE
        count, at = _count(frame, at)
        topics = []
        for _ in range(count):
            name, at = _text(frame, at)
            partitions, at = commits(frame, at)
            topics.append(OffsetCommitTopic(name, partitions))
        if at > len(frame):
            raise UnusualFrameError
        return client_id, OffsetCommitRequest(
            group_id=group_id,
            topics=tuple(topics),
            generation_id=generation_id,
            member_id=member_id,
            group_instance_id=instance,
            retention_time_ms=retention_time_ms,
        )

    return read


def _offset_commit_flexible(frame: bytes) -> tuple[str, Request]:
    """Versions 8 and 9."""
    client_id, at = _text(frame, _CLIENT_ID_AT)
    group_id, at = _compact_text(frame, _no_tags(frame, at))
    (generation_id,) = _INT32(frame, at)
    member_id, at = _compact_text(frame, at + 4)
    instance, at = _compact_nullable_text(frame, at)
    count, at = _size(frame, at)
    topics = []
    for _ in range(count):
        name, at = _compact_text(frame, at)
        partitions, at = _commits_compact(frame, at)
        at = _no_tags(frame, at)
        topics.append(OffsetCommitTopic(name, partitions))
    _no_tags(frame, at)
    return client_id, OffsetCommitRequest(
        group_id=group_id,
        topics=tuple(topics),
        generation_id=generation_id,
        member_id=member_id,
        group_instance_id=instance,
    )


# -- OffsetFetch ---------------------------------------------------------------------------


def _asked_topics(frame: bytes, at: int) -> tuple[tuple[OffsetFetchTopic, ...] | None, int]:
    """The topics of versions 6 to 9; all of them when there is no list."""
    if not frame[at]:
        return None, at + 1
    count, at = _size(frame, at)
    topics = []
    for _ in range(count):
        name, at = _compact_text(frame, at)
        size, at = _size(frame, at)
        partitions = struct.unpack_from(f">{size}i", frame, at)
        at = _no_tags(frame, at + 4 * size)
        topics.append(OffsetFetchTopic(name, partitions))
    return tuple(topics), at


def _offset_fetch(version: int) -> HotRead:
    """Versions 8 and 9 of one group or more; a member names itself in the last."""
    named = version >= 9  # noqa: PLR2004  member id and epoch

    def read(frame: bytes) -> tuple[str, Request]:
        client_id, at = _text(frame, _CLIENT_ID_AT)
        count, at = _size(frame, _no_tags(frame, at))
        groups = []
        for _ in range(count):
            group_id, at = _compact_text(frame, at)
            member_id, member_epoch = None, -1
            if named:
                member_id, at = _compact_nullable_text(frame, at)
                (member_epoch,) = _INT32(frame, at)
                at += 4
            topics, at = _asked_topics(frame, at)
            at = _no_tags(frame, at)
            groups.append(
                OffsetFetchGroup(
                    group_id=group_id,
                    topics=topics,
                    member_id=member_id,
                    member_epoch=member_epoch,
                )
            )
        _no_tags(frame, at + 1)
        return client_id, OffsetFetchRequest(groups=tuple(groups), require_stable=frame[at] != 0)

    return read


# -- JoinGroup and SyncGroup ---------------------------------------------------------------


def _join_group(version: int) -> HotRead:
    """Versions 1 to 9."""
    flexible = version >= 6  # noqa: PLR2004  compact types
    named = version >= 5  # noqa: PLR2004  first version for static members
    reasoned = version >= 8  # noqa: PLR2004  a reason is given
    text = _compact_text if flexible else _text
    nullable_text = _compact_nullable_text if flexible else _nullable_text
    count_of = _size if flexible else _count

    def read(frame: bytes) -> tuple[str, Request]:
        client_id, at = _text(frame, _CLIENT_ID_AT)
        group_id, at = text(frame, _no_tags(frame, at) if flexible else at)
        session_timeout_ms, rebalance_timeout_ms = _TWO_INT32(frame, at)
        member_id, at = text(frame, at + 8)
        instance, at = nullable_text(frame, at) if named else (None, at)
        protocol_type, at = text(frame, at)
        count, at = count_of(frame, at)
        protocols = []
        for _ in range(count):
            name, metadata, at = _named_bytes(frame, at, flexible=flexible)
            protocols.append(JoinGroupProtocol(name, metadata))
        reason, at = nullable_text(frame, at) if reasoned else (None, at)
        if (_no_tags(frame, at) if flexible else at) > len(frame):
            raise UnusualFrameError
        return client_id, JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_ms,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=tuple(protocols),
            reason=reason,
        )

    return read


def _sync_group(version: int) -> HotRead:
    """Versions 0 to 5."""
    flexible = version >= 4  # noqa: PLR2004  compact types
    named = version >= 3  # noqa: PLR2004  first version for static members
    protocolled = version >= 5  # noqa: PLR2004  the protocol is repeated
    text = _compact_text if flexible else _text
    nullable_text = _compact_nullable_text if flexible else _nullable_text
    count_of = _size if flexible else _count

    def read(frame: bytes) -> tuple[str, Request]:
        client_id, at = _text(frame, _CLIENT_ID_AT)
        group_id, at = text(frame, _no_tags(frame, at) if flexible else at)
        (generation_id,) = _INT32(frame, at)
        member_id, at = text(frame, at + 4)
        instance, at = nullable_text(frame, at) if named else (None, at)
        protocol_type, at = nullable_text(frame, at) if protocolled else (None, at)
        protocol_name, at = nullable_text(frame, at) if protocolled else (None, at)
        count, at = count_of(frame, at)
        assignments = []
        for _ in range(count):
            assignee, assignment, at = _named_bytes(frame, at, flexible=flexible)
            assignments.append(SyncGroupAssignment(assignee, assignment))
        if (_no_tags(frame, at) if flexible else at) > len(frame):
            raise UnusualFrameError
        return client_id, SyncGroupRequest(
            group_id=group_id,
            generation_id=generation_id,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocol_name=protocol_name,
            assignments=tuple(assignments),
        )

    return read


_READERS: Final[dict[tuple[int, int], HotRead]] = {
    **{(ApiKey.HEARTBEAT, version): _heartbeat(version) for version in range(4)},
    (ApiKey.HEARTBEAT, 4): _heartbeat_flexible,
    **{(ApiKey.OFFSET_COMMIT, version): _offset_commit(version) for version in range(2, 8)},
    (ApiKey.OFFSET_COMMIT, 8): _offset_commit_flexible,
    (ApiKey.OFFSET_COMMIT, 9): _offset_commit_flexible,
    **{(ApiKey.OFFSET_FETCH, version): _offset_fetch(version) for version in (8, 9)},
    **{(ApiKey.JOIN_GROUP, version): _join_group(version) for version in range(1, 10)},
    **{(ApiKey.SYNC_GROUP, version): _sync_group(version) for version in range(6)},
}


def read_usual_request(api: int, version: int, frame: bytes) -> tuple[str, Request] | None:
    """The client id and the request of a frame in its usual form; None: ask the general codec."""
    read = _READERS.get((api, version))
    if read is None:
        return None
    try:
        return read(frame)
    except (UnusualFrameError, IndexError, UnicodeDecodeError, struct.error):
        return None
