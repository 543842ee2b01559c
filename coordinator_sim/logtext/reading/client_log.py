"""Reads lines of consumers and Connect workers into trace events.

A client's messages build on each other: a member id is logged once and used later. The last values
of each client and group are kept in `log_state`.
"""

import re
import struct
from collections.abc import Iterator
from typing import Final

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import ConnectorTaskId, TopicPartition
from coordinator_sim.logtext.reading.event_builder import (
    Line,
    Match,
    base_columns,
    build_events,
    error_of,
    line_attrs,
    read_match,
)
from coordinator_sim.logtext.reading.log_state import Carried, Client, ClientKey
from coordinator_sim.logtext.reading.messages import find_client
from coordinator_sim.logtext.wordings.values import whole_number
from coordinator_sim.messages.embedded.connect_protocol import encode_connect_assignment
from coordinator_sim.messages.embedded.consumer_protocol import encode_assignment
from coordinator_sim.messages.embedded.contents import (
    ConnectAssignment,
    ConnectError,
    ConsumerAssignment,
)
from coordinator_sim.trace.events import Event, Source, TraceEvent

_PREFIX: Final = re.compile(
    r"\[(?P<kind>Consumer|Worker) (?:instanceId=(?P<instance>.*?), )?clientId=(?P<client>.*?), "
    r"groupId=(?P<group>.*?)\](?= |$)"
)
_LOGGERS: Final = (
    *("AbstractCoordinator", "ConsumerCoordinator", "WorkerCoordinator", "DistributedHerder"),
    *("ConsumerRebalanceListenerInvoker", "kafka.coordinator", "kafka.coordinator.consumer"),
    "rdkafka",
)
_CONNECT: Final = ("WorkerCoordinator", "DistributedHerder")
_PREFIX_WITHIN: Final = 2_048
_PLAN_MARK: Final = "=Assignment(partitions=["
_FIELD: Final = re.compile(r"\b(\w{1,30})=(?:'([^']*)'|\[([^\]]*)\]|([^,}]*))")
_PROTOCOLS: Final = {"0": "default", "1": "compatible", "2": "sessioned"}
"""Connect's protocol by version. Source: ConnectProtocolCompatibility.java."""
_UNSENDABLE: Final = (ValueError, struct.error)
"""Raised for numbers and names that the protocol cannot carry: the line was damaged."""
_ERRORS_TOLD: Final = frozenset({Event.JOIN_RESP, Event.SYNC_RESP, Event.HEARTBEAT})


class ClientLog:
    """The clients of one log.

    Args:
        source_ref: Names the log in its events.
        clients: What the clients logged before.
        keep_raw: Whether events carry their line.
    """

    def __init__(
        self, source_ref: str, clients: Carried[ClientKey, Client], *, keep_raw: bool
    ) -> None:
        self._source_ref = source_ref
        self._keep_raw = keep_raw
        self._clients = clients

    def read(self, line: Line) -> list[TraceEvent] | None:
        """Return the events of a client's line; empty for irrelevant ones, None for no client's."""
        message, logger = line.envelope.message, line.envelope.logger
        prefix = _PREFIX.search(message, 0, _PREFIX_WITHIN)
        if prefix is None and not logger.endswith(_LOGGERS):
            return None
        found = find_client(message)
        if found is None:
            return []
        match = read_match(found[0], found[1], line)
        if match.lost_group:
            return []
        is_connect = logger.endswith(_CONNECT) or (
            prefix is not None and prefix["kind"] == "Worker"
        )
        source = Source.CONNECT_LOG if is_connect else Source.CONSUMER_LOG
        columns = base_columns(line, source, self._source_ref, keep_raw=self._keep_raw)
        columns["protocol_type"] = "connect" if is_connect else "consumer"
        if prefix is not None:
            columns["group_id"] = prefix["group"]
            columns["client_id"] = prefix["client"]
            columns["group_instance_id"] = prefix["instance"]
        return self._events(match, line, columns)

    def _events(self, match: Match, line: Line, columns: dict[str, object]) -> list[TraceEvent]:
        group_id = str(match.values.get("group_id", columns.get("group_id", "")))
        client = self._clients.get((str(columns.get("client_id", "")), group_id), Client)
        event = match.row.event
        if match.row.name == "c-rejoin-reason":
            client.rejoin_reason = match.values.get("client_reason")
        if event is None:
            return []
        if event is Event.JOIN_REQ:
            columns["client_reason"], client.rejoin_reason = client.rejoin_reason, None
        attrs = line_attrs(line, match.row.attrs)
        if event in _ERRORS_TOLD:
            no_error = attrs.pop("error", None) is not None
            columns["error_code"] = (
                ErrorCode.NONE if no_error else error_of(match.values.get("error_text", ""))
            )
        _remember(client, match)
        if client.member_id:
            columns["member_id"] = client.member_id
        if client.generation is not None and "delta" not in attrs:
            columns["generation"] = client.generation
        if event is not Event.JOIN_REQ:
            columns["protocol_name"] = client.protocol_name
        if match.row.name == "c-computed":
            return _computed(match, line, columns, attrs)
        if match.row.name == "w-assigned":
            _fill_worker(match, columns, attrs)
        return build_events(match, line, columns, attrs)


