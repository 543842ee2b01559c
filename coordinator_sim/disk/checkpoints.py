"""The small files of a log directory, each as a value and as Kafka's bytes.

Checkpoints of offsets and epochs, snapshots of producers, `meta.properties`, `partition.metadata`
and the clean shutdown file. Callers read and write the files.

Source: kafka trunk, storage/.../internals/checkpoint: CheckpointFile, OffsetCheckpointFile,
LeaderEpochCheckpointFile, PartitionMetadata, CleanShutdownFileHandler; ProducerSnapshot.json;
metadata/.../properties/MetaProperties.java.
"""

import base64
import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import crc32c
import msgspec
from msgspec import Struct

from coordinator_sim.errors import ConfigError, DataError
from coordinator_sim.log.contract import EpochStart, ProducerEntry

CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
LOCK: Final = ".lock"
META_PROPERTIES: Final = "meta.properties"
PARTITION_METADATA: Final = "partition.metadata"
LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"

TopicPartitionOffsets = dict[tuple[str, int], int]
"""(topic, partition) -> offset."""

_HEAD_LINES: Final = 2
_META_VERSIONS: Final = ("0", "1")
_ID_BYTES: Final = 16
_SNAPSHOT_VERSION: Final = 1
_SNAPSHOT_HEAD: Final = struct.Struct(">hIi")
"""Version, CRC-32C of all bytes after it, count of producers."""
_SNAPSHOT_CHECKED_FROM: Final = 6
_PRODUCER: Final = struct.Struct(">qhiqiqiq")
"""Id, epoch, last sequence, last offset, offset delta, timestamp, coordinator epoch, first offset
of the open transaction."""
_PROPERTY: Final = re.compile(r"\s*([\w.]+)\s*[=:]\s*(.*?)\s*")


class MetaProperties(Struct, frozen=True, kw_only=True):
    """The cluster and the broker that own a directory.

    Args:
        cluster_id: Cluster id as Kafka writes it: 22 characters of URL-safe base64.
        node_id: Id of the broker, or of the first of several that share the directory.
        directory_id: Directory id, written like `cluster_id`; None if an old broker wrote none.
    """

    cluster_id: str
    node_id: int
    directory_id: str | None = None


def id_text(uuid: bytes) -> str:
    """16 bytes as Kafka writes them. Source: Uuid.toString."""
    return base64.urlsafe_b64encode(uuid).rstrip(b"=").decode()


def id_from_text(text: str) -> bytes:
    """The 16 bytes of an id as Kafka writes it.

    Raises:
        DataError: The text is no such id.
    """
    try:
        uuid = base64.urlsafe_b64decode(f"{text}==")
    except ValueError as error:  # From base64: wrong padding, or a character that is not ASCII.
        raise DataError(f"{text!r} is no id: {error}") from error
    if len(uuid) != _ID_BYTES:
        raise DataError(f"{text!r} is no id: it holds {len(uuid)} bytes, not {_ID_BYTES}")
    return uuid


def meta_properties_bytes(meta: MetaProperties) -> bytes:
    """The text of `meta.properties`, version 1."""
    lines = {"cluster.id": meta.cluster_id}
    if meta.directory_id is not None:
        lines["directory.id"] = meta.directory_id
    lines |= {"node.id": str(meta.node_id), "version": "1"}
    return "".join(f"{key}={value}\n" for key, value in lines.items()).encode()


def meta_properties_of(text: str) -> MetaProperties:
    """Parse a `meta.properties` of version 1, or of version 0, which brokers with ZooKeeper wrote.

    Raises:
        ConfigError: The file is of another version.
        DataError: A property is missing or is not the number that it should be.
    """
    found: dict[str, str] = {}
    for line in text.splitlines():
        match = None if line.startswith(("#", "!")) else _PROPERTY.fullmatch(line)
        if match is not None:
            found[match[1]] = match[2].replace("\\", "")
    version = found.get("version", "0")
    if version not in _META_VERSIONS:
        raise ConfigError(
            f"version={version}, and 0 and 1 are known: serve another --log-dir, or write "
            "version=1 if the file is damaged"
        )
    node_id = found.get("node.id", found.get("broker.id", ""))
    if "cluster.id" not in found or not node_id.isdecimal():
        raise DataError(f"lacks cluster.id or node.id: {found}")
    return MetaProperties(
        cluster_id=found["cluster.id"],
        node_id=int(node_id),
        directory_id=found.get("directory.id"),
    )


