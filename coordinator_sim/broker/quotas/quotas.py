"""Holds clients to their quotas: measures what requests use, and mutes connections.

A client over its quota is answered at once, is told for how long, and its next request is taken
only after that time (KIP-219). The answer to a Fetch or ShareFetch over the quota has no records.

The use of each broker is measured for itself; mutations of the cluster are measured together, as
one controller makes them all.

DEVIATION: of a request's time, that of the handler counts, not that of the network thread which
sends its answer.

DEVIATION: quotas set and removed leave no trace; up to 4.1, Kafka goes on recording the use of a
level that once had a quota.

Source: kafka 4.3, QuotaFactory.java; RequestHandlerHelper.scala; KafkaApis.handleProduceRequest,
handleFetchRequest; ClientRequestQuotaManager.java.
"""

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.broker.configs.configs import Configs
from coordinator_sim.broker.contract import AnswerPlace, Call, Instants
from coordinator_sim.broker.metadata.changes import QuotaSet
from coordinator_sim.broker.metadata.image import MetadataImage
from coordinator_sim.broker.quotas.client_quotas import (
    IP,
    ClientQuotaManager,
    ControllerMutationQuota,
    QuotaLimits,
    Sensors,
)
from coordinator_sim.broker.quotas.measures import LARGEST_LONG, TokenBucket, Windows
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.messages.codec.compiler import request_writer

PRODUCE: Final = "producer_byte_rate"
FETCH: Final = "consumer_byte_rate"
REQUEST: Final = "request_percentage"
CONTROLLER_MUTATION: Final = "controller_mutation_rate"
CONNECTION: Final = "connection_creation_rate"

_WINDOWS: Final = ("quota.window.num", "quota.window.size.seconds")
_CONTROLLER_WINDOWS: Final = ("controller.quota.window.num", "controller.quota.window.size.seconds")
_STATIC_DEFAULTS: Final = {PRODUCE: "quota.producer.default", FETCH: "quota.consumer.default"}
"""Settings of brokers up to 2.8."""
_LARGEST_INT: Final = (1 << 31) - 1
_MS_PER_SECOND: Final = 1000
_PERCENT_PER_NS: Final = 100.0 / 1_000_000_000
"""Source: ClientRequestQuotaManager.NANOS_TO_PERCENTAGE_PER_SECOND."""
_NO_ACKS: Final = 0

SINCE_STRICT: Final = {
    ApiKey.CREATE_TOPICS: 6,
    ApiKey.DELETE_TOPICS: 5,
    ApiKey.CREATE_PARTITIONS: 3,
}
"""Versions from which on a mutation over the quota is refused. Source: ControllerApis.scala."""


