"""Quotas of clients: which limit applies to a client, and how much of it the client has used.

Source: kafka 4.3, ClientQuotaManager.java (DefaultQuotaCallback, KafkaQuotaEntity);
ControllerMutationQuotaManager.java, {Strict,Permissive}ControllerMutationQuota.java; Sensor.java,
Metrics.ExpireSensorTask.
"""

from collections.abc import Mapping
from math import inf
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from coordinator_sim.broker.metadata.changes import QuotaEntity
from coordinator_sim.broker.quotas.measures import LARGEST_LONG, Rate, TokenBucket, Windows, as_int

CLIENT_ID: Final = "client-id"
IP: Final = "ip"
USER: Final = "user"

SENSOR_EXPIRY_MS: Final = 3_600_000
"""Source: ClientQuotaManager.INACTIVE_SENSOR_EXPIRATION_TIME_SECONDS."""
_SWEEP_MS: Final = 30_000
"""Source: Metrics, whose ExpireSensorTask runs every 30 s."""

_OF_CLIENT: Final = (CLIENT_ID,)
_OF_USER: Final = (USER,)
_OF_BOTH: Final = (CLIENT_ID, USER)


class Client(NamedTuple):
    """A user and a client id whose use is added up; an empty string stands for any."""

    user: str
    client_id: str


class QuotaLimits:
    """The limits of one quota in the whole cluster.

    Args:
        key: Name of the quota, for example `producer_byte_rate`.
        quotas: Quotas of each entity, by key, as in the metadata image.
        kind: Type of the entities beside users: `CLIENT_ID`, or `IP` for addresses.
        static_default: Limit of each client id that has no other, as brokers up to 2.8 may be
            configured with; None for none.
    """

    def __init__(
        self,
        key: str,
        quotas: Mapping[QuotaEntity, Mapping[str, float]],
        *,
        kind: str = CLIENT_ID,
        static_default: float | None = None,
    ) -> None:
        self._key = key
        self._kind = kind
        self._quotas = quotas
        self._static_default = static_default
        self._levels: tuple[tuple[str, ...], ...] = ()
        self.changed()

    def changed(self) -> None:
        """Find the types of entities that have this quota. Source: updateQuotaTypes."""
        levels: dict[tuple[str, ...], None] = {}
        if self._static_default is not None:
            levels[_OF_CLIENT] = None
        for entity, values in self._quotas.items():
            if self._key in values:
                levels[tuple(kind for kind, _ in entity)] = None
        self._levels = tuple(levels)

    @property
    def is_set(self) -> bool:
        """Whether any client has a quota; as long as none has, nothing is recorded."""
        return bool(self._levels)

    def measured(self, user: str, client_id: str) -> Client:
        """The user and client id that a client's use is recorded for.

        Source: DefaultQuotaCallback.quotaMetricTags.
        """
        both, of_user, of_client = (
            Client(user, client_id),
            Client(user, ""),
            Client("", client_id),
        )
        if len(self._levels) <= 1:
            level = next(iter(self._levels), _OF_CLIENT)
            return {_OF_USER: of_user, _OF_BOTH: both}.get(level, of_client)
        for entity, client in (
            (_entity(user, client_id), both),
            (_entity(user, None), both),
            (_entity_of(USER, user), of_user),
            (_entity(None, client_id), both),
            (_entity(None, None), both),
            (_entity_of(USER, None), of_user),
        ):
            if self._limit(entity) is not None:
                return client
        return of_client

    def limit(self, client: Client) -> float | None:
        """The limit per second; None for none. Source: DefaultQuotaCallback.findQuota."""
        user, client_id = client
        if user and client_id:
            return self._first(
                _entity(user, client_id),
                _entity(user, None),
                _entity(None, client_id),
                _entity(None, None),
            )
        if user:
            return self._first(_entity_of(USER, user), _entity_of(USER, None))
        if not client_id:
            return None
        found = self._first(_entity_of(self._kind, client_id), _entity_of(self._kind, None))
        return self._static_default if found is None else found

    def _first(self, *entities: QuotaEntity) -> float | None:
        return next((found for each in entities if (found := self._limit(each)) is not None), None)

    def _limit(self, entity: QuotaEntity) -> float | None:
        values = self._quotas.get(entity)
        return None if values is None else values.get(self._key)


def _entity(user: str | None, client_id: str | None) -> QuotaEntity:
    return (CLIENT_ID, client_id), (USER, user)


def _entity_of(kind: str, name: str | None) -> QuotaEntity:
    return ((kind, name),)


class Measure(Protocol):
    """The state of one sensor: a `Rate` or a `TokenBucket`."""

    def __init__(self, windows: Windows) -> None: ...


M = TypeVar("M", bound=Measure)