def partition_metadata_bytes(topic_id: bytes) -> bytes:
    """The text of `partition.metadata`."""
    return f"version: 0\ntopic_id: {id_text(topic_id)}".encode()


def topic_id_of(text: str) -> bytes:
    """The topic id in a `partition.metadata`.

    Raises:
        DataError: There is no topic id.
    """
    match = re.search(r"^topic_id:\s*(\S+)\s*$", text, re.MULTILINE)
    if match is None:
        raise DataError(f"{PARTITION_METADATA} names no topic id: {text!r}")
    return id_from_text(match[1])


def clean_shutdown_bytes(broker_epoch: int) -> bytes:
    """The text of the clean shutdown file."""
    return msgspec.json.encode({"version": 0, "brokerEpoch": broker_epoch})


def offsets_checkpoint_bytes(offsets: Mapping[tuple[str, int], int]) -> bytes:
    """The text of a checkpoint of offsets by partition, in order of names."""
    return _checkpoint(f"{topic} {number} {at}" for (topic, number), at in sorted(offsets.items()))


def offsets_of_checkpoint(text: str) -> TopicPartitionOffsets:
    """The offsets of a checkpoint.

    Raises:
        DataError: It is not of version 0, or its number of entries is wrong.
    """
    rows = (line.split() for line in _checkpoint_lines(text))
    return {(topic, _number(number)): _number(at) for topic, number, at in _of_length(rows, 3)}


def epochs_checkpoint_bytes(epochs: Sequence[EpochStart]) -> bytes:
    """The text of a `leader-epoch-checkpoint`."""
    return _checkpoint(f"{epoch.leader_epoch} {epoch.start_offset}" for epoch in epochs)


def epochs_of_checkpoint(text: str) -> list[EpochStart]:
    """The epochs of a `leader-epoch-checkpoint`.

    Raises:
        DataError: It is not of version 0, or its number of entries is wrong.
    """
    rows = (line.split() for line in _checkpoint_lines(text))
    return [EpochStart(_number(epoch), _number(start)) for epoch, start in _of_length(rows, 2)]


def snapshot_bytes(producers: Iterable[ProducerEntry]) -> bytes:
    """The bytes of a snapshot of producers."""
    rows = [
        _PRODUCER.pack(
            one.producer_id,
            one.producer_epoch,
            one.last_sequence,
            one.last_offset,
            one.offset_delta,
            one.timestamp_ms,
            one.coordinator_epoch,
            one.current_txn_first_offset,
        )
        for one in producers
    ]
    checked = struct.pack(">i", len(rows)) + b"".join(rows)
    return struct.pack(">hI", _SNAPSHOT_VERSION, crc32c.crc32c(checked)) + checked


def producers_of_snapshot(data: bytes) -> tuple[ProducerEntry, ...] | None:
    """The producers of a snapshot; None when it is damaged, or of another version."""
    if len(data) < _SNAPSHOT_HEAD.size:
        return None
    version, crc, count = _SNAPSHOT_HEAD.unpack_from(data)
    rows = data[_SNAPSHOT_HEAD.size :]
    if version != _SNAPSHOT_VERSION or crc != crc32c.crc32c(data[_SNAPSHOT_CHECKED_FROM:]):
        return None
    if len(rows) != count * _PRODUCER.size:
        return None
    return tuple(
        ProducerEntry(**dict(zip(ProducerEntry.__struct_fields__, row, strict=True)))
        for row in _PRODUCER.iter_unpack(rows)
    )


def _checkpoint(entries: Iterable[str]) -> bytes:
    lines = list(entries)
    return "".join(f"{line}\n" for line in ("0", str(len(lines)), *lines)).encode()


def _checkpoint_lines(text: str) -> list[str]:
    lines = text.splitlines()
    if not lines:
        return []  # A broker creates the file empty. Source: CheckpointReadBuffer.read.
    if len(lines) < _HEAD_LINES or lines[0].strip() != "0":
        raise DataError(f"a checkpoint of version {lines[:1]}; 0 is the one that is known")
    entries = lines[_HEAD_LINES:]
    if len(entries) != _number(lines[1]):
        raise DataError(f"a checkpoint of {lines[1]} entries holds {len(entries)}")
    return entries


def _of_length(rows: Iterable[list[str]], length: int) -> Iterable[list[str]]:
    for row in rows:
        if len(row) != length:
            raise DataError(f"a checkpoint's entry {' '.join(row)!r} has not {length} parts")
        yield row


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise DataError(f"a checkpoint says {text!r} where a number belongs") from error
