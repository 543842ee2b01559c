"""ShareFetch and ShareAcknowledge: checks, sessions, and the answer when all of it is known.

Source: kafka 4.3.1, KafkaApis.handleShareFetchRequest, handleFetchFromShareFetchRequest,
handleShareAcknowledgeRequest and handleAcknowledgements.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from coordinator_sim.broker.cluster_parts import ClusterParts
from coordinator_sim.broker.contract import Call, Handlers, Instants
from coordinator_sim.broker.groups.group_checks import Offers, is_member_id
from coordinator_sim.broker.purgatory import Place
from coordinator_sim.broker.records.fetch_request import FetchParams, Isolation
from coordinator_sim.broker.records.fetch_sessions import FINAL_EPOCH, FetchPlace
from coordinator_sim.broker.replicas.replica_manager import LeaderTags
from coordinator_sim.broker.security.authorizer import Operation, ResourceType
from coordinator_sim.broker.shares.acknowledgements import (
    Acknowledgements,
    Batches,
    Outcomes,
    Renewal,
    acknowledgements_of,
    outcome,
)
from coordinator_sim.broker.shares.answers import (
    Found,
    acknowledged,
    fetched,
    size_bytes,
    unread,
    with_outcomes,
)
from coordinator_sim.broker.shares.delayed_fetch import ShareFetch
from coordinator_sim.broker.shares.sessions import (
    SessionKey,
    SessionTerms,
    ShareFetchContext,
    new_context,
)
from coordinator_sim.broker.shares.share_partition_manager import SharePartitionManager
from coordinator_sim.errors import OperationAborted
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.states import GroupProtocol
from coordinator_sim.messages.share_acknowledge import (
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
)
from coordinator_sim.messages.share_fetch import (
    FetchTopic,
    ForgottenTopic,
    ShareFetchRequest,
    ShareFetchResponse,
)

_RENEWS_SINCE: Final = 2
_ACQUIRE_MODES: Final = frozenset({0, 1})
"""Others make Kafka throw. Source: ShareAcquireMode.forId."""
_CONSUMER: Final = -1
_NEWEST_FETCH: Final = 18
"""Share partitions read as consumers of the newest Fetch do, except that only leaders let them."""
LOCK_DURATION: Final = "share.record.lock.duration.ms"
_ISOLATION: Final = "share.isolation.level"


class ShareApis:
    """Answers ShareFetch and ShareAcknowledge.

    Args:
        cluster: The parts of the cluster.
        offers: The protocols of groups that are on now.
        brokers: The share partitions of a broker.
    """

    def __init__(
        self,
        cluster: ClusterParts,
        *,
        offers: Offers,
        brokers: Callable[[int], SharePartitionManager],
    ) -> None:
        self._cluster = cluster
        self._hosted = cluster.hosted
        self._access = cluster.access
        self._configs = cluster.configs
        self._profile = cluster.settings.profile
        self._offers = offers
        self._brokers = brokers

    def handlers(self) -> Handlers:
        """The handlers of both."""
        return {
            ApiKey.SHARE_FETCH: self._fetch,
            ApiKey.SHARE_ACKNOWLEDGE: self._acknowledge,
        }

    # -- ShareFetch ------------------------------------------------------------------------

    def _fetch(self, call: Call[ShareFetchRequest]) -> ShareFetchResponse | None:
        request = call.request
        error = self._refusal(call.context, request.group_id, request.member_id)
        renews = call.context.api_version >= _RENEWS_SINCE and request.is_renew_ack
        if error is ErrorCode.NONE and renews and _wants_records(request):
            error = ErrorCode.INVALID_REQUEST
        if error is not ErrorCode.NONE:
            return ShareFetchResponse(error_code=error)
        shares = self._brokers(call.broker_id)
        topics = _once(request.topics)
        context = new_context(shares.sessions, self._terms(call, topics))
        if context is ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            self._refuse_later(call)
            return None
        if isinstance(context, ErrorCode):
            return ShareFetchResponse(error_code=context)
        answering = _Answering(self, call, context)
        if any(each.acknowledgement_batches for topic in topics for each in topic.partitions):
            renewal = Renewal(call.context.api_version >= _RENEWS_SINCE, call.request.is_renew_ack)
            read = acknowledgements_of(topics, self._hosted.image.topic_names, renewal)
            try:
                self._take(shares, call, read, answering.acknowledged)
            except OperationAborted:
                return ShareFetchResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
        else:
            answering.acknowledged({})
        if renews:
            # The lock must not run out again while records are waited for. Source: KIP-1222.
            answering.fetched({})
            return None
        return self._read(shares, call, context, answering.fetched)

    def _refusal(
        self, context: RequestContext, group_id: str | None, member_id: str | None
    ) -> ErrorCode:
        """The error of a request as a whole; its checks are in Kafka's order."""
        if GroupProtocol.SHARE not in self._offers:
            return ErrorCode.UNSUPPORTED_VERSION
        if group_id is None:
            return self._nameless
        if not self._access.allows(context, Operation.READ, ResourceType.GROUP, group_id):
            return ErrorCode.GROUP_AUTHORIZATION_FAILED
        if member_id is None:
            return self._nameless
        return ErrorCode.NONE if is_member_id(member_id) else ErrorCode.INVALID_REQUEST

    @property
    def _nameless(self) -> ErrorCode:
        """The error of a request that names no group, or no member; Kafka threw at first."""
        refuses = self._profile.share_fetch_refuses_null_names
        return ErrorCode.INVALID_REQUEST if refuses else ErrorCode.UNKNOWN_SERVER_ERROR

    def _terms(self, call: Call[ShareFetchRequest], topics: tuple[FetchTopic, ...]) -> SessionTerms:
        names = self._hosted.image.topic_names
        wanted = tuple(
            FetchPlace(topic.topic_id, names.get(topic.topic_id), each.partition_index)
            for topic in topics
            for each in topic.partitions
        )
        acknowledges = any(
            each.acknowledgement_batches for topic in topics for each in topic.partitions
        )
        return SessionTerms(
            _key(call),
            call.request.share_session_epoch,
            wanted,
            _forgotten(call.request.forgotten_topics_data),
            acknowledges,
            call.connection,
        )

    def _refuse_later(self, call: Call[ShareFetchRequest]) -> None:
        """Refuse a fetch for which there is no session, after the time that it may wait."""
        refused = ShareFetchResponse(error_code=ErrorCode.SHARE_SESSION_LIMIT_REACHED)

        def tell(_now: Instants) -> None:
            self._cluster.answer(call.context.token, refused)

        self._cluster.scheduler.at_wall_ms(call.now.wall_ms + call.request.max_wait_ms, tell)

    def _read(
        self,
        shares: SharePartitionManager,
        call: Call[ShareFetchRequest],
        context: ShareFetchContext,
        then: Callable[[Found], None],
    ) -> ShareFetchResponse | None:
        """Fetch from those partitions of the session that may be read."""
        refused: Found = {}
        places: list[FetchPlace] = []
        for place in context.places:
            error = self._place_error(call.context, place)
            if error is ErrorCode.NONE:
                places.append(place)
            else:
                refused[place] = unread(place, error)
        if not places:
            then(refused)
            return None
        request = call.request
        if request.share_acquire_mode not in _ACQUIRE_MODES:
            return ShareFetchResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
        fetch = ShareFetch(
            _key(call),
            self._params(call),
            request.share_acquire_mode,
            request.share_session_epoch,
            request.max_records,
            request.batch_size,
            tuple(places),
            call.connection,
        )
        shares.fetch(fetch, lambda found: then(found | refused), call.now)
        return None

    def _place_error(self, context: RequestContext, place: FetchPlace) -> ErrorCode:
        if place.topic is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        if not self._access.allows(context, Operation.READ, ResourceType.TOPIC, place.topic):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if self._hosted.image.partition(place.topic, place.partition) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.NONE

    def _params(self, call: Call[ShareFetchRequest]) -> FetchParams:
        request = call.request
        most = min(request.max_bytes, int(str(self._configs.broker_value("fetch.max.bytes"))))
        level = self._configs.group_value(request.group_id or "", _ISOLATION)
        committed = level == "read_committed"
        params = FetchParams(
            version=_NEWEST_FETCH,
            replica_id=_CONSUMER,
            max_wait_ms=request.max_wait_ms,
            min_bytes=min(request.min_bytes, most),
            max_bytes=most,
            isolation=Isolation.LAST_STABLE_OFFSET if committed else Isolation.HIGH_WATERMARK,
            has_hard_limit=False,
            leader_only=True,
        )
        if not self._cluster.quotas.is_on:
            return params
        return params.bounded(self._cluster.quotas.max_fetch_bytes(call))

    # -- ShareAcknowledge ------------------------------------------------------------------

    def _acknowledge(self, call: Call[ShareAcknowledgeRequest]) -> ShareAcknowledgeResponse | None:
        request = call.request
        key = _key(call)
        epoch = request.share_session_epoch
        error = self._refusal(call.context, request.group_id, request.member_id)
        shares = self._brokers(call.broker_id)
        if error is ErrorCode.NONE:
            error = shares.sessions.acknowledged(key, epoch)
        if error is not ErrorCode.NONE:
            return ShareAcknowledgeResponse(error_code=error)
        renewal = Renewal(call.context.api_version >= _RENEWS_SINCE, request.is_renew_ack)
        read = acknowledgements_of(request.topics, self._hosted.image.topic_names, renewal)

        def then(outcomes: Outcomes) -> None:
            if epoch == FINAL_EPOCH:
                shares.release_session(key, call.now)
            response = acknowledged(outcomes, self.tags_of(call), self.lock_timeout_ms(key))
            self._cluster.answer(call.context.token, response)

        try:
            self._take(shares, call, read, then)
        except OperationAborted:
            return ShareAcknowledgeResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
        return None

    def _take(
        self,
        shares: SharePartitionManager,
        call: Call[ShareFetchRequest] | Call[ShareAcknowledgeRequest],
        read: Acknowledgements,
        then: Callable[[Outcomes], None],
    ) -> None:
        """Acknowledge what may be. Source: handleAcknowledgements."""
        wanted: Batches = {}
        empty: Outcomes = {}
        for place, batches in read.batches.items():
            error = self._place_error(call.context, place)
            if error is not ErrorCode.NONE:
                read.refused[place] = outcome(place, error)
            elif batches:
                wanted[place] = batches
            else:
                empty[place] = outcome(place)
        if not wanted:
            # QUIRK: partitions without acknowledgements are then not named, as in Kafka.
            then(read.refused)
            return
        shares.acknowledge(
            _key(call), wanted, lambda done: then(done | read.refused | empty), call.now
        )

    # -- answers ---------------------------------------------------------------------------

    def tags_of(
        self, call: Call[ShareFetchRequest] | Call[ShareAcknowledgeRequest]
    ) -> Callable[[Place], LeaderTags]:
        """Tells the sender of a request who leads a partition."""
        return partial(self._hosted.leader_tags, listener=call.context.listener)

    def lock_timeout_ms(self, key: SessionKey) -> int:
        """How long what a member acquires is locked."""
        return int(str(self._configs.group_value(key.group_id, LOCK_DURATION)))

    def finish(
        self,
        call: Call[ShareFetchRequest],
        context: ShareFetchContext,
        found: Found,
        outcomes: Outcomes,
    ) -> None:
        """Answer a ShareFetch of which all is known; the last one ends its session."""
        key = _key(call)
        version, throttle_ms = call.context.api_version, 0
        if self._cluster.quotas.is_on:
            size = partial(size_bytes, context, found, version)
            throttle_ms = max(0, self._cluster.quotas.fetch_throttle_ms(call, size))
        tags_of, lock_timeout_ms = self.tags_of(call), self.lock_timeout_ms(key)
        response = fetched(context, found, tags_of, lock_timeout_ms, throttle_ms)
        names = self._hosted.image.topic_names
        unknown = any(topic.topic_id not in names for topic in response.responses)
        if unknown and not self._profile.share_fetch_tells_unknown_topics:
            # QUIRK: Kafka counts bytes by topics, and throws at one without a name.
            failed = ShareFetchResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
            self._cluster.answer(call.context.token, failed)
            return
        response = with_outcomes(response, outcomes)
        if context.epoch == FINAL_EPOCH:
            self._brokers(call.broker_id).release_session(key, call.now)
        self._cluster.answer(call.context.token, response)