class Sensors(Generic[M]):
    """One measure for each client; of a client that used nothing for an hour it is dropped.

    Args:
        limits: The limits of the quota.
        windows: The windows of the broker.
        measure: Makes the measure of a new client.
    """

    def __init__(self, limits: QuotaLimits, windows: Windows, measure: type[M]) -> None:
        self.limits = limits
        self.windows = windows
        self._measure = measure
        self._by_client: dict[Client, tuple[M, int]] = {}
        self._swept_ms = 0

    def __len__(self) -> int:
        """Number of clients whose use is remembered."""
        return len(self._by_client)

    def of(self, user: str, client_id: str, now_ms: int) -> tuple[M, float | None]:
        """The measure that a client's use counts to, and its limit; None for none.

        Source: ClientQuotaManager.getOrCreateQuotaSensors; SensorAccess.
        """
        client = self.limits.measured(user, client_id)
        found = self._by_client.get(client)
        if found is None or now_ms - found[1] > SENSOR_EXPIRY_MS:
            self._sweep(now_ms)
            measure = self._measure(self.windows)
        else:
            measure = found[0]
        self._by_client[client] = (measure, now_ms)
        return measure, self.limits.limit(client)

    def _sweep(self, now_ms: int) -> None:
        if now_ms - self._swept_ms < _SWEEP_MS:
            return
        self._swept_ms = now_ms
        idle = [
            client
            for client, (_, used_ms) in self._by_client.items()
            if now_ms - used_ms > SENSOR_EXPIRY_MS
        ]
        for client in idle:
            del self._by_client[client]


class ClientQuotaManager:
    """One quota of bytes or of time, at one broker.

    Args:
        limits: The limits of the quota.
        windows: The windows of the broker.
    """

    def __init__(self, limits: QuotaLimits, windows: Windows) -> None:
        self._sensors = Sensors(limits, windows, Rate)

    def use(
        self, user: str, client_id: str, value: float, *, now_ms: int, most_ms: int = LARGEST_LONG
    ) -> int:
        """Record what a client used, and return for how many ms to mute it, at most `most_ms`.

        Source: ClientQuotaManager.maybeRecordAndGetThrottleTimeMs.
        """
        if not self._sensors.limits.is_set:
            return 0
        rate, limit = self._sensors.of(user, client_id, now_ms)
        rate.record(value, now_ms)
        return 0 if limit is None else rate.throttle_time_ms(limit, now_ms, most_ms)

    def give_back(self, user: str, client_id: str, value: float, now_ms: int) -> None:
        """Record that a client did not use what was recorded. Source: unrecordQuotaSensor."""
        if self._sensors.limits.is_set:
            rate, _ = self._sensors.of(user, client_id, now_ms)
            rate.record(-value, now_ms)

    def most_at_once(self, user: str, client_id: str, now_ms: int) -> float:
        """The most that a client can use and not be muted, if it used nothing before.

        Source: ClientQuotaManager.maxValueInQuotaWindow.
        """
        if not self._sensors.limits.is_set:
            return inf
        _, limit = self._sensors.of(user, client_id, now_ms)
        windows = self._sensors.windows
        size_s = windows.window_ms // 1000
        return inf if limit is None else limit * (windows.count - 1) * size_s


class ControllerMutationQuota:
    """The quota of one request that creates or deletes partitions.

    Args:
        bucket: The client's tokens; None where no quota is set.
        bound: Mutations per second.
        is_strict: Whether a mutation is refused while tokens are missing; else the client is only
            muted. Versions of requests that know THROTTLING_QUOTA_EXCEEDED are strict.
    """

    def __init__(self, bucket: TokenBucket | None, bound: float, *, is_strict: bool) -> None:
        self._bucket = bucket
        self._bound = bound
        self._is_strict = is_strict
        self._throttle_time_ms = 0
        self._recorded_ms = 0

    def accepts(self, permits: int, now_ms: int) -> bool:
        """Whether so many partitions may be created or deleted; those that may are recorded.

        Source: StrictControllerMutationQuota.record, PermissiveControllerMutationQuota.record.
        """
        bucket = self._bucket
        if bucket is None:
            return True
        if not self._is_strict:
            bucket.record(permits, self._bound, now_ms)
        if bucket.tokens(self._bound, now_ms) < 0:
            self._throttle_time_ms = bucket.throttle_time_ms(self._bound, now_ms)
            self._recorded_ms = now_ms
            return not self._is_strict
        if self._is_strict:
            bucket.record(permits, self._bound, now_ms)
        return True

    def throttle_time_ms(self, now_ms: int) -> int:
        """How long the client is to be muted, cut to 32 bits as in `Rate.throttle_time_ms`.

        Source: AbstractControllerMutationQuota.throttleTime.
        """
        if not self._throttle_time_ms:
            return 0
        return as_int(max(0, self._throttle_time_ms - (now_ms - self._recorded_ms)))
