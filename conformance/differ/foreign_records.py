"""Draws records of another leader in the log, as bytes: groups, offsets, tombstones."""

from base64 import b64decode, b64encode
from itertools import count
from typing import Any, Final

from coordinator_sim.kafka.partitioning import partition_for
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.log.format.offsets_records import encode_key, encode_value
from coordinator_sim.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from coordinator_sim.messages.records import LogKey, LogRecord
from coordinator_sim_conformance.differ.membership import SUBSCRIPTION
from coordinator_sim_conformance.differ.memory import Memory

Json = dict[str, Any]

_NOW_MS: Final = 1_000_000


def foreign_records(memory: Memory, partition: int) -> list[Json]:
    """Return one to three records of groups of that partition."""
    groups = [name for name in memory.groups if partition_for(name, memory.partitions) == partition]
    records = []
    for _ in range(memory.pick((1, 2, 3))):
        group_id = memory.pick([*groups, *groups, _foreign_group(memory, partition)])
        record = memory.pick((_group, _offset, _offset, _tombstone))(memory, group_id)
        value = None if record.value is None else encode_value(record.value, record.value_version)
        records.append(
            {
                "key": b64encode(encode_key(record.key)).decode(),
                "value": None if value is None else b64encode(value).decode(),
            }
        )
    return records


def _versions(memory: Memory) -> range:
    """Return the schema versions of values that the reference can read."""
    return range(profile_named(memory.reference.profile).group_value_version + 1)


def _foreign_group(memory: Memory, partition: int) -> str:
    """Return the id of a group of that partition that no other command uses."""
    names = (f"foreign-{memory.number}-{attempt}" for attempt in count())
    return next(name for name in names if partition_for(name, memory.partitions) == partition)


def _offset(memory: Memory, group_id: str) -> LogRecord:
    version = memory.pick(_versions(memory))
    value = OffsetCommitValue(
        offset=memory.number,
        leader_epoch=4 if version == 3 else -1,
        metadata="foreign",
        commit_timestamp=_NOW_MS,
        expire_timestamp=_NOW_MS + 600_000 if version == 1 else -1,
    )
    key = OffsetCommitKey(group_id, memory.pick(("t", "gone")), memory.random.randrange(3))
    return LogRecord(key, value, version)


def _tombstone(memory: Memory, group_id: str) -> LogRecord:
    keys: tuple[LogKey, ...] = (
        GroupMetadataKey(group_id),
        OffsetCommitKey(group_id, "t", memory.random.randrange(3)),
    )
    key = memory.pick(keys)
    return LogRecord(key, None, 0)


def _group(memory: Memory, group_id: str) -> LogRecord:
    version = memory.pick(_versions(memory))
    generation = memory.random.randrange(1, 5)
    names = memory.pick(((), ("f1",), ("f1", "f2")))
    members = tuple(_member(memory, name, version) for name in names)
    if group_id in memory.groups:
        memory.groups[group_id].members.update(dict.fromkeys(names, generation))
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=generation,
        protocol="range" if names else None,
        leader=names[0] if names else None,
        current_state_timestamp=_NOW_MS if version >= 2 else -1,
        members=members,
    )
    return LogRecord(GroupMetadataKey(group_id), value, version)


def _member(memory: Memory, name: str, version: int) -> MemberMetadata:
    is_static = version == 3 and memory.chance(0.3) and memory.has_static_members
    return MemberMetadata(
        member_id=name,
        group_instance_id="i1" if is_static and name == "f1" else None,
        client_id="c1",
        client_host="/127.0.0.1",
        rebalance_timeout=20_000 if version >= 1 else -1,
        session_timeout=10_000,
        subscription=b64decode(SUBSCRIPTION),
        assignment=name.encode(),
    )
