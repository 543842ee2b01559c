"""Draws events of a broker: time, appends that fail or wait, leadership, topics, markers."""

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
from coordinator_sim_conformance.differ.offset_requests import PRODUCERS

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


LINGER_WAITS: Final = (1, 3, 4, 5)
FAILURES: Final = (
    "NOT_LEADER_OR_FOLLOWER",
    "NOT_ENOUGH_REPLICAS",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    "UNKNOWN_TOPIC_OR_PARTITION",
    "MESSAGE_TOO_LARGE",
    "RECORD_LIST_TOO_LARGE",
    "INVALID_FETCH_SIZE",
    "KAFKA_STORAGE_ERROR",
    "REQUEST_TIMED_OUT",
)
_SEVERAL: Final = 2
"""Number of batches from which one can be committed alone; only the Java harness has offsets."""
VERIFY_FAILURES: Final = (
    "INVALID_TXN_STATE",
    "INVALID_PRODUCER_ID_MAPPING",
    "NOT_ENOUGH_REPLICAS",
    "NETWORK_EXCEPTION",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "INVALID_PRODUCER_EPOCH",
)


def advance(memory: Memory) -> Json:
    """Let time pass: mostly little, sometimes as long as a timer."""
    kind = memory.random.random()
    if memory.is_lingering and memory.chance(0.4):
        return {"op": "advance", "ms": memory.pick(LINGER_WAITS)}
    tempo = memory.reference.tempo
    waits = tempo.short_waits if kind < 0.6 else tempo.waits if kind < 0.94 else tempo.long_waits
    return {"op": "advance", "ms": memory.pick(waits)}


def fail_appends(memory: Memory) -> Json:
    """Refuse the next appends."""
    unknown = memory.reference.unknown_errors
    errors = [error for error in FAILURES if error not in unknown]
    return {"op": "fail", "append": memory.pick(errors), "count": memory.pick((1, 1, 2))}


def fail_verification(memory: Memory) -> Json:
    """Switch failures of transaction verification on or off."""
    error = memory.pick((None, None, *VERIFY_FAILURES))
    return {"op": "fail", "verify": error}


def hold(memory: Memory) -> Json:
    """Make appends wait for the high watermark, or no longer."""
    memory.is_held = not memory.is_held
    memory.is_settled = False
    return {"op": "hold", "hw": memory.is_held}


def commit_log(memory: Memory) -> Json:
    """Move the high watermark to the end of one partition or of all, or of one batch."""
    if memory.chance(0.5):
        memory.is_settled = not memory.is_held
        memory.ends.clear()
        return {"op": "commit"}
    partition = memory.random.randrange(memory.partitions)
    ends = memory.ends.pop(partition, [])
    command: Json = {"op": "commit", "partition": partition}
    takes_offsets = memory.reference.harness == "java"
    if len(ends) < _SEVERAL or memory.number % 3 == 0 or not takes_offsets:
        return command
    first = memory.number % (len(ends) - 1)
    memory.ends[partition] = ends[first + 1 :]
    return {**command, "offset": ends[first]}


def change_leadership(memory: Memory) -> Json:
    """Elect, resign or elect again for a partition; sometimes with an old epoch."""
    memory.epoch += 1
    kind = memory.random.random()
    if memory.resigned and kind < 0.5:
        return _elect(memory, memory.resigned[-1], memory.epoch)
    if not memory.reference.has_epochs:
        return _change_without_epochs(memory)
    partition = memory.random.randrange(memory.partitions)
    if kind < 0.65:
        return _resign(memory, partition)
    if kind < 0.75:
        return _elect(memory, partition, memory.pick((0, 1, memory.epoch)))
    if kind < 0.9:
        return _elect(memory, partition, memory.epoch)
    memory.resigned.clear()
    return {"op": "elect", "epoch": memory.epoch}


def _change_without_epochs(memory: Memory) -> Json:
    """Resign a partition that is led, or elect one that is not."""
    partition = memory.random.randrange(memory.partitions)
    if partition in memory.resigned:
        return _elect(memory, partition, memory.epoch)
    memory.resigned.append(partition)
    return {"op": "resign", "partition": partition}


def _elect(memory: Memory, partition: int, epoch: int) -> Json:
    memory.resigned = [each for each in memory.resigned if each != partition]
    return {"op": "elect", "partition": partition, "epoch": epoch}


def _resign(memory: Memory, partition: int) -> Json:
    """Resign, sometimes with an old epoch, which changes nothing."""
    command: Json = {"op": "resign", "partition": partition}
    kind = memory.random.random()
    if kind > 0.9:
        return {**command, "epoch": 0}
    if partition not in memory.resigned:
        memory.resigned.append(partition)
    return command if kind < 0.6 else {**command, "epoch": memory.epoch}


def append_foreign(memory: Memory) -> Json | None:
    """Write to a resigned partition as another leader; None when there is none."""
    if not memory.resigned:
        return None
    partition = memory.pick(memory.resigned)
    memory.ends.pop(partition, None)
    return {
        "op": "append",
        "partition": partition,
        "records": foreign_records(memory, partition),
    }


def change_topics(memory: Memory) -> Json | None:
    """Create, grow or delete a topic; None while that would wait for the log.

    A Java reference blocks until the writes of a deletion are committed, and time with it.
    """
    if memory.reference.deletions_wait and not memory.is_settled:
        return None
    name = memory.pick(("t", "u", "v", "w"))
    stands_still = memory.is_lingering and memory.reference.waits_for_deletions
    if name in memory.topics and not stands_still and memory.chance(0.6):
        del memory.topics[name]
        return {"op": "topics", "remove": [name]}
    return set_topic(memory, name, memory.pick((4, 6)))


def set_topic(memory: Memory, name: str, count: int) -> Json:
    """Set a topic to that many partitions; a topic that was deleted gets another id."""
    known = memory.topics.get(name)
    if known is None:
        memory.topic_count += 1
        known = (0, f"AAAAVE9QSUMAAAAAAAA{memory.topic_count:02d}A")
    count = max(count, known[0])
    memory.topics[name] = (count, known[1])
    return {"op": "topics", "set": [{"name": name, "partitions": count, "id": known[1]}]}


def remove_topic(memory: Memory, name: str) -> Json | None:
    """Delete a topic that there is; None while that would wait for the log."""
    stands_still = memory.is_lingering and memory.reference.waits_for_deletions
    waits = memory.reference.deletions_wait and not memory.is_settled
    if name not in memory.topics or waits or stands_still:
        return None
    del memory.topics[name]
    return {"op": "topics", "remove": [name]}


def end_transaction(memory: Memory) -> Json:
    """Write a marker for a producer on a group's partition; the producer may be unknown."""
    return {
        "op": "endTxn",
        "group": memory.group_id(),
        "producerId": memory.pick((*PRODUCERS, *PRODUCERS, 99)),
        "producerEpoch": memory.pick((0, 0, 0, 1)),
        "coordinatorEpoch": 0,
        "commit": memory.chance(0.6),
        "transactionVersion": memory.pick((1, 2)),
    }
