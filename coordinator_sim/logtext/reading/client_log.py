"""Reads lines of consumers and Connect workers into trace events.

A client's messages build on each other: a member id is logged once and used later. The last values
of each client and group are kept in `log_state`.
"""

import re
import struct
from collections.abc import Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import ConnectorTaskId, TopicPartition
from coordinator_sim.logtext.reading.envelopes import Envelope
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
from coordinator_sim.logtext.reading.messages import JAVA, NODE, PYTHON, RDKAFKA, Anchored, find
from coordinator_sim.logtext.wordings.kafkajs import FIELDS_OF_JSON
from coordinator_sim.logtext.wordings.values import whole_number
from coordinator_sim.messages.embedded.connect_protocol import encode_connect_assignment
from coordinator_sim.messages.embedded.consumer_protocol import encode_assignment
from coordinator_sim.messages.embedded.contents import (
    ConnectAssignment,
    ConnectError,
    ConsumerAssignment,
)
from coordinator_sim.trace.client_reasons import DELAY_MS, GIVEN_UP, INSTANCE
from coordinator_sim.trace.events import Event, Source, TraceEvent

_PREFIX: Final = re.compile(
    r"\[(?P<kind>Consumer|Worker) (?:instanceId=(?P<instance>.*?), )?clientId=(?P<client>.*?), "
    r"groupId=(?P<group>.*?)\](?= |$)"
)
_STREAM: Final = re.compile(
    r"(?<![\w-])stream-(?P<level>thread|client) \[(?P<name>"
    r"(?:(?P<group>[^\]]+?)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})?[^\]]*)\]"
)
"""A stream thread or a client of Kafka Streams; its application.id, where client.id is not set."""
_INSTANCE: Final = re.compile(r"([^|\[\]\"\s]{1,250})#(?:consumer|producer)-\d{1,9}(?=[|\]\"\s])")
"""The name of an instance of librdkafka: its client id, its type and a number."""
_CONTAINER: Final = re.compile(r"[A-Za-z][\w.-]*(?=\s*\| )|\[[^\]\s]+/[^\]\s]+\](?= )")
"""What Docker Compose or kubectl writes before a line; containers have instances of one name."""
_JAVA_LOGGERS: Final = (
    *("AbstractCoordinator", "ConsumerCoordinator", "WorkerCoordinator", "DistributedHerder"),
    "ConsumerRebalanceListenerInvoker",
)
_PYTHON_LOGGERS: Final = (
    *("kafka.coordinator", "kafka.coordinator.consumer", "kafka.coordinator.heartbeat"),
    "aiokafka.consumer.group_coordinator",
)
_CONNECT: Final = ("WorkerCoordinator", "DistributedHerder")
_SINK_TASK: Final = re.compile(r"WorkerSinkTask\{id=(?P<connector>.+)-(?P<task>\d+)\}")
_PREFIX_WITHIN: Final = 2_048
_PLAN_MARK: Final = "=Assignment(partitions=["
_FIELD: Final = re.compile(r"\b(\w{1,30})=(?:'([^']*)'|\[([^\]]*)\]|([^,}]*))")
_PROTOCOLS: Final = {"0": "default", "1": "compatible", "2": "sessioned"}
"""Connect's protocol by version. Source: ConnectProtocolCompatibility.java."""
_UNSENDABLE: Final = (ValueError, struct.error)
"""Raised for numbers and names that the protocol cannot carry: the line was damaged."""
_SENT: Final = re.compile(r"generationId=(\d{1,10})")
"""The generation that a client's error says it sent."""
_ERRORS_TOLD: Final = frozenset({Event.JOIN_RESP, Event.SYNC_RESP, Event.HEARTBEAT})
_NEW_PROCESS: Final = frozenset({"c-subscribed", "c-worker-started"})
"""Lines of a process that is no member yet, whatever the one before it was."""
_REASONED: Final = frozenset({Event.JOIN_REQ, Event.LEAVE_REQ})
"""Requests whose reason may be in a line above."""
_ANNOUNCED: Final = {
    "r-poll-timeout": Event.LEAVE_REQ,
    "r-session-timeout": Event.LOST,
    "r-lost": Event.REVOKED,
    "p-poll-timeout": Event.LEAVE_REQ,
    "p-poll-timeout-3": Event.LEAVE_REQ,
}
"""Lines -> what a line below, often of a lower level, tells again in other words."""
_LESS_EXACT: Final = frozenset({"r-rejoining", "r-joining"})
"""Lines whose reason is how a rebalance ended, if a line above has why it began."""
_TARGET: Final = re.compile(r"([^\s,(]+)(?:\([^)]*\)| )?\[(\d{1,9})\]")


class Speaker(Struct, frozen=True):
    """The client that wrote a line, as far as the text around its message names it.

    Args:
        rows: Wordings of its library.
        name: What tells instances in one log apart; empty where nothing does.
        columns: Columns that the text names.
        is_worker: Whether it is a Connect worker.
    """

    rows: Anchored
    name: str = ""
    columns: dict[str, object] = {}
    is_worker: bool = False


