"""Compares a client's port with a recording of the real client: requests and their times.

The port is driven as the recorded application was, its requests get the recorded answers at their
recorded instants, and its requests are compared with the recorded ones. Metadata and lookups of
the coordinator are answered but not compared: their number depends on a client's transport.
"""

import heapq
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from coordinator_sim.clients.contract import ClientPort
from coordinator_sim.clients.effects import (
    Closed,
    Connect,
    Disconnect,
    Effect,
    Effects,
    PollReturned,
    ResetPositions,
    RunCallback,
    Send,
)
from coordinator_sim.clients.network import FOREVER
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.codec.frames import decode_request, encode_request
from coordinator_sim.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from coordinator_sim.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from coordinator_sim.messages.offset_commit import OffsetCommitRequest
from coordinator_sim.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from coordinator_sim.messages.requests import Request, Response
from coordinator_sim.messages.schema import ZERO_UUID
from coordinator_sim.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from coordinator_sim_conformance.recorded.recording import (
    COMPARED,
    NODE,
    PARTITION_COUNT,
    TOPIC,
    Exchange,
    Recording,
)

TOLERANCE_MS: Final = 75
"""Allowed difference of instants: a busy machine's clock, far below any interval or backoff."""
_ROUND_TRIP_MS: Final = 1
_POLL_MS: Final = 100


class RecordedPort(ClientPort, Protocol):
    """The calls to a port beyond `ClientPort`."""

    def advance_position(self, partition: TopicPartition, offset: int) -> None:
        """Record consumption up to `offset`."""
        ...

    def positions_found(self, found: Mapping[TopicPartition, int], now_ms: int) -> Effects:
        """Adopt start positions of partitions without a committed offset."""
        ...

    def fetch_completed(self, now_ms: int) -> Effects:
        """Return from a poll that waits for records."""
        ...

    def subscribe(self, topics: Sequence[str], now_ms: int) -> Effects:
        """Replace the subscription."""
        ...

    def commit(
        self, offsets: Mapping[TopicPartition, int], *, sync: bool, now_ms: int
    ) -> tuple[int, Effects]:
        """Commit the offsets."""
        ...


class Difference(Struct, frozen=True):
    """A difference between the port and the recording."""

    at_ms: int
    what: str


def _ignore(note: str) -> None:
    """Drop a note."""


