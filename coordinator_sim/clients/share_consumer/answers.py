"""The answers to ShareFetch and ShareAcknowledge, and requests that get none.

Source: kafka 4.4, clients/.../consumer/internals/ShareConsumeRequestManager.java.
"""

from typing import Final

from coordinator_sim.clients.exceptions import RETRIABLE, exception_name
from coordinator_sim.clients.network import PendingRequest
from coordinator_sim.clients.share_consumer.acknowledge_requests import (
    INVALID_RESPONSE,
    AcknowledgeRequest,
    Outcomes,
)
from coordinator_sim.clients.share_consumer.acknowledgements import TopicIdPartition, in_java_order
from coordinator_sim.clients.share_consumer.fetched import CompletedFetch
from coordinator_sim.clients.share_consumer.requests import NETWORK, NO_NODE, ShareRequests
from coordinator_sim.clients.share_consumer.sessions import FINAL_EPOCH
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages import share_acknowledge, share_fetch
from coordinator_sim.messages.metadata import MetadataResponseBroker as Node

_MOVED: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
_UNKNOWN: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
_Answer = share_fetch.ShareFetchResponse | share_acknowledge.ShareAcknowledgeResponse
_Moved = dict[TopicPartition, tuple[int, int]]


class ShareAnswers(ShareRequests):
    """Takes records, outcomes and moved leaders from answers."""

    __slots__ = ()

    def _on_share_fetch(
        self, pending: PendingRequest, response: share_fetch.ShareFetchResponse
    ) -> None:
        """Take records and outcomes (handleShareFetchSuccess)."""
        request, node_id = pending.request, pending.node_id
        assert isinstance(request, share_fetch.ShareFetchRequest)  # noqa: S101 - its kind says so
        session = self._sessions.get(node_id)
        if session is None:
            self._fetch_ended(node_id, request)
            return
        in_flight = self._in_flight.pop(node_id, {})
        if session.answered(response.error_code, is_fetch=True):
            moved: _Moved = {}
            for topic in response.responses:
                for each in topic.partitions:
                    tip = self._tip_of(topic.topic_id, each.partition_index)
                    if tip is not None:
                        self._take_partition(node_id, tip, each, in_flight, request, moved)
            for tip, left in in_java_order(in_flight):
                self._end_unsent(tip, left, INVALID_RESPONSE)
            self._adopt_leaders(moved, response)
        else:
            self._refuse_fetch(response.error_code, in_flight, request)
        self._fetch_ended(node_id, request)

    def _take_partition(
        self,
        node_id: int,
        tip: TopicIdPartition,
        answer: share_fetch.PartitionData,
        in_flight: Outcomes,
        request: share_fetch.ShareFetchRequest,
        moved: _Moved,
    ) -> None:
        completed = in_flight.pop(tip, None)
        if completed is not None:
            error = answer.acknowledge_error_code
            completed.complete(None if error is ErrorCode.NONE else exception_name(error))
            self._outcomes.append(({tip: completed}, request.is_renew_ack))
        self._note_partition_error(tip, answer.error_code, answer.current_leader, moved)
        self._buffer.completed.append(CompletedFetch(tip, node_id, answer))
        if answer.acquired_records:
            self._fetches_more = False

    def _tip_of(self, topic_id: bytes, number: int) -> TopicIdPartition | None:
        """Return a partition of an answer; None for an unknown topic (lookupTopicId)."""
        name = self._name_of(topic_id)
        if name is None:
            return self._sent_tips.get((topic_id, number))
        return TopicIdPartition(topic_id, TopicPartition(name, number))

    def _refuse_fetch(
        self, error: ErrorCode, in_flight: Outcomes, request: share_fetch.ShareFetchRequest
    ) -> None:
        if error is ErrorCode.UNKNOWN_TOPIC_ID:
            self._metadata.request_update()
        is_session = error in (
            ErrorCode.SHARE_SESSION_NOT_FOUND,
            ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        )
        for each in in_flight.values():
            each.complete(NETWORK if is_session else exception_name(error))
        if in_flight:
            self._outcomes.append((in_flight, request.is_renew_ack))

    def _fetch_ended(self, node_id: int, request: share_fetch.ShareFetchRequest) -> None:
        if self._fetching_node == node_id:
            self._fetching_node = NO_NODE
        self._busy.pop(node_id, None)
        if request.share_session_epoch == FINAL_EPOCH:
            self._sessions.pop(node_id, None)

    def _note_partition_error(
        self,
        tip: TopicIdPartition,
        error: ErrorCode,
        leader: share_fetch.LeaderIdAndEpoch | share_acknowledge.LeaderIdAndEpoch,
        moved: _Moved,
    ) -> None:
        """Follow a leader that moved; forget the leader or topic otherwise."""
        if error in _MOVED:
            if NO_NODE not in (leader.leader_id, leader.leader_epoch):
                completed = (leader.leader_id, leader.leader_epoch)
                moved[tip.topic_partition] = completed
                if leader.leader_epoch > self._leaders.get(tip, (NO_NODE, NO_NODE))[1]:
                    self._leaders[tip] = completed
            else:
                self._leaders.pop(tip, None)
        elif error in _UNKNOWN:
            self._leaders.pop(tip, None)
            self._tips.pop(tip.topic_partition, None)

    def _adopt_leaders(self, moved: _Moved, response: _Answer) -> None:
        if moved:
            nodes = (Node(e.node_id, e.host, e.port, e.rack) for e in response.node_endpoints)
            self._metadata.move_leaders(moved, nodes)

    def _share_fetch_lost(self, pending: PendingRequest, error: str) -> None:
        """Fail what was on the way (handleShareFetchFailure)."""
        request, node_id = pending.request, pending.node_id
        assert isinstance(request, share_fetch.ShareFetchRequest)  # noqa: S101 - its kind says so
        session = self._sessions.get(node_id)
        if session is not None:
            session.lost()
        for tip, each in in_java_order(self._in_flight.pop(node_id, {})):
            each.complete(error)
            self._outcomes.append(({tip: each}, request.is_renew_ack))
        self._fetch_ended(node_id, request)

    def _on_share_acknowledge(
        self,
        pending: PendingRequest,
        response: share_acknowledge.ShareAcknowledgeResponse,
        now_ms: int,
    ) -> None:
        """Take outcomes (handleShareAcknowledgeSuccess)."""
        request, message = self._acknowledging.pop(pending.correlation_id), pending.request
        assert isinstance(message, share_acknowledge.ShareAcknowledgeRequest)  # noqa: S101
        moved: _Moved = {}
        if request.is_close:
            for topic in response.responses:
                for each in topic.partitions:
                    tip = self._tip_of(topic.topic_id, each.partition_index)
                    self._take_outcome(request, tip, each.error_code, message, now_ms)
            request.state.succeeded(now_ms)
            request.end_attempt(now_ms)
        elif not request.session.answered(response.error_code, is_fetch=False):
            self._refuse_acknowledge(request, exception_name(response.error_code), now_ms)
        else:
            retries = False
            for topic in response.responses:
                for each in topic.partitions:
                    tip = self._tip_of(topic.topic_id, each.partition_index)
                    if tip is None:
                        continue
                    error = each.error_code
                    self._note_partition_error(tip, error, each.current_leader, moved)
                    is_final = error in _MOVED or error in _UNKNOWN
                    if not is_final and exception_name(error) in RETRIABLE:
                        retries |= request.retry(tip)
                    else:
                        self._take_outcome(request, tip, error, message, now_ms)
            if retries:
                request.state.failed(now_ms)
                request.fail_in_flight(INVALID_RESPONSE, now_ms)
            else:
                request.state.succeeded(now_ms)
                request.end_attempt(now_ms)
        self._adopt_leaders(moved, response)
        self._acknowledge_ended(request)

    def _take_outcome(
        self,
        request: AcknowledgeRequest,
        tip: TopicIdPartition | None,
        error: ErrorCode,
        message: share_acknowledge.ShareAcknowledgeRequest,
        now_ms: int,
    ) -> None:
        if tip is None:
            return
        name = None if error is ErrorCode.NONE else exception_name(error)
        request.complete(tip, name, now_ms, renews=message.is_renew_ack)

    def _refuse_acknowledge(self, request: AcknowledgeRequest, error: str, now_ms: int) -> None:
        request.state.failed(now_ms)
        if error in RETRIABLE:
            request.incomplete.update(request.in_flight)
            request.in_flight.clear()
        else:
            request.fail_in_flight(error, now_ms)
            request.end_attempt(now_ms)

    def _share_acknowledge_lost(self, pending: PendingRequest, error: str, now_ms: int) -> None:
        """Fail what was on the way; it is not repeated (handleShareAcknowledgeFailure)."""
        request, message = self._acknowledging.pop(pending.correlation_id), pending.request
        assert isinstance(message, share_acknowledge.ShareAcknowledgeRequest)  # noqa: S101
        request.session.lost()
        request.state.failed(now_ms)
        for tip, _ in in_java_order(request.in_flight):
            request.complete(tip, error, now_ms, renews=message.is_renew_ack)
        request.end_attempt(now_ms)
        self._acknowledge_ended(request)

    def _acknowledge_ended(self, request: AcknowledgeRequest) -> None:
        self._busy.pop(request.node_id, None)
        if request.is_close:
            self._sessions.pop(request.node_id, None)