def speaker_of(envelope: Envelope) -> Speaker | None:
    """Return the client that wrote a line; None where none of a known library did.

    Source: LogContext of kafka's clients; rd_kafka_log_print of librdkafka, and the layouts of
    confluent-kafka-python (log_cb), -go (LogEvent.String) and -dotnet (Loggers.ConsoleLogger).
    """
    message, logger = envelope.message, envelope.logger
    prefix = _PREFIX.search(message, 0, _PREFIX_WITHIN)
    if prefix is not None:
        columns = {
            "group_id": prefix["group"],
            "client_id": prefix["client"],
            "group_instance_id": prefix["instance"],
        }
        is_worker = prefix["kind"] == "Worker" or logger.endswith(_CONNECT)
        return Speaker(JAVA, prefix["client"], columns, is_worker)
    sink = _SINK_TASK.search(message, 0, _PREFIX_WITHIN)
    if sink is not None:
        # Source: kafka 2.3 and later, SinkUtils.consumerGroupId, Worker.baseConsumerConfigs.
        client_id = f"connector-consumer-{sink['connector']}-{sink['task']}"
        columns = {"group_id": f"connect-{sink['connector']}", "client_id": client_id}
        return Speaker(JAVA, client_id, columns)
    stream = _STREAM.search(message, 0, _PREFIX_WITHIN)
    if stream is not None:
        # Source: kafka 4.3, ClientUtils.consumerClientId; KafkaStreams' clientId.
        client_id = stream["name"]
        if stream["level"] == "thread":
            client_id = f"{client_id.removesuffix('-consumer')}-consumer"
        named: dict[str, object] = {"client_id": client_id}
        if stream["group"]:
            named["group_id"] = stream["group"]
        return Speaker(JAVA, client_id, named)
    instance = _INSTANCE.search(message, 0, _PREFIX_WITHIN)
    if instance is not None:
        return Speaker(RDKAFKA, instance[0], {"client_id": instance[1]})
    if "[thrd:" in message:
        return Speaker(RDKAFKA)
    if logger.endswith(_JAVA_LOGGERS):
        return Speaker(JAVA, is_worker=logger.endswith(_CONNECT))
    if envelope.entry is not None:
        return Speaker(NODE)
    is_python = logger.endswith(_PYTHON_LOGGERS)
    return Speaker(PYTHON) if is_python or (not logger and _is_alone(message)) else None


def _is_alone(message: str) -> bool:
    """Whether a message without a logger is a Python client's, from its first word on."""
    found = find(message, PYTHON)
    return found is not None and found[1].start() == 0


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
        speaker = speaker_of(line.envelope)
        if speaker is None:
            return None
        found = find(line.envelope.message, speaker.rows)
        if found is None:
            return []
        match = read_match(found[0], found[1], line)
        if match.lost_group:
            return []
        if speaker.rows is NODE:
            match.values.update(_values_of(line.envelope.entry))
        source = Source.CONNECT_LOG if speaker.is_worker else Source.CONSUMER_LOG
        columns = base_columns(line, source, self._source_ref, keep_raw=self._keep_raw)
        columns["protocol_type"] = "connect" if speaker.is_worker else "consumer"
        columns |= speaker.columns
        if speaker.rows is not RDKAFKA or not speaker.name:
            return self._events(match, line, columns, self._client(speaker, match, columns))
        container = _CONTAINER.match(line.raw)
        name = f"{container[0]} {speaker.name}" if container else speaker.name
        client = self._client(replace(speaker, name=name), match, columns)
        events = self._events(match, line, columns, client)
        return [replace(event, attrs=event.attrs | {INSTANCE: name}) for event in events]

    def _client(self, speaker: Speaker, match: Match, columns: dict[str, object]) -> Client:
        """Return what the client logged before; a line without a group is of its last line's."""
        group_id = match.values.get("group_id", columns.get("group_id"))
        if speaker.name.endswith("-consumer") and "group_id" in columns:
            # Lines of its stream thread name no group.
            self._clients.get((speaker.name, ""), Client).group_id = str(columns["group_id"])
        if "group_id" not in columns:
            last = self._clients.get((speaker.name, ""), Client)
            if group_id is None:
                group_id = None if last.is_shared else last.group_id
            last.is_shared |= last.group_id not in (None, group_id)
            last.group_id = columns["group_id"] = None if group_id is None else str(group_id)
        client = self._clients.get((speaker.name, str(group_id or "")), Client)
        member_id = match.values.get("member_id")
        if not speaker.name and member_id and client.member_id not in (None, member_id):
            client.is_shared = True
        return client

    def _events(
        self, match: Match, line: Line, columns: dict[str, object], client: Client
    ) -> list[TraceEvent]:
        event, name = match.row.event, match.row.name
        _remember(client, match)
        _take_reason(client, match, columns)
        if event is None or _is_repeated(client, match):
            return []
        attrs = line_attrs(line, match.row.attrs)
        if event in _ERRORS_TOLD:
            error = attrs.pop("error", None)
            text = match.values.get("error_text") or match.values.get("client_reason", "")
            columns["error_code"] = error_of(text) if error is None else ErrorCode[error]
        if client.member_id and not (client.is_shared and "member_id" not in match.values):
            columns["member_id"] = client.member_id
        if client.generation is not None and not client.is_shared and "delta" not in attrs:
            columns["generation"] = client.generation
        if event is not Event.JOIN_REQ:
            columns["protocol_name"] = client.protocol_name
        _forget(client, match, columns)
        if name == "c-computed":
            return _computed(match, line, columns, attrs)
        if name == "w-assigned":
            _fill_worker(match, columns, attrs)
        events = build_events(match, line, columns, attrs)
        if name == "r-held":
            partitions, client.listed = _TARGET.findall(client.listed), ""
            return [_assigned(event, partitions) for event in events]
        return _WITH_ASSIGNMENTS[name](events, line) if name in _WITH_ASSIGNMENTS else events