class Rehearsal:
    """Plays one recording with a port.

    Args:
        recording: Behaviour of the real client.
        port: Port to compare, not started yet.
        tolerance_ms: Allowed difference of instants; more where backoffs with jitter add up.
        compared: APIs whose requests must equal the recorded ones.
        poll_ms: Timeout of the application's polls.
        on_note: Takes the notes that are not about a consumer.
    """

    def __init__(
        self,
        recording: Recording,
        port: RecordedPort,
        *,
        tolerance_ms: int = TOLERANCE_MS,
        compared: Sequence[ApiKey] = COMPARED,
        poll_ms: int = _POLL_MS,
        on_note: Callable[[str], None] = _ignore,
    ) -> None:
        self._compared = compared
        self._poll_ms = poll_ms
        self._on_note = on_note
        self._tolerance_ms = tolerance_ms
        self._recording = recording
        self._port = port
        self._order = count()
        self._events: list[tuple[int, int, Callable[[int], Effects]]] = []
        self._expected = {
            api: [e for e in recording.exchanges if e.api is api]
            for api in (*compared, ApiKey.FIND_COORDINATOR)
        }
        self._met = dict.fromkeys(self._expected, 0)
        self._is_busy = False
        self._is_closing = False
        self._is_closed = False
        self._now_ms = 0
        self._returns = deque(ms for ms, note in recording.notes if note == "returned")
        self._tells_returns = bool(self._returns)
        self._frozen = _intervals(recording.notes)
        self._closes: dict[int, int] = {}
        """When the port itself closed a connection last, by node."""
        self._read: dict[TopicPartition, int] = {}
        """Offsets that the application has got, and not committed by itself."""
        self.differences: list[Difference] = []

    @property
    def compared_count(self) -> int:
        """Number of requests found in the recording."""
        return sum(self._met[api] for api in self._compared)

    def play(self) -> list[Difference]:
        """Drive the port to the end of the recording; return differences in order of time."""
        recording = self._recording
        for at_ms, note in recording.notes:
            self._at(at_ms, self._note_action(note))
        for at_ms, node_id in recording.closed:
            is_own = (at_ms, node_id) in recording.given_up
            if at_ms < recording.ended_at_ms - _ROUND_TRIP_MS and not is_own:
                self._at(at_ms, partial(self._broken, node_id))
        while not self._is_closed and self._step():
            pass
        for api in self._compared:
            for missing in self._expected[api][self._met[api] :]:
                if missing.at_ms <= recording.ended_at_ms - self._tolerance_ms:
                    self._differ(missing.at_ms, f"{api.name} is missing")
        self.differences.sort(key=lambda difference: difference.at_ms)
        return self.differences

    def _step(self) -> bool:
        deadline_ms = self._port.next_deadline_ms()
        event_ms = self._events[0][0] if self._events else None
        instants = [ms for ms in (deadline_ms, event_ms) if ms is not None]
        if not instants or min(instants) > self._recording.ended_at_ms:
            return False
        self._now_ms = self._awake_ms(max(self._now_ms, min(instants)))
        if event_ms is not None and event_ms <= min(instants):
            _, _, action = heapq.heappop(self._events)
            self._carry_out(action(self._now_ms))
        else:
            self._carry_out(self._port.expire(self._now_ms))
        return True

    def _awake_ms(self, at_ms: int) -> int:
        """Return the instant, or when the process goes on that is frozen then."""
        return next((end for begin, end in self._frozen if begin <= at_ms < end), at_ms)

    def _at(self, at_ms: int, action: Callable[[int], Effects]) -> None:
        heapq.heappush(self._events, (at_ms, next(self._order), action))

    # The application.

    def _note_action(self, note: str) -> Callable[[int], Effects]:
        match note.split():
            case ["subscribe"]:
                return lambda now_ms: self._port.poll(now_ms, self._poll_ms)
            case ["position", partition, offset, *topic]:
                where = TopicPartition(topic[0] if topic else TOPIC, int(partition))
                return lambda _: self._consumed(where, int(offset))
            case ["subscribed", *topics]:
                return lambda now_ms: self._port.subscribe(topics, now_ms)
            case ["commit"]:
                return self._commit
            case ["busy"]:
                return self._busy
            case ["polling"]:
                return self._polling
            case ["closing", *_]:
                self._on_note(note)
                return self._close
            case _:
                return partial(self._noted, note)

    def _noted(self, note: str, now_ms: int) -> Effects:
        del now_ms
        self._on_note(note)
        return ()

    def _consumed(self, partition: TopicPartition, offset: int) -> Effects:
        self._port.advance_position(partition, offset)
        self._read[partition] = offset
        return ()

    def _commit(self, now_ms: int) -> Effects:
        offsets, self._read = self._read, {}
        return self._port.commit(offsets, sync=True, now_ms=now_ms)[1]

    def _busy(self, now_ms: int) -> Effects:
        self._is_busy = True
        return self._port.fetch_completed(now_ms)

    def _polling(self, now_ms: int) -> Effects:
        self._is_busy = False
        return self._port.poll(now_ms, self._poll_ms)

    def _close(self, now_ms: int) -> Effects:
        self._is_closing = True
        return self._port.close(now_ms, 30_000)

    def _poll_again(self, now_ms: int) -> Effects:
        if self._is_busy or self._is_closing:
            return ()
        return self._port.poll(now_ms, self._poll_ms)

    def _returned_ms(self) -> int:
        """Return when the application's callback ends: as recorded, or at once if nothing is.

        A callback that had not ended in the recording does not end here.
        """
        if not self._tells_returns:
            return self._now_ms
        recorded_ms = self._returns.popleft() if self._returns else FOREVER
        return max(self._now_ms, recorded_ms)

    # The network.

    def _broken(self, node_id: int, now_ms: int) -> Effects:
        closed_ms = self._closes.get(node_id)
        is_own = closed_ms is not None and now_ms - closed_ms <= self._tolerance_ms
        if self._is_closing or is_own:
            return ()
        return self._port.on_disconnected(node_id, now_ms)

    def _carry_out(self, effects: Effects) -> None:
        for effect in effects:
            self._carry_out_one(effect)

    def _carry_out_one(self, effect: Effect) -> None:
        now_ms = self._now_ms
        match effect:
            case Send(_, correlation_id, request):
                self._sent(correlation_id, request)
            case Connect(node_id):
                self._connect(node_id)
            case RunCallback(token=token):
                at_ms = self._returned_ms()
                self._at(at_ms, lambda ms: self._port.callback_completed(token, None, ms))
            case ResetPositions(partitions=partitions):
                found = dict.fromkeys(partitions, 0)
                self._at(now_ms, lambda ms: self._port.positions_found(found, ms))
            case PollReturned():
                self._at(now_ms, self._poll_again)
            case Closed():
                self._is_closed = True
            case Disconnect(node_id):
                self._closes[node_id] = now_ms
            case _:
                pass

    def _connect(self, node_id: int) -> None:
        """Open at once, but not while the recorded broker was unreachable.

        After a break without an outage it opens when the recorded connection did: the delay of a
        reconnect depends on the client's transport.
        """
        now_ms, recording = self._now_ms, self._recording
        outage = recording.outage
        if outage and outage[0] <= now_ms <= outage[-1]:
            self._at(now_ms + _ROUND_TRIP_MS, lambda ms: self._port.on_disconnected(node_id, ms))
            return
        broken = [ms for ms, node in recording.closed if node == node_id and ms <= now_ms]
        at_ms = now_ms
        if not outage and broken:
            again = [ms for ms, node in recording.opened if node == node_id and ms > broken[-1]]
            at_ms = max(now_ms, again[0] if again else now_ms)
        self._at(at_ms + _ROUND_TRIP_MS, lambda ms: self._port.on_connected(node_id, ms))

    def _sent(self, correlation_id: int, request: Request) -> None:
        api = request.api_key
        if isinstance(request, MetadataRequest):
            answer = _cluster(request, self._recording.topics, self._now_ms + self._tolerance_ms)
            self._answer(self._now_ms + _ROUND_TRIP_MS, correlation_id, answer)
        elif isinstance(request, FindCoordinatorRequest):
            self._answer(self._found_ms(), correlation_id, _coordinator(request))
        elif isinstance(request, OffsetFetchRequest) and api not in self._compared:
            self._answer(self._now_ms + _ROUND_TRIP_MS, correlation_id, _committed(request))
        elif api in self._compared:
            self._compare(correlation_id, request)

    def _found_ms(self) -> int:
        """Return when a look-up is answered: as a recorded one under way, or a round trip later."""
        now_ms = self._now_ms
        for lookup in self._expected[ApiKey.FIND_COORDINATOR]:
            answered_ms = lookup.answered_at_ms
            if lookup.at_ms - self._tolerance_ms <= now_ms < (answered_ms or 0):
                return answered_ms or now_ms
        return now_ms + _ROUND_TRIP_MS

    def _compare(self, correlation_id: int, request: Request) -> None:
        api, now_ms = request.api_key, self._now_ms
        number = self._met[api]
        if number >= len(self._expected[api]):
            if now_ms <= self._recording.ended_at_ms - self._tolerance_ms:
                self._differ(now_ms, f"{api.name} more than recorded: {request}")
            return
        self._met[api] = number + 1
        expected = self._expected[api][number]
        if abs(now_ms - expected.at_ms) > self._tolerance_ms:
            self._differ(now_ms, f"{api.name} number {number + 1}, recorded at {expected.at_ms}")
        said, recorded = self._on_the_wire(request, expected), _plain(expected.request)
        if said != recorded:
            self._differ(now_ms, f"{api.name}: {said}, recorded {recorded}")
        if expected.answered_at_ms is not None and expected.response is not None:
            self._answer(
                max(now_ms, expected.answered_at_ms), correlation_id, _named(expected.response)
            )

    def _on_the_wire(self, request: Request, expected: Exchange) -> Request:
        """Return the request in the form of the client's version."""
        ids = self._recording.topic_ids
        frame = encode_request(_with_ids(request, ids), expected.version, correlation_id=0)
        return _plain(decode_request(frame)[1])

    def _answer(self, at_ms: int, correlation_id: int, response: Response) -> None:
        self._at(at_ms, lambda ms: self._port.on_response(correlation_id, response, ms))

    def _differ(self, at_ms: int, what: str) -> None:
        self.differences.append(Difference(at_ms, what))