def _remember(client: Client, match: Match) -> None:
    values = match.values
    if "member_id" in values:
        client.member_id = values["member_id"]
    if "generation" in values:
        client.generation = whole_number(values["generation"])
    client.protocol_name = values.get("protocol_name", client.protocol_name)
    if "version" in values:
        client.protocol_name = _PROTOCOLS.get(values["version"])


def _computed(
    match: Match, line: Line, columns: dict[str, object], attrs: dict[str, str]
) -> list[TraceEvent]:
    """Return the leader's whole plan: one ASSIGNED per member whose entry is complete."""
    columns["leader_id"] = columns.pop("member_id", None)
    # The client named in the prefix is the leader; only the plan has the members' own ids.
    columns["client_id"] = None
    columns["group_instance_id"] = None
    text = match.values.get("map", line.envelope.message.partition(": {")[2])
    events = []
    for member_id, partitions in _plan_entries(text):
        try:
            assignment = encode_assignment(ConsumerAssignment(partitions=_partitions(partitions)))
        except _UNSENDABLE:
            continue
        own = columns | {"member_id": member_id, "assignment": assignment}
        events.append(TraceEvent(event=Event.ASSIGNED, attrs=attrs, **own))  # type: ignore[arg-type]
    return events


def _plan_entries(text: str) -> Iterator[tuple[str, str]]:
    """Yield member id and partitions of each entry that is not cut off."""
    start = 0
    while (mark := text.find(_PLAN_MARK, start)) >= 0:
        end = text.find("]", mark)
        closed = text.find(")", end)
        if end < 0 or closed < 0:
            return
        yield text[start:mark].removeprefix(", "), text[mark + len(_PLAN_MARK) : end]
        start = closed + 1


def _fill_worker(match: Match, columns: dict[str, object], attrs: dict[str, str]) -> None:
    """Add a worker's own assignment, as the bytes that it was read from."""
    text = match.values.get("assignment_text")
    if text is None:
        return
    fields = {name: one or several or bare for name, one, several, bare in _FIELD.findall(text)}
    version = match.values.get("version", "0")
    try:
        columns["assignment"] = encode_connect_assignment(_worker_assignment(version, fields))
    except _UNSENDABLE:
        attrs["assignment_text"] = text
        return
    columns["leader_id"] = fields.get("leader") or None
    columns["protocol_name"] = _PROTOCOLS.get(version)
    attrs["error"] = fields.get("error") or "0"
    if version != "0":
        attrs["delta"] = "1"


def _worker_assignment(version: str, fields: dict[str, str]) -> ConnectAssignment:
    return ConnectAssignment(
        version=int(version),
        error=ConnectError(int(fields.get("error") or 0)),
        leader=fields.get("leader", ""),
        leader_url=fields.get("leaderUrl", ""),
        config_offset=int(fields.get("offset") or -1),
        connectors=_names(fields.get("connectorIds")),
        tasks=_tasks(fields.get("taskIds")),
        revoked_connectors=_names(fields.get("revokedConnectorIds")),
        revoked_tasks=_tasks(fields.get("revokedTaskIds")),
        delay_ms=int(fields.get("delay") or 0),
    )


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name for name in (text or "").split(", ") if name)


def _tasks(text: str | None) -> tuple[ConnectorTaskId, ...]:
    return tuple(
        ConnectorTaskId(name, int(number)) for name, number in map(_split_number, _names(text))
    )


def _partitions(text: str) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(topic, int(number)) for topic, number in map(_split_number, _names(text))
    )


def _split_number(name: str) -> tuple[str, str]:
    """Split `a-b-3` into `a-b` and 3; a name without a number counts as number 0."""
    topic, _, number = name.rpartition("-")
    return (topic, number) if number.isdigit() else (name, "0")
