"""ShareFetch and ShareAcknowledge requests: to whom, when, and what their answers do.

One request to a broker is under way at a time. Acknowledgements come first: while some are
unsent or unanswered, nothing is fetched.

Source: kafka 4.4, clients/.../consumer/internals/ShareConsumeRequestManager.java.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final, Unpack

from coordinator_sim.clients.async_consumer.heartbeats import AsyncHeartbeats
from coordinator_sim.clients.async_consumer.promise import Promise
from coordinator_sim.clients.background_requests import MemberSetup
from coordinator_sim.clients.config import RECORD_LIMIT, ShareConsumerConfig
from coordinator_sim.clients.exceptions import exception_name
from coordinator_sim.clients.network import RequestKind
from coordinator_sim.clients.share_consumer.acknowledge_requests import (
    AcknowledgeKind,
    AcknowledgeRequest,
    NodeRequests,
    Outcomes,
    Results,
)
from coordinator_sim.clients.share_consumer.acknowledgements import (
    Acknowledgements,
    NodeAcknowledgements,
    TopicIdPartition,
    in_java_order,
)
from coordinator_sim.clients.share_consumer.fetched import ShareFetchBuffer
from coordinator_sim.clients.share_consumer.sessions import ShareSession
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.orders.iteration_order import integer_hash, java_hash_order
from coordinator_sim.kafka.partitioning import java_string_hash
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.metadata import MetadataResponseBroker as Node

NETWORK: Final = exception_name(ErrorCode.NETWORK_EXCEPTION)
NO_NODE: Final = -1
_FALSE_HASH: Final = 1_237
"""Source: java.lang.Boolean.hashCode."""
ByPlace = Mapping[TopicIdPartition, NodeAcknowledgements]


class ShareRequests(AsyncHeartbeats):
    """The share sessions of a member, and what it fetches and acknowledges in them."""

    __slots__ = (
        "_acknowledging",
        "_buffer",
        "_busy",
        "_close_promise",
        "_fetches_more",
        "_fetching_node",
        "_has_member_id",
        "_in_flight",
        "_is_closing",
        "_leaders",
        "_node_requests",
        "_outcomes",
        "_sent_tips",
        "_sessions",
        "_share_config",
        "_tips",
        "_to_send",
    )

    def __init__(self, config: ShareConsumerConfig, **setup: Unpack[MemberSetup]) -> None:
        super().__init__(config, **setup)
        self._share_config = config
        self._acknowledging: dict[int, AcknowledgeRequest] = {}
        """Requests under way, by correlation id."""
        self._buffer = ShareFetchBuffer()
        self._busy: dict[int, None] = {}
        """Brokers with a request under way."""
        self._fetches_more = False
        self._fetching_node = NO_NODE
        """With `record_limit`: the one broker that is asked for records."""
        self._has_member_id = False
        self._in_flight: dict[int, Outcomes] = {}
        self._is_closing = False
        self._leaders: dict[TopicIdPartition, tuple[int, int]] = {}
        self._node_requests: dict[int, NodeRequests] = {}
        self._outcomes: deque[tuple[Outcomes, bool]] = deque()
        self._tips: dict[TopicPartition, TopicIdPartition] = {}
        self._sent_tips: dict[tuple[bytes, int], TopicIdPartition] = {}
        self._sessions: dict[int, ShareSession] = {}
        self._to_send: dict[int, Outcomes] = {}
        """Acknowledgements for the next ShareFetch to each broker."""
        self._close_promise = Promise()

    def _note_epoch(self, epoch: int | None) -> None:
        """Name the member in sessions from its first epoch on (onMemberEpochUpdated)."""
        del epoch
        self._has_member_id = True

    # Calls of the application.

    def _fetch(self, acknowledgements: ByPlace) -> None:
        """Fetch records once, with acknowledgements on the way (fetch)."""
        self._fetches_more = True
        for tip, (node_id, each) in acknowledgements.items():
            _merge(self._to_send.setdefault(node_id, {}), tip, each)

    def _commit_sync(self, acks: ByPlace, deadline_ms: int, now_ms: int) -> Promise:
        """Acknowledge; the promise is kept with every outcome known (commitSync)."""
        results = Results(self._outcomes, is_gathered=True)
        by_node = _by_node(acks)
        results.remaining = len(acks)
        for node_id, session in self._sessions_in_order():
            outcomes = by_node.pop(node_id, None)
            if outcomes is not None:
                request = self._new_request(
                    AcknowledgeKind.COMMIT_SYNC, node_id, session, results, deadline_ms, now_ms
                )
                request.to_send = outcomes
                self._requests_of(node_id).commits_sync.append(request)
        for node_id, tip, each in _without_session(by_node):
            each.complete(self._unsendable(node_id, tip))
            results.complete(tip, each, now_ms, renews=True)
        results.complete_if_empty(now_ms)
        return results.ended

    def _commit_async(self, acks: ByPlace, deadline_ms: int, now_ms: int) -> None:
        """Acknowledge without waiting (commitAsync)."""
        results = Results(self._outcomes, is_gathered=False)
        by_node = _by_node(acks)
        for node_id, session in self._sessions_in_order():
            for tip, each in in_java_order(by_node.pop(node_id, {})):
                requests = self._requests_of(node_id)
                if requests.commit_async is None:
                    requests.commit_async = self._new_request(
                        AcknowledgeKind.COMMIT_ASYNC, node_id, session, results, deadline_ms, now_ms
                    )
                _merge(requests.commit_async.to_send, tip, each)
        self._fail_unsendable(by_node)

    def _acknowledge_on_close(self, acks: ByPlace, deadline_ms: int, now_ms: int) -> Promise:
        """End every session with the last acknowledgements (acknowledgeOnClose)."""
        results = Results(self._outcomes, is_gathered=True)
        self._is_closing = True
        by_node = _by_node(acks)
        for node_id, outcomes in self._to_send.items():
            for tip, each in in_java_order(outcomes):
                _merge(by_node.setdefault(node_id, {}), tip, each)
        for node_id, session in self._sessions_in_order():
            request = self._new_request(
                AcknowledgeKind.CLOSE, node_id, session, results, deadline_ms, now_ms
            )
            request.to_send = by_node.pop(node_id, {})
            results.remaining += len(request.to_send)
            self._requests_of(node_id).close = request
        self._fail_unsendable(by_node)
        return self._close_promise

    def _new_request(
        self,
        kind: AcknowledgeKind,
        node_id: int,
        session: ShareSession,
        results: Results,
        deadline_ms: int,
        now_ms: int,
    ) -> AcknowledgeRequest:
        state = self._request_state("acknowledge-backoff")
        return AcknowledgeRequest(
            kind,
            node_id,
            session,
            state=state,
            results=results,
            now_ms=now_ms,
            deadline_ms=deadline_ms,
        )

    def _sessions_in_order(self) -> list[tuple[int, ShareSession]]:
        order = java_hash_order(self._sessions, hash_of=integer_hash)
        return [(node_id, self._sessions[node_id]) for node_id in order]

    def _requests_of(self, node_id: int) -> NodeRequests:
        return self._node_requests.setdefault(node_id, NodeRequests())

    def _fail_unsendable(self, by_node: Mapping[int, Outcomes]) -> None:
        for node_id, tip, each in _without_session(by_node):
            self._end_unsent(tip, each, self._unsendable(node_id, tip))

    def _end_unsent(self, tip: TopicIdPartition, unsent: Acknowledgements, error: str) -> None:
        unsent.complete(error)
        self._outcomes.append(({tip: unsent}, True))

    def _unsendable(self, node_id: int, tip: TopicIdPartition) -> str:
        """Return why a broker gets nothing (acknowledgementsCannotBeSentError)."""
        leader_id = self._leaders.get(tip, (NO_NODE, 0))[0]
        if self._node(leader_id) is None:
            leader_id = self._leader_in_metadata(tip.topic_partition)[0]
        if leader_id == NO_NODE:
            self._metadata.request_update()
        elif leader_id != node_id:
            return exception_name(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return NETWORK

    # What the metadata says.

    def _node(self, node_id: int) -> Node | None:
        return next((each for each in self._metadata.nodes if each.node_id == node_id), None)

    def _leader_in_metadata(self, partition: TopicPartition) -> tuple[int, int]:
        """Return a partition's leader and its epoch; -1 for both where it has none."""
        topic = self._metadata.topics.get(partition.topic)
        for each in () if topic is None else topic.partitions:
            if each.partition_index == partition.partition and self._node(each.leader_id):
                return each.leader_id, each.leader_epoch
        return NO_NODE, NO_NODE

    def _find_leaders(self) -> None:
        """Find ids and leaders of the assigned partitions (the first half of poll)."""
        for partition in self._assigned:
            tip = self._tips.get(partition)
            if tip is None:
                topic = self._metadata.topics.get(partition.topic)
                if topic is None:
                    self._metadata.request_update()
                    continue
                tip = self._tips[partition] = TopicIdPartition(topic.topic_id, partition)
            leader = self._leaders.get(tip)
            if leader is not None and self._node(leader[0]) is not None:
                continue
            found = self._leader_in_metadata(partition)
            if found[0] == NO_NODE:
                self._metadata.request_update()
                self._leaders.pop(tip, None)
            else:
                self._leaders[tip] = found

    # Sending.

    def _poll_consume(self, now_ms: int) -> None:
        """Send what is due (ShareConsumeRequestManager.poll); nothing here has a deadline.

        QUIRK: an acknowledgement that waits for its backoff is sent when the thread next wakes.
        """
        if not self._has_member_id:
            if self._is_closing:
                self._close_promise.complete(now_ms)
        elif not self._acknowledges(now_ms) and self._fetches_more:
            self._send_fetches(now_ms)

    def _acknowledges(self, now_ms: int) -> bool:
        """Send acknowledgements; whether they are all there is to do (processAcknowledgements)."""
        for node_id in java_hash_order(self._node_requests, hash_of=integer_hash):
            requests = self._node_requests[node_id]
            if node_id in self._busy or not self._maybe_send(requests.commit_async, now_ms):
                continue
            last = [] if requests.close is None else [requests.close]
            for request in requests.commits_sync or last:
                if node_id in self._busy:
                    break
                self._maybe_send(request, now_ms)
        for node_id in [each for each, one in self._node_requests.items() if one.prune()]:
            del self._node_requests[node_id]
        if not self._node_requests and self._is_closing:
            self._close_promise.complete(now_ms)
        return bool(self._node_requests) or self._is_closing

    def _maybe_send(self, request: AcknowledgeRequest | None, now_ms: int) -> bool:
        """Send a request if it is due; whether later ones may be sent (maybeBuildRequest)."""
        if request is None or not request.is_in_progress or request.expired(now_ms):
            return True
        if not request.state.may_send(now_ms):
            return False
        node_id, session = request.node_id, request.session
        if self._node(node_id) is None:
            request.fail_unsendable(lambda tip: self._unsendable(node_id, tip), now_ms)
            return False
        if request.is_close:
            session.close()
        for tip, each in in_java_order(request.incomplete or request.to_send):
            session.acknowledge(tip, each)
        message = session.acknowledge_request()
        if message is None:
            request.fail_unsendable(lambda tip: self._unsendable(node_id, tip), now_ms)
            return False
        request.is_processed = False
        request.taken_in_flight()
        self._busy[node_id] = None
        request.state.sent()
        sent = self._request(RequestKind.SHARE_ACKNOWLEDGE, node_id, message, now_ms)
        self._acknowledging[sent.correlation_id] = request
        return True

    def _send_fetches(self, now_ms: int) -> None:
        """Send a ShareFetch to each broker that may get one (the second half of poll)."""
        self._find_leaders()
        wanted = self._sessions_to_fetch()
        missing: dict[int, None] = {}
        buffered = self._buffer.nodes()
        for node_id, session in self._sessions_in_order():
            if self._node(node_id) is None:
                missing[node_id] = None
            elif node_id not in self._busy:
                if self._may_close(node_id, session) and node_id not in (*wanted, *buffered):
                    session.close()
                else:
                    self._acknowledge_others(node_id, session)
                wanted[node_id] = session
        for node_id in java_hash_order(wanted, hash_of=self._node_hash):
            may_skip = self._is_limited and node_id != self._fetching_node
            message = wanted[node_id].fetch_request(self._share_config, may_skip=may_skip)
            if message is not None:
                self._busy[node_id] = None
                self._request(RequestKind.SHARE_FETCH, node_id, message, now_ms)
        self._forget_nodes(missing)

    def _sessions_to_fetch(self) -> dict[int, ShareSession]:
        """Add the assigned partitions to the sessions with their leaders; return those."""
        wanted: dict[int, ShareSession] = {}
        for partition in tuple(self._assigned):
            tip = self._tips.get(partition)
            leader = None if tip is None else self._leaders.get(tip)
            if tip is None or leader is None or leader[0] in self._busy:
                continue
            node_id = leader[0]
            session = self._sessions.get(node_id)
            if session is None:
                session = self._sessions[node_id] = ShareSession(self._group_id, self._member_id)
            wanted[node_id] = session
            unsent = self._to_send.get(node_id, {}).pop(tip, None)
            if unsent is not None and not self._may_acknowledge(session, node_id, tip, unsent):
                unsent = None
            session.add(tip, unsent)
            self._sent_tips[tip.topic_id, partition.partition] = tip
            if self._is_limited and self._fetching_node == NO_NODE:
                self._fetching_node = node_id
                # The next fetch begins with other partitions (movePartitionToEnd).
                self._assigned[partition] = self._assigned.pop(partition)
        return wanted

    @property
    def _is_limited(self) -> bool:
        return self._share_config.acquire_mode == RECORD_LIMIT

    def _node_hash(self, node_id: int) -> int:
        """Return the hash of a broker, in more bits than Java keeps. Source: Node.hashCode."""
        node = self._node(node_id)
        host, port = ("", 0) if node is None else (node.host, node.port)
        rack = java_string_hash(node.rack) if node is not None and node.rack is not None else 0
        hashed = 31 * (31 * (31 + java_string_hash(host)) + node_id) + port
        return 31 * (31 * hashed + rack) + _FALSE_HASH

    def _may_acknowledge(
        self, session: ShareSession, node_id: int, tip: TopicIdPartition, unsent: Acknowledgements
    ) -> bool:
        """Whether a session is not new, and takes these (maybeAddAcknowledgements)."""
        if session.is_new:
            self._end_unsent(tip, unsent, NETWORK)
        else:
            self._in_flight.setdefault(node_id, {})[tip] = unsent
        return not session.is_new

    def _acknowledge_others(self, node_id: int, session: ShareSession) -> None:
        """Acknowledge partitions that are fetched no more (prepareRemainingSessionHandler...)."""
        for tip, unsent in in_java_order(self._to_send.get(node_id, {})):
            if self._leaders.get(tip, (NO_NODE, 0))[0] != node_id:
                self._end_unsent(tip, unsent, self._unsendable(node_id, tip))
            elif self._may_acknowledge(session, node_id, tip, unsent):
                session.acknowledge(tip, unsent)
                self._sent_tips[tip.topic_id, tip.topic_partition.partition] = tip
        self._to_send.get(node_id, {}).clear()

    def _may_close(self, node_id: int, session: ShareSession) -> bool:
        """Whether nothing is left of a session (isSessionCloseCandidate)."""
        has_unsent = self._to_send.get(node_id) or self._in_flight.get(node_id)
        return not (self._is_closing or session.is_new or has_unsent) and session.is_empty

    def _forget_nodes(self, missing: Iterable[int]) -> None:
        """Drop sessions with brokers that left (removeSessionHandlersForMissingNodes)."""
        for node_id in missing:
            if node_id not in self._busy:
                for tip, unsent in in_java_order(self._to_send.pop(node_id, {})):
                    self._end_unsent(tip, unsent, NETWORK)
                self._sessions.pop(node_id, None)


def _merge(outcomes: Outcomes, tip: TopicIdPartition, more: Acknowledgements) -> None:
    known = outcomes.get(tip)
    if known is None:
        outcomes[tip] = more
    else:
        known.merge(more)


def _by_node(acks: ByPlace) -> dict[int, Outcomes]:
    """Return acknowledgements by the broker that they are for."""
    found: dict[int, Outcomes] = {}
    for tip, (node_id, each) in acks.items():
        found.setdefault(node_id, {})[tip] = each
    return found


def _without_session(
    by_node: Mapping[int, Outcomes],
) -> Iterable[tuple[int, TopicIdPartition, Acknowledgements]]:
    for node_id in java_hash_order(by_node, hash_of=integer_hash):
        for tip, each in in_java_order(by_node[node_id]):
            yield node_id, tip, each
