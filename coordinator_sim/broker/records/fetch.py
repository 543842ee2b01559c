"""Fetch: read records from logs, and wait while there are fewer than `min.bytes`.

Source: kafka trunk, KafkaApis.handleFetchRequest; ReplicaManager.fetchMessages; DelayedFetch.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from coordinator_sim.broker.contract import Call, Handlers
from coordinator_sim.broker.purgatory import Place, Purgatory
from coordinator_sim.broker.quotas.quotas import Quotas
from coordinator_sim.broker.records.fetch_request import (
    LEADER_TAGS_SINCE,
    FetchParams,
    forgotten_of,
    metadata_of,
    params_of,
    wanted_of,
)
from coordinator_sim.broker.records.fetch_sessions import (
    INVALID_SESSION_ID,
    FetchContext,
    FetchPlace,
    FetchScope,
    FetchSessionCache,
    FetchTerms,
    Found,
    Wanted,
    response_of,
)
from coordinator_sim.broker.records.log_reads import MAGIC_2_SINCE, LogReader, refusal
from coordinator_sim.broker.replicas.replica_manager import ReplicaManager
from coordinator_sim.broker.scheduler import Jobs, WakeBy
from coordinator_sim.broker.security.access import Access
from coordinator_sim.broker.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.log.format.steps import Steps
from coordinator_sim.messages.codec.compiler import has_tagged_header, response_writer
from coordinator_sim.messages.fetch import (
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)

DEFAULT_FETCH_MAX_BYTES: Final = 55 * 1024 * 1024
"""Default of the broker setting `fetch.max.bytes`."""
_STORAGE_ERROR_SINCE: Final = 6
_TAGGED: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


class FetchApi:
    """Answers Fetch.

    Args:
        partitions: The partitions that the brokers host.
        access: Authorizes requests.
        jobs: Runs long work in steps, and takes late answers.
        new_sessions: Makes the session cache of a broker that has just started.
        wake_by: Arms the alarm for the end of a wait, by the wall clock.
        quotas: How much consumers may fetch; None without limits.
        max_bytes: `fetch.max.bytes`.
        conceals_topics: Whether topics without DESCRIBE are answered as unknown.
    """

    __slots__ = (
        "_access",
        "_max_bytes",
        "_new_sessions",
        "_sessions",
        "_wall_ms",
        "conceals_topics",
        "jobs",
        "partitions",
        "purgatory",
        "quotas",
        "reader",
    )

    def __init__(  # noqa: PLR0913 - what the API needs, by keyword
        self,
        partitions: ReplicaManager,
        access: Access,
        jobs: Jobs,
        new_sessions: Callable[[], FetchSessionCache],
        *,
        wake_by: WakeBy,
        quotas: Quotas | None = None,
        max_bytes: int = DEFAULT_FETCH_MAX_BYTES,
        conceals_topics: bool = False,
    ) -> None:
        self.partitions = partitions
        self._access = access
        self.jobs = jobs
        self._new_sessions = new_sessions
        self.quotas = quotas
        self._max_bytes = max_bytes
        self.conceals_topics = conceals_topics
        self._sessions: dict[int, FetchSessionCache] = {}
        self._wall_ms = 0
        self.purgatory = Purgatory[Place](wake_by)
        self.reader = LogReader(partitions)

    def handlers(self) -> Handlers:
        """The handler of Fetch."""
        return {ApiKey.FETCH: self._handle}

    def sessions(self, broker_id: int) -> FetchSessionCache:
        """The session cache of a broker."""
        found = self._sessions.get(broker_id)
        if found is None:
            found = self._sessions[broker_id] = self._new_sessions()
        return found

    def forget_broker(self, broker_id: int) -> None:
        """Drop the sessions of a broker whose process has ended."""
        self._sessions.pop(broker_id, None)

    def _handle(self, call: Call[FetchRequest]) -> FetchResponse | None:
        self._wall_ms = call.now.wall_ms
        version = call.context.api_version
        params = params_of(call, self._max_bytes)
        if self.quotas is not None and self.quotas.is_on and not params.is_follower:
            params = params.bounded(self.quotas.max_fetch_bytes(call))
        names = self.partitions.image.topic_names
        context = self.sessions(call.broker_id).new_context(
            version,
            metadata_of(call.request),
            wanted_of(call.request, version, names),
            forgotten_of(call.request, version, names),
            names,
            FetchScope(call.now.wall_ms, params.is_follower),
        )
        refused, readable = self._sorted(call, context, params)
        fetch = PendingFetch(self, call, params, context, refused, readable)
        if not readable:
            return fetch.response({}, self._wall_ms)
        read = self.reader.read(call.broker_id, params, readable)
        if params.max_wait_ms <= 0 or read.is_enough(params.min_bytes):
            if version < MAGIC_2_SINCE:
                return self.jobs.run(call, self._old_response(fetch, read.found))
            return fetch.response(read.found, self._wall_ms)
        places = [_place(each) for each in readable]
        deadline_ms = call.now.wall_ms + params.max_wait_ms
        self.purgatory.watch(fetch, places, deadline_ms, call.connection)
        return None

    def complete(self, fetch: "PendingFetch", found: Found) -> None:
        """Answer a waiting request with the data read for it."""
        token = fetch.call.context.token
        if fetch.params.version < MAGIC_2_SINCE:
            response = self.jobs.start(token, self._old_response(fetch, found))
        else:
            response = fetch.response(found, self._wall_ms)
        if response is not None:
            self.jobs.answers.answer(token, response)

    def _old_response(self, fetch: "PendingFetch", found: Found) -> Steps[FetchResponse]:
        """The answer of a fetch that knows only old record formats: records are converted."""
        old = yield from self.reader.for_old_reader(
            fetch.call.broker_id, fetch.params, fetch.readable, found
        )
        return fetch.response(old, self._wall_ms)

    def expire(self, wall_ms: int) -> None:
        """Answer the requests whose maximum wait is over."""
        self._wall_ms = wall_ms
        self.purgatory.expire(wall_ms)

    # -- which partitions may be read ------------------------------------------------------

    def _sorted(
        self, call: Call[FetchRequest], context: FetchContext, params: FetchParams
    ) -> tuple[Found, Wanted]:
        """The partitions that are refused at once, and the partitions to read."""
        refused: Found = {}
        readable: Wanted = {}
        may_copy = not params.is_follower or self._access.allows(
            call.context, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME
        )
        verdicts: dict[str | None, ErrorCode] = {}
        for place, terms in context.partitions():
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            if may_copy:
                error = verdicts.get(place.topic, ErrorCode.UNKNOWN_SERVER_ERROR)
                if error is ErrorCode.UNKNOWN_SERVER_ERROR:
                    error = self._topic_error(call, place, params)
                    verdicts[place.topic] = error
            if error is ErrorCode.NONE and self.partitions.image.partition(*_place(place)) is None:
                error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if error is ErrorCode.NONE:
                readable[place] = terms
            else:
                refused[place] = replace(refusal(place.partition, error), aborted_transactions=())
        return _unknown_ids_first(refused), readable

    def _topic_error(
        self, call: Call[FetchRequest], place: FetchPlace, params: FetchParams
    ) -> ErrorCode:
        if place.topic is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        if params.is_follower or self._access.is_open:
            return ErrorCode.NONE
        if self.conceals_topics and not self._access.allows(
            call.context, Operation.DESCRIBE, ResourceType.TOPIC, place.topic
        ):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if self._access.allows(call.context, Operation.READ, ResourceType.TOPIC, place.topic):
            return ErrorCode.NONE
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED


@dataclass(slots=True)
class PendingFetch:
    """A Fetch in progress, which may wait for records.

    DEVIATION: a waiting Fetch counts the bytes of all its partitions once, and afterwards only
    those of the partition that changed; Kafka counts all of them each time.

    Args:
        api: The API family of the request.
        call: The request.
        params: Parameters of the request.
        context: Session of the request.
        refused: Answers of the partitions that are refused.
        readable: The other partitions, in the order in which they are read.
    """

    api: FetchApi
    call: Call[FetchRequest]
    params: FetchParams
    context: FetchContext
    refused: Found
    readable: Wanted
    _places: dict[Place, FetchPlace] = field(default_factory=dict)
    _counted: dict[Place, int] = field(default_factory=dict)
    _counted_bytes: int = 0

    def try_complete(self, place: Place) -> bool:
        """Answer if there are enough bytes, or an error that the client must know."""
        if not self._places:
            self._places = {_place(each): each for each in self.readable}
            places = [place, *self._places]
        else:
            places = [place]
        if not any(self._is_decided_by(each) for each in places):
            return False
        self.expire()
        return True

    def _is_decided_by(self, place: Place) -> bool:
        """Count one partition's bytes again; return whether the Fetch is complete."""
        fetched = self._places[place]
        available = self._available(fetched, self.readable[fetched])
        if available is None:
            return True
        self._counted_bytes += available - self._counted.get(place, 0)
        self._counted[place] = available
        return self._counted_bytes >= self.params.min_bytes

    def expire(self) -> None:
        """Answer with the data that is available now."""
        read = self.api.reader.read(self.call.broker_id, self.params, self.readable)
        self.api.complete(self, read.found)

    def abandon(self) -> None:
        """End the request without an answer: its client is gone."""
        self.api.jobs.answers.answer(self.call.context.token, None)

    def _available(self, place: FetchPlace, terms: FetchTerms) -> int | None:
        return self.api.reader.available_bytes(self.call.broker_id, self.params, place, terms)

    def response(self, found: Found, wall_ms: int) -> FetchResponse:
        """The complete response. Followers get no leader endpoints, as from 4.0 on.

        Args:
            found: Answers of the partitions that were read.
            wall_ms: When the response is sent.
        """
        nodes: dict[int, NodeEndpoint] = {}
        told = {
            place: answer
            if answer.error_code is ErrorCode.NONE
            else self._failure(place, answer, nodes)
            for place, answer in found.items()
        }
        told |= self.refused
        response = self._answer(told, wall_ms)
        if nodes and not self.params.is_follower:
            return replace(response, node_endpoints=tuple(nodes.values()))
        return response

    def _answer(self, found: Found, wall_ms: int) -> FetchResponse:
        """The response; one without partitions to a consumer over its quota.

        Source: KafkaApis.handleFetchRequest, processResponseCallback.
        """
        quotas = self.api.quotas
        if quotas is None or not quotas.is_on or self.params.is_follower:
            return self.context.answer(found, wall_ms)
        throttle_ms = quotas.fetch_throttle_ms(self.call, lambda: self._size_bytes(found))
        if throttle_ms <= 0:
            return self.context.answer(found, wall_ms)
        return replace(self.context.throttled(), throttle_time_ms=throttle_ms)

    def _size_bytes(self, found: Found) -> int:
        """The length of the response with its records. Source: FetchResponse.sizeOf."""
        version = self.params.version
        response = response_of(ErrorCode.NONE, INVALID_SESSION_ID, self.context.included(found))
        frame = response_writer(ApiKey.FETCH, version)(0, response)
        return len(frame) - has_tagged_header(ApiKey.FETCH, version)

    def _failure(
        self, place: FetchPlace, answer: PartitionData, nodes: dict[int, NodeEndpoint]
    ) -> PartitionData:
        """A partition's error in the request's version; adds the leader's endpoint to `nodes`."""
        version = self.params.version
        error = answer.error_code
        if version < _STORAGE_ERROR_SINCE and error is ErrorCode.KAFKA_STORAGE_ERROR:
            return replace(answer, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if version < LEADER_TAGS_SINCE or error not in _TAGGED:
            return answer
        tags = self.api.partitions.leader_tags(_place(place), self.call.context.listener)
        if tags.endpoint is not None:
            nodes[tags.leader_id] = NodeEndpoint(
                node_id=tags.leader_id, host=tags.endpoint.host, port=tags.endpoint.port
            )
        return replace(answer, current_leader=LeaderIdAndEpoch(tags.leader_id, tags.leader_epoch))


def _unknown_ids_first(refused: Found) -> Found:
    """The refused partitions in Kafka's order: those with an unknown topic id first."""
    unknown = ErrorCode.UNKNOWN_TOPIC_ID
    if len(refused) < 2:  # noqa: PLR2004 - nothing to sort
        return refused
    return dict(sorted(refused.items(), key=lambda item: item[1].error_code is not unknown))


def _place(place: FetchPlace) -> Place:
    return place.topic or "", place.partition