def _committed(request: OffsetFetchRequest) -> OffsetFetchResponse:
    """Return 0 as the offset of every partition that is asked for."""
    return OffsetFetchResponse(
        groups=tuple(
            OffsetFetchResponseGroup(
                group_id=group.group_id,
                topics=tuple(
                    OffsetFetchResponseTopics(
                        topic.name,
                        topic.topic_id,
                        tuple(
                            OffsetFetchResponsePartitions(number, 0)
                            for number in topic.partition_indexes
                        ),
                    )
                    for topic in group.topics or ()
                ),
            )
            for group in request.groups
        )
    )


def _coordinator(request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    found = Coordinator(
        key="".join(request.coordinator_keys[:1]),
        node_id=NODE.node_id,
        host=NODE.host,
        port=NODE.port,
        error_message=None,
    )
    return FindCoordinatorResponse(coordinators=(found,))


def _cluster(
    request: MetadataRequest, topics: Sequence[tuple[int, MetadataResponseTopic]], until_ms: int
) -> MetadataResponse:
    """Return the topics that are asked for, as they were recorded; the one topic without that.

    Of what the client was told of a topic the last by that instant counts, or else the first.
    """
    recorded: dict[bytes, MetadataResponseTopic] = {}
    for at_ms, topic in topics:
        if at_ms <= until_ms or topic.topic_id not in recorded:
            recorded[topic.topic_id] = topic
    if not recorded:
        partitions = tuple(
            MetadataResponsePartition(partition_index=n, leader_id=NODE.node_id, leader_epoch=0)
            for n in range(PARTITION_COUNT)
        )
        recorded[ZERO_UUID] = MetadataResponseTopic(name=TOPIC, partitions=partitions)
    wanted = request.topics
    asked = tuple(
        topic
        for topic in recorded.values()
        if wanted is None
        or any(each.name == topic.name or each.topic_id == topic.topic_id for each in wanted)
    )
    return MetadataResponse(brokers=(NODE,), topics=asked)


def _intervals(notes: Sequence[tuple[int, str]]) -> list[tuple[int, int]]:
    """Return when the process was frozen, from the notes that say so."""
    begins = [ms for ms, note in notes if note == "frozen"]
    ends = [ms for ms, note in notes if note == "thawed"]
    return list(zip(begins, ends, strict=True))


def _with_ids(request: Request, ids: dict[str, bytes]) -> Request:
    """Return the request with the ids of its topics, which only some clients know."""
    if isinstance(request, OffsetCommitRequest):
        topics = tuple(
            msgspec.structs.replace(topic, topic_id=ids.get(topic.name, ZERO_UUID))
            for topic in request.topics
        )
        return msgspec.structs.replace(request, topics=topics)
    if isinstance(request, OffsetFetchRequest):
        groups = tuple(
            msgspec.structs.replace(
                group,
                topics=tuple(
                    msgspec.structs.replace(topic, topic_id=ids.get(topic.name, ZERO_UUID))
                    for topic in group.topics or ()
                ),
            )
            for group in request.groups
        )
        return msgspec.structs.replace(request, groups=groups)
    return request


def _plain(request: Request) -> Request:
    """Return a commit without leader epochs and with sorted partitions: ports have no records."""
    if isinstance(request, StreamsGroupHeartbeatRequest):
        return _in_order(request)
    if not isinstance(request, OffsetCommitRequest):
        return request
    topics = tuple(
        msgspec.structs.replace(
            topic,
            partitions=tuple(
                msgspec.structs.replace(partition, committed_leader_epoch=-1)
                for partition in sorted(topic.partitions, key=lambda p: p.partition_index)
            ),
        )
        for topic in request.topics
    )
    return msgspec.structs.replace(request, topics=topics)


def _in_order(request: StreamsGroupHeartbeatRequest) -> StreamsGroupHeartbeatRequest:
    """Return a heartbeat whose partitions ascend: Java's order differs from run to run."""
    roles = ("active_tasks", "standby_tasks", "warmup_tasks")
    ordered = {
        role: tuple(
            msgspec.structs.replace(each, partitions=tuple(sorted(each.partitions)))
            for each in getattr(request, role)
        )
        for role in roles
        if getattr(request, role) is not None
    }
    return msgspec.structs.replace(request, **ordered)


def _named(response: Response) -> Response:
    """Return the response with the topic's name where the version has only its id."""
    topics = getattr(response, "topics", None)
    if topics is not None:
        named = tuple(msgspec.structs.replace(t, name=t.name or TOPIC) for t in topics)
        return msgspec.structs.replace(response, topics=named)
    groups = getattr(response, "groups", None)
    if groups is not None:
        return msgspec.structs.replace(
            response,
            groups=tuple(
                msgspec.structs.replace(
                    group,
                    topics=tuple(
                        msgspec.structs.replace(t, name=t.name or TOPIC) for t in group.topics
                    ),
                )
                for group in groups
            ),
        )
    return response