def _take_reason(client: Client, match: Match, columns: dict[str, object]) -> None:
    """Give a request the reason that it or a line above names; keep a reason for the request."""
    reason = match.values.get("client_reason")
    if match.row.event in _REASONED:
        columns["client_reason"] = reason or client.rejoin_reason
        client.rejoin_reason = None
    elif reason and match.row.event is not Event.REVOKED:
        is_kept = client.rejoin_reason and match.row.name in _LESS_EXACT
        client.rejoin_reason = client.rejoin_reason if is_kept else reason


def _is_repeated(client: Client, match: Match) -> bool:
    """Whether a line above was the event of this line already, or one below completes it."""
    if "partition" in match.values:
        return client.unlisted > 0 or not client.listed
    event, ahead = match.row.event, _ANNOUNCED.get(match.row.name)
    is_repeat = event in client.announced and ahead is not event
    left = [one for one in client.announced if one is not event and event is not Event.JOIN_REQ]
    client.announced = (*left, *(() if ahead is None else (ahead,)))
    return is_repeat


def _values_of(entry: dict[str, object] | None) -> dict[str, str]:
    """Return the members of a JSON line that are values of rows."""
    found = {kind: (entry or {}).get(name) for name, kind in FIELDS_OF_JSON.items()}
    return {kind: str(value) for kind, value in found.items() if isinstance(value, str | int)}


def _target(events: list[TraceEvent], line: Line) -> list[TraceEvent]:
    """Return what a member of librdkafka holds, by the broker's word."""
    text = line.envelope.message.rpartition(' "')[2]
    return [_assigned(event, _TARGET.findall(text)) for event in events]


def _joined(events: list[TraceEvent], line: Line) -> list[TraceEvent]:
    """Return the end of kafkajs's join, and what it was assigned."""
    assigned = (line.envelope.entry or {}).get("memberAssignment")
    topics = assigned.items() if isinstance(assigned, dict) else ()
    held = [(str(t), str(n)) for t, own in topics if isinstance(own, list) for n in own]
    return [*events, *(_assigned(event, held) for event in events)]


def _assigned(event: TraceEvent, partitions: list[tuple[str, str]]) -> TraceEvent:
    """Return the event of a member's whole assignment, at the time of another event."""
    try:
        held = tuple(TopicPartition(topic, int(number)) for topic, number in partitions)
        assignment = encode_assignment(ConsumerAssignment(partitions=held))
    except _UNSENDABLE:
        assignment = None
    return replace(event, event=Event.ASSIGNED, error_code=None, assignment=assignment)


_WITH_ASSIGNMENTS: Final = {"r-target": _target, "k-joined": _joined}


def _forget(client: Client, match: Match, columns: dict[str, object]) -> None:
    """Forget what no line after this one is of."""
    if match.row.event is Event.LEAVE_REQ and "client_id" not in columns:
        client.member_id = client.generation = None
    if match.row.name == "c-joining":
        # Up to 2.5 no line tells the answer: what follows may be of the next generation.
        client.generation = None


def _remember(client: Client, match: Match) -> None:
    values = match.values
    if match.row.name in _NEW_PROCESS:
        client.member_id = client.generation = None
    if "member_id" in values:
        client.member_id = values["member_id"]
    if sent := _SENT.search(values.get("error_text", "")):
        client.generation = whole_number(sent[1])
    if "generation" in values:
        client.generation = whole_number(values["generation"])
    elif "member_id" in values and match.row.event is Event.JOIN_RESP:
        client.generation = None
    client.protocol_name = values.get("protocol_name", client.protocol_name)
    if match.row.name == "r-holds":
        client.listed, client.unlisted = "", whole_number(values["partition_count"]) or 0
    elif "partition" in values and client.unlisted:
        client.listed += f"{values['partition']}, "
        client.unlisted -= 1
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
    if fields.get("delay", "0") != "0":
        attrs[DELAY_MS] = fields["delay"]
    revoked = (fields.get(f"revoked{what}Ids") for what in ("Connector", "Task"))
    if given_up := ", ".join(filter(None, revoked)):
        attrs[GIVEN_UP] = given_up
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