class Quotas:
    """All quotas of a cluster's clients, and what the clients have used of them.

    Args:
        profile: The cluster's Kafka version.
        image: Its metadata, with the quotas.
        configs: Its settings.
        present: The instants of what is under way.
        place_of: Where the answer to the request of a token goes; None when it is there.

    Attributes:
        is_on: Whether any client has a quota; else nothing is measured.
        work_ns: A clock of the time that handlers spend, in ns. By default it stands still, so
            that a quota of request time throttles nobody.
    """

    def __init__(
        self,
        profile: Profile,
        image: MetadataImage,
        configs: Configs,
        *,
        present: Callable[[], Instants],
        place_of: Callable[[int], AnswerPlace | None],
    ) -> None:
        self._profile = profile
        self._configs = configs
        self._present = present
        self._place_of = place_of
        self._limits = {
            key: QuotaLimits(key, image.quotas, static_default=self._static_default(key))
            for key in (PRODUCE, FETCH, REQUEST, CONTROLLER_MUTATION)
        }
        self._address_limits = QuotaLimits(CONNECTION, image.quotas, kind=IP)
        self._managers: dict[tuple[str, int], ClientQuotaManager] = {}
        self._mutations: Sensors[TokenBucket] | None = None
        self.work_ns: Callable[[], int] = _no_work
        self.is_on = self._is_stale = True
        self._look()

    def _static_default(self, key: str) -> float | None:
        name, configs = _STATIC_DEFAULTS.get(key), self._configs
        if name is None or name not in configs.broker:
            return None
        value = int(str(configs.broker_value(name)))
        return None if value == LARGEST_LONG else float(value)

    def changed(self, _change: QuotaSet) -> None:
        """A quota was set or removed; the next request looks at all of them, once."""
        self.is_on = self._is_stale = True

    def _look(self) -> None:
        """See which quotas are set, if any was since."""
        if not self._is_stale:
            return
        self._is_stale = False
        for limits in (*self._limits.values(), self._address_limits):
            limits.changed()
        self.is_on = any(limits.is_set for limits in self._limits.values())

    def forget_broker(self, broker_id: int) -> None:
        """Drop what was measured by a broker whose process has ended."""
        for key in (PRODUCE, FETCH, REQUEST, CONNECTION):
            self._managers.pop((key, broker_id), None)

    # -- requests --------------------------------------------------------------------------

    def watched(self, call: Call[Any], place: AnswerPlace) -> AnswerPlace:
        """Where a request's answer goes instead: what it used is measured there.

        A broker's own requests have no connection to mute.
        """
        self._look()
        return MeasuredAnswer(self, call, place) if call.connection and self.is_on else place

    def parked(self, token: int) -> None:
        """The handler of a request is done, and its answer comes later."""
        place = self._place_of(token)
        if isinstance(place, MeasuredAnswer):
            place.park()

    @property
    def now_ms(self) -> int:
        """The present on the wall clock."""
        return self._present().wall_ms

    def throttle_time_ms(self, answer: "MeasuredAnswer", response: Struct | None) -> int:
        """How long the connection is muted with that answer; 0 for not at all.

        Of several quotas that are exceeded, the longest time counts. An answer that has a time
        already got it from `fetch_throttle_ms`, or from the controller.

        Source: RequestHandlerHelper.sendForwardedResponse, sendResponseMaybeThrottle.
        """
        call = answer.call
        throttle_ms: int = getattr(response, "throttle_time_ms", 0)
        if answer.is_measured or call.api in {ApiKey.FETCH, ApiKey.WRITE_TXN_MARKERS}:
            return throttle_ms
        if call.api is ApiKey.PRODUCE:
            throttle_ms = self._produce_throttle_ms(call)
            if call.request.acks == _NO_ACKS:
                return throttle_ms
        return max(throttle_ms, self._request_throttle_ms(answer))

    def _produce_throttle_ms(self, call: Call[Any]) -> int:
        """Source: KafkaApis.handleProduceRequest, which counts the whole request."""
        if not self._limits[PRODUCE].is_set:
            return 0
        user, client_id = _client(call)
        write = request_writer(call.api, call.context.api_version)
        size_bytes = len(write(0, client_id, call.request))
        return self._manager(PRODUCE, call).use(user, client_id, size_bytes, now_ms=self.now_ms)

    def _request_throttle_ms(self, answer: "MeasuredAnswer") -> int:
        """Source: ClientRequestQuotaManager.maybeRecordAndGetThrottleTimeMs, throttleTime."""
        if not self._limits[REQUEST].is_set:
            return 0
        call, percent = answer.call, answer.spent_ns() * _PERCENT_PER_NS
        most_ms = self._windows(_WINDOWS, call.broker_id).window_ms
        manager = self._manager(REQUEST, call)
        return manager.use(*_client(call), percent, now_ms=self.now_ms, most_ms=most_ms)

    # -- Fetch -----------------------------------------------------------------------------

    def max_fetch_bytes(self, call: Call[Any]) -> int:
        """The most that a Fetch or ShareFetch may read: more would be throttled always.

        Source: KafkaApis.handleFetchRequest, handleFetchFromShareFetchRequest.
        """
        most = self._manager(FETCH, call).most_at_once(*_client(call), call.now.wall_ms)
        return int(min(max(0.0, most), _LARGEST_INT))  # NaN is 0, as in Java.

    def fetch_throttle_ms(self, call: Call[Any], size_bytes: Callable[[], int]) -> int:
        """How long a consumer is muted for what it fetches; what it is not sent is not counted.

        Args:
            call: The request of a consumer.
            size_bytes: Gives the length of its answer with records.

        Source: KafkaApis.handleFetchRequest, processResponseCallback; processShareFetchResponse.
        """
        answer = self._place_of(call.context.token)
        if not isinstance(answer, MeasuredAnswer):
            return 0
        answer.is_measured = True
        throttle_ms = self._request_throttle_ms(answer)
        if not self._limits[FETCH].is_set:
            return throttle_ms
        manager, client, size = self._manager(FETCH, call), _client(call), size_bytes()
        throttle_ms = max(throttle_ms, manager.use(*client, size, now_ms=self.now_ms))
        if throttle_ms > 0:
            manager.give_back(*client, size, self.now_ms)
        return throttle_ms

    # -- mutations -------------------------------------------------------------------------

    def mutations_of(self, call: Call[Any]) -> ControllerMutationQuota:
        """What a request may change. Source: ControllerMutationQuotaManager.newQuotaFor.

        The topics of a Metadata request are created by a CreateTopics of the newest version, or
        directly in ZooKeeper. DEVIATION: those of FindCoordinator are created by the broker for
        itself; a quota of its own user is not looked at.
        """
        self._look()
        limits = self._limits[CONTROLLER_MUTATION]
        if call.api is ApiKey.METADATA:
            is_strict = not self._profile.uses_zookeeper
        else:
            is_strict = call.context.api_version >= SINCE_STRICT[call.api]
        if not limits.is_set:
            return ControllerMutationQuota(None, 0.0, is_strict=is_strict)
        if self._mutations is None:
            windows = self._windows(_CONTROLLER_WINDOWS)
            self._mutations = Sensors(limits, windows, TokenBucket)
        bucket, limit = self._mutations.of(*_client(call), call.now.wall_ms)
        bound = LARGEST_LONG if limit is None else limit
        return ControllerMutationQuota(bucket, bound, is_strict=is_strict)

    # -- connections -----------------------------------------------------------------------

    def connection_throttle_ms(self, broker_id: int, address: str, now_ms: int) -> int:
        """Milliseconds until a new connection over the quota is closed; 0 if it is accepted.

        Source: SocketServer.scala, ConnectionQuotas.recordIpConnectionMaybeThrottle.
        """
        self._look()
        if not self._address_limits.is_set:
            return 0
        manager = self._manager_of(CONNECTION, self._address_limits, broker_id)
        most_ms = self._windows(_WINDOWS, broker_id).window_ms
        throttle_ms = manager.use("", address, 1, now_ms=now_ms, most_ms=most_ms)
        if throttle_ms > 0:
            manager.give_back("", address, 1, now_ms)
        return throttle_ms

    # -- managers --------------------------------------------------------------------------

    def _manager(self, key: str, call: Call[Any]) -> ClientQuotaManager:
        return self._manager_of(key, self._limits[key], call.broker_id)

    def _manager_of(self, key: str, limits: QuotaLimits, broker_id: int) -> ClientQuotaManager:
        found = self._managers.get((key, broker_id))
        if found is None:
            found = ClientQuotaManager(limits, self._windows(_WINDOWS, broker_id))
            self._managers[key, broker_id] = found
        return found

    def _windows(self, names: tuple[str, str], broker_id: int | None = None) -> Windows:
        configs = self._configs
        count, size_s = (int(str(configs.broker_value(each, broker_id))) for each in names)
        return Windows(
            count=count,
            window_ms=size_s * _MS_PER_SECOND,
            keeps_overlapping=self._profile.keeps_overlapping_samples,
        )


