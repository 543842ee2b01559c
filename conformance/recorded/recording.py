"""Requests and answers of one process of a real client, from a file of `tools/record_proxy.py`."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from coordinator_sim.assignors.contract import (
    AssignorMember,
    ConsumerAssignor,
    RebalanceProtocol,
    TopicRacks,
)
from coordinator_sim.clients.effects import COORDINATOR_NODE_OFFSET
from coordinator_sim.errors import DataError
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.codec.frames import decode_request, decode_response
from coordinator_sim.messages.embedded.consumer_protocol import decode_assignment
from coordinator_sim.messages.embedded.contents import ConsumerAssignment
from coordinator_sim.messages.metadata import MetadataResponse, MetadataResponseTopic
from coordinator_sim.messages.metadata import MetadataResponseBroker as Node
from coordinator_sim.messages.offset_fetch import OffsetFetchRequest
from coordinator_sim.messages.requests import Request, Response
from coordinator_sim.messages.schema import ZERO_UUID
from coordinator_sim.messages.sync_group import SyncGroupRequest

NODE: Final = Node(node_id=1, host="127.0.0.1", port=9092)
"""The one broker of every recording."""
TOPIC: Final = "orders"
PARTITION_COUNT: Final = 4
COMPARED: Final = (
    ApiKey.JOIN_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP,
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_FETCH,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.SHARE_GROUP_HEARTBEAT,
    ApiKey.SHARE_FETCH,
    ApiKey.SHARE_ACKNOWLEDGE,
)
"""APIs whose requests must equal the recorded ones."""
_READ: Final = (*COMPARED, ApiKey.STREAMS_GROUP_HEARTBEAT, ApiKey.FIND_COORDINATOR)
_TOGETHER_MS: Final = 20
_GIVEN_UP_MS: Final = 400
"""Age of an unanswered request on a broken connection from which on the client itself broke it."""
_BROKER: Final = "broker"
"""Name of the notes that say when the broker was unreachable."""

Line = dict[str, Any]


class Exchange(Struct, frozen=True):
    """A recorded request, and the instant of its answer; None for never."""

    at_ms: int
    api: ApiKey
    version: int
    request: Request
    answered_at_ms: int | None
    response: Response | None


class Recording(Struct, frozen=True):
    """Record of one process of a client, from its first line to its last.

    Args:
        exchanges: Requests in the order sent.
        notes: Messages of the application, with their instants.
        opened: Instants at which connections opened, by the node they led to.
        closed: Instants at which they broke.
        given_up: Instants at which the client closed them, tired of waiting for an answer.
        ended_at_ms: Instant of the last line.
        outage: Interval in which connections were refused; empty for none.
        topic_ids: Topic ids as the client learnt them, where it names topics by their ids.
        topics: Topics of the Metadata that the client got, each with the instant.
    """

    exchanges: tuple[Exchange, ...]
    notes: tuple[tuple[int, str], ...]
    opened: tuple[tuple[int, int], ...]
    closed: tuple[tuple[int, int], ...]
    given_up: tuple[tuple[int, int], ...]
    ended_at_ms: int
    outage: tuple[int, ...]
    topic_ids: dict[str, bytes]
    topics: tuple[tuple[int, MetadataResponseTopic], ...]


def read_recording(
    path: Path, client_id: str, *, process: int = 0, coordinator_apis: Sequence[ApiKey]
) -> Recording:
    """Read one process of one client from a recording.

    Args:
        path: A file of `tools/record_proxy.py`.
        client_id: Client whose lines are read.
        process: Index of the process, counted by its `start` notes from 0.
        coordinator_apis: APIs that the client sends on the coordinator's connection.

    Raises:
        DataError: the recording has no such process.
    """
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    starts = [
        line["seq"]
        for line in lines
        if line.get("client_id") == client_id and line.get("note") == "start"
    ]
    if process >= len(starts):
        raise DataError(f"{path.name} has {len(starts)} processes of {client_id!r}, not {process}")
    end = starts[process + 1] if process + 1 < len(starts) else lines[-1]["seq"] + 1
    span = [line for line in lines if starts[process] <= line["seq"] < end]
    mine = [line for line in span if line.get("client_id") == client_id]
    connections = {line["conn"]: line["conn"] for line in mine if line["conn"]}
    nodes = {
        number: COORDINATOR_NODE_OFFSET - NODE.node_id
        if any(line["conn"] == number and line.get("api_key") in coordinator_apis for line in mine)
        else NODE.node_id
        for number in connections
    }
    exchanges = tuple(_exchanges(mine))
    return Recording(
        exchanges=exchanges,
        notes=tuple((line["t_ms"], line["note"]) for line in mine if line["dir"] == "note"),
        opened=tuple(
            (line["t_ms"], nodes[line["conn"]])
            for line in span
            if line["dir"] == "open" and line["conn"] in nodes
        ),
        closed=tuple(_broken_connections(mine, nodes)),
        given_up=tuple(_given_up_connections(mine, nodes)),
        ended_at_ms=mine[-1]["t_ms"],
        outage=tuple(line["t_ms"] for line in span if line.get("client_id") == _BROKER),
        topic_ids=_topic_ids(exchanges),
        topics=tuple(_topics(mine)),
    )


def _broken_connections(lines: Sequence[Line], nodes: dict[int, int]) -> Iterator[tuple[int, int]]:
    """Yield connections of the group, by time and broker, that broke rather than were closed."""
    group = {line["conn"]: None for line in lines if line.get("api_key") in COMPARED}
    ends = [(line["t_ms"], line["conn"]) for line in lines if line["dir"] == "eof"]
    instants = [ms for ms, number in ends if number in group]
    for ms, number in ends:
        if any(abs(ms - instant) <= _TOGETHER_MS for instant in instants):
            yield ms, nodes[number]


def _given_up_connections(
    lines: Sequence[Line], nodes: dict[int, int]
) -> Iterator[tuple[int, int]]:
    """Yield connections of the group that broke long after a request that has no answer."""
    asked: dict[int, dict[int, int]] = {number: {} for number in nodes}
    for line in lines:
        match line["dir"]:
            case "req" if line["api_key"] in COMPARED:
                asked[line["conn"]][line["correlation_id"]] = line["t_ms"]
            case "resp":
                asked[line["conn"]].pop(line["correlation_id"], None)
            case "eof":
                since_ms = min(asked[line["conn"]].values(), default=line["t_ms"])
                if line["t_ms"] - since_ms >= _GIVEN_UP_MS:
                    yield line["t_ms"], nodes[line["conn"]]


def _topics(lines: Sequence[Line]) -> Iterator[tuple[int, MetadataResponseTopic]]:
    """Yield each topic of the Metadata, whenever it was told."""
    for line in lines:
        if line["dir"] != "resp" or line["api_key"] != ApiKey.METADATA:
            continue
        frame = bytes.fromhex(line["frame"])
        _, response = decode_response(ApiKey.METADATA, line["api_version"], frame)
        for topic in response.topics if isinstance(response, MetadataResponse) else ():
            yield line["t_ms"], topic


def _exchanges(lines: Sequence[Line]) -> Iterator[Exchange]:
    answers = {
        (line["conn"], line["correlation_id"], line["api_key"]): line
        for line in lines
        if line["dir"] == "resp"
    }
    for line in lines:
        if line["dir"] != "req" or line["api_key"] not in _READ:
            continue
        api = ApiKey(line["api_key"])
        _, request = decode_request(bytes.fromhex(line["frame"]))
        answer = answers.get((line["conn"], line["correlation_id"], line["api_key"]))
        response = None
        if answer is not None:
            frame = bytes.fromhex(answer["frame"])
            _, response = decode_response(api, line["api_version"], frame, request=request)
        yield Exchange(
            line["t_ms"],
            api,
            line["api_version"],
            request,
            None if answer is None else answer["t_ms"],
            response,
        )


def _topic_ids(exchanges: Sequence[Exchange]) -> dict[str, bytes]:
    """Return the id of the one topic, if the client names it by id."""
    for exchange in exchanges:
        request = exchange.request
        if isinstance(request, OffsetFetchRequest):
            for topic in request.groups[0].topics or ():
                if topic.topic_id != ZERO_UUID:
                    return {TOPIC: topic.topic_id}
    return {}


class RecordedAssignor:
    """Repeats the recorded leader's assignments, for clients whose own assignor is not modelled.

    Args:
        recording: Recording whose SyncGroups are the plans, in order.
        assignor: Assignor whose names and user data are used.
    """

    def __init__(self, recording: Recording, assignor: ConsumerAssignor) -> None:
        self._assignor = assignor
        self._plans = [
            exchange.request
            for exchange in recording.exchanges
            if isinstance(exchange.request, SyncGroupRequest) and exchange.request.assignments
        ]

    @property
    def name(self) -> str:
        """Protocol name in JoinGroup."""
        return self._assignor.name

    @property
    def supported_protocols(self) -> tuple[RebalanceProtocol, ...]:
        """Rebalance protocols it can work under."""
        return self._assignor.supported_protocols

    def subscription_user_data(self, topics: Sequence[str]) -> bytes | None:
        """Return the user data for the next JoinGroup."""
        return self._assignor.subscription_user_data(topics)

    def on_assignment(self, assignment: ConsumerAssignment, generation_id: int) -> None:
        """Remember this member's assignment."""
        self._assignor.on_assignment(assignment, generation_id)

    def assign(
        self, topics: TopicRacks, members: Sequence[AssignorMember]
    ) -> dict[str, list[TopicPartition]]:
        """Return the next plan of the recording."""
        del topics, members
        plan = self._plans.pop(0)
        return {
            entry.member_id: list(decode_assignment(entry.assignment).partitions)
            for entry in plan.assignments
        }