@dataclass(slots=True)
class _Answering:
    """A ShareFetch under way: it is answered when both its parts are."""

    apis: ShareApis
    call: Call[ShareFetchRequest]
    context: ShareFetchContext
    _found: Found | None = None
    _outcomes: Outcomes | None = None

    def fetched(self, found: Found) -> None:
        """What was fetched is known."""
        self._found = found
        self._maybe_finish()

    def acknowledged(self, outcomes: Outcomes) -> None:
        """What became of the acknowledgements is known."""
        self._outcomes = outcomes
        self._maybe_finish()

    def _maybe_finish(self) -> None:
        if self._found is not None and self._outcomes is not None:
            self.apis.finish(self.call, self.context, self._found, self._outcomes)


def _key(call: Call[ShareFetchRequest] | Call[ShareAcknowledgeRequest]) -> SessionKey:
    return SessionKey(call.request.group_id or "", call.request.member_id or "")


def _wants_records(request: ShareFetchRequest) -> bool:
    """Whether a request that renews locks asks for records too, which it may not."""
    return any((request.max_bytes, request.min_bytes, request.max_records, request.max_wait_ms))


def _once(topics: tuple[FetchTopic, ...]) -> tuple[FetchTopic, ...]:
    """Topics and partitions of a request; of those that are named twice the first counts.

    Source: ImplicitLinkedHashCollection.add, by which the request is read.
    """
    kept: dict[bytes, FetchTopic] = {}
    for topic in topics:
        if topic.topic_id not in kept:
            partitions = {each.partition_index: each for each in reversed(topic.partitions)}
            kept[topic.topic_id] = FetchTopic(
                topic.topic_id, tuple(reversed(tuple(partitions.values())))
            )
    return tuple(kept.values())


def _forgotten(topics: tuple[ForgottenTopic, ...]) -> tuple[FetchPlace, ...]:
    return tuple(
        FetchPlace(topic.topic_id, None, each) for topic in topics for each in topic.partitions
    )
