"""Connect's embedded blobs: worker metadata in JoinGroup, assignments in SyncGroup.

Version 0 is the eager protocol, 1 the compatible, 2 the sessioned one, which has the bytes of 1.
A larger version is read like 2. Connectors and tasks share one list on the wire, so a round trip
changes their order; assignors depend on the order after it.

Source: kafka trunk, connect/runtime/.../distributed/ConnectProtocol.java,
IncrementalCooperativeConnectProtocol.java and ExtendedAssignment.java.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from coordinator_sim.kafka.orders.iteration_order import java_copy_capacity, java_hash_order
from coordinator_sim.kafka.resources import ConnectorTaskId
from coordinator_sim.messages.codec.classic_types import (
    ClassicReader,
    bytes_bytes,
    int16_bytes,
    int32_bytes,
    int32_lists_bytes,
    int64_bytes,
    string_bytes,
)
from coordinator_sim.messages.embedded.contents import (
    ConnectAssignment,
    ConnectError,
    WorkerMetadata,
)

CONNECTOR_TASK: Final = -1
"""The task number that stands for the connector itself."""

_Entries = list[tuple[str, list[int]]]


def encode_worker_metadata(metadata: WorkerMetadata) -> bytes:
    """A worker's metadata in its own version; the allocation is written in that version too.

    Version 0 leaves the allocation out.
    """
    fixed = (
        int16_bytes(metadata.version)
        + string_bytes(metadata.url)
        + int64_bytes(metadata.config_offset)
    )
    if metadata.version == 0:
        return fixed
    allocation = metadata.allocation
    blob = None if allocation is None else _assignment_bytes(allocation, metadata.version)
    return fixed + bytes_bytes(blob)


def decode_worker_metadata(data: bytes) -> WorkerMetadata:
    """A worker's metadata.

    Raises:
        WireFormatError: The version is negative, or a field does not parse.
    """
    reader = ClassicReader(data, "worker metadata")
    version = _read_version(reader)
    url = reader.string("url")
    config_offset = reader.int64("config_offset")
    allocation = None
    if version >= 1:
        blob = reader.nullable_bytes("allocation")
        if blob is not None:
            base = reader.offset - len(blob)
            allocation = _read_assignment(ClassicReader(blob, "allocation", base))
    return WorkerMetadata(
        version=version, url=url, config_offset=config_offset, allocation=allocation
    )


def encode_connect_assignment(assignment: ConnectAssignment) -> bytes:
    """A worker's assignment in its own version; version 0 leaves out revocations and delay."""
    return _assignment_bytes(assignment, assignment.version)


def decode_connect_assignment(data: bytes) -> ConnectAssignment:
    """A worker's assignment, connectors and tasks each in wire order.

    A null list reads as an empty one.

    Raises:
        WireFormatError: The version is negative, the error unknown, or a field does not parse.
    """
    return _read_assignment(ClassicReader(data, "connect assignment"))


def wire_order(
    connectors: Sequence[str], tasks: Sequence[ConnectorTaskId]
) -> tuple[tuple[str, ...], tuple[ConnectorTaskId, ...]]:
    """Connectors and tasks in the order they have after a trip over the wire."""
    return _split(_assigned_entries(connectors, tasks))


def _assignment_bytes(assignment: ConnectAssignment, version: int) -> bytes:
    parts = [
        int16_bytes(version),
        int16_bytes(assignment.error),
        string_bytes(assignment.leader),
        string_bytes(assignment.leader_url),
        int64_bytes(assignment.config_offset),
        int32_lists_bytes(_assigned_entries(assignment.connectors, assignment.tasks)),
    ]
    if version >= 1:
        revoked = _entries(assignment.revoked_connectors, assignment.revoked_tasks)
        parts += [int32_lists_bytes(revoked), int32_bytes(assignment.delay_ms)]
    return b"".join(parts)


def _assigned_entries(connectors: Sequence[str], tasks: Sequence[ConnectorTaskId]) -> _Entries:
    hashed = java_hash_order(connectors, java_copy_capacity(len(connectors)))
    return _entries(hashed, tasks)


def _entries(connectors: Iterable[str], tasks: Iterable[ConnectorTaskId]) -> _Entries:
    by_connector: dict[str, list[int]] = {}
    for connector in connectors:
        by_connector.setdefault(connector, []).append(CONNECTOR_TASK)
    for connector, task in tasks:
        by_connector.setdefault(connector, []).append(task)
    return list(by_connector.items())


def _split(entries: _Entries) -> tuple[tuple[str, ...], tuple[ConnectorTaskId, ...]]:
    connectors = tuple(name for name, numbers in entries for n in numbers if n == CONNECTOR_TASK)
    tasks = tuple(
        ConnectorTaskId(name, n)
        for name, numbers in entries
        for n in numbers
        if n != CONNECTOR_TASK
    )
    return connectors, tasks


def _read_version(reader: ClassicReader) -> int:
    version = reader.int16("version")
    if version < 0:
        raise reader.error(f"version {version} is negative")
    return version


def _read_error(reader: ClassicReader) -> ConnectError:
    number = reader.int16("error")
    try:
        return ConnectError(number)
    except ValueError as error:
        raise reader.error(f"error {number} is unknown") from error


def _read_assignment(reader: ClassicReader) -> ConnectAssignment:
    version = _read_version(reader)
    error = _read_error(reader)
    leader = reader.string("leader")
    leader_url = reader.string("leader_url")
    config_offset = reader.int64("config_offset")
    connectors, tasks = _split(_read_entries(reader, "assignment"))
    revoked_connectors: tuple[str, ...] = ()
    revoked_tasks: tuple[ConnectorTaskId, ...] = ()
    delay_ms = 0
    if version >= 1:
        revoked_connectors, revoked_tasks = _split(_read_entries(reader, "revoked"))
        delay_ms = reader.int32("delay")
    return ConnectAssignment(
        version=version,
        error=error,
        leader=leader,
        leader_url=leader_url,
        config_offset=config_offset,
        connectors=connectors,
        tasks=tasks,
        revoked_connectors=revoked_connectors,
        revoked_tasks=revoked_tasks,
        delay_ms=delay_ms,
    )


def _read_entries(reader: ClassicReader, field: str) -> _Entries:
    def entry() -> tuple[str, list[int]]:
        connector = reader.string(f"{field}.connector")
        return connector, reader.array(f"{field}.tasks", lambda: reader.int32(f"{field}.task"))

    return reader.nullable_array(field, entry) or []