class MeasuredAnswer:
    """Takes the answer of one request while quotas are set, and throttles its sender.

    Args:
        quotas: The quotas.
        call: The request.
        place: Where its answer goes from here.

    Attributes:
        call: See above.
        is_measured: Whether all that the request used is recorded already.
    """

    __slots__ = ("_began_ns", "_place", "_quotas", "_spent_ns", "call", "is_measured")

    def __init__(self, quotas: Quotas, call: Call[Any], place: AnswerPlace) -> None:
        self._quotas = quotas
        self._place = place
        self._began_ns = quotas.work_ns()
        self._spent_ns: int | None = None
        self.call = call
        self.is_measured = False

    def park(self) -> None:
        """The handler is done; the answer comes later."""
        self._spent_ns = self.spent_ns()

    def spent_ns(self) -> int:
        """The time that the handler has spent on the request."""
        if self._spent_ns is not None:
            return self._spent_ns
        return self._quotas.work_ns() - self._began_ns

    def answered(self, response: Struct | None) -> None:
        """Mute the connection as long as its client's quotas say, and pass the answer on."""
        quotas = self._quotas
        throttle_ms = quotas.throttle_time_ms(self, response)
        if throttle_ms > 0:
            if response is not None and hasattr(response, "throttle_time_ms"):
                response = replace(response, throttle_time_ms=throttle_ms)
            self._place.throttled(throttle_ms)
        self._place.answered(response)

    def throttled(self, throttle_time_ms: int) -> None:
        """See `AnswerPlace.throttled`."""
        self._place.throttled(throttle_time_ms)

    def closed(self) -> None:
        """Measure a Produce without acknowledgement that failed, and end its connection."""
        self._quotas.throttle_time_ms(self, None)
        self._place.closed()


def _client(call: Call[Any]) -> tuple[str, str]:
    """User and client id of a request's sender."""
    _, _, user = call.context.principal.partition(":")
    return user, call.context.client_id


def _no_work() -> int:
    return 0
