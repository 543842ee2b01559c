"""KEDA's Kafka scaler, and the operator around it, as decisions without a clock.

A trigger's metadata is read as in a ScaledObject, by KEDA's own names and as text. Reading offsets
from a cluster, waiting, and changing replicas do not belong here.

Source: KEDA, commit 8b4f083ca8c8 of 2026-08-20, after 2.20.2: pkg/scalers/kafka_scaler.go,
apache_kafka_scaler.go, pkg/scaling/executor/scale_scaledobjects.go,
apis/keda/v1alpha1/scaledobject_types.go.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

import msgspec
from msgspec import Struct

from coordinator_sim.errors import CoordinatorSimError, ScenarioError
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.sim.autoscaling.hpa import Behavior, Limits, check_limits

INVALID_OFFSET: Final = -1
"""What OffsetFetch answers for a partition without a committed offset."""
_MS_PER_S: Final = 1_000
_CONNECTION: Final = (
    *("bootstrapServers", "version", "tls", "unsafeSsl", "sasl", "saslTokenProvider", "awsRegion"),
)
"""Metadata of the connection, which a simulated scaler does not need."""


class ScalerError(CoordinatorSimError):
    """A scaler cannot tell the lag; the message says why."""


class Trigger(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A trigger of a ScaledObject.

    Args:
        metadata: Metadata by KEDA's names, such as `lagThreshold`, as text.
        type: `kafka` is the scaler on Sarama, `apache-kafka` the one on kafka-go.
        metric_type: `metricType`: whether the threshold is for each pod, or for all together.
    """

    metadata: dict[str, str]
    type: Literal["kafka", "apache-kafka"] = "kafka"
    metric_type: Literal["AverageValue", "Value"] = "AverageValue"


class KafkaMetadata(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A trigger's metadata, with KEDA's names and defaults, before `topic` is divided."""

    consumer_group: str
    topic: str = ""
    partition_limitation: str = ""
    lag_threshold: int = 10
    activation_lag_threshold: int = 0
    offset_reset_policy: Literal["latest", "earliest"] = "latest"
    allow_idle_consumers: bool = False
    exclude_persistent_lag: bool = False
    scale_to_zero_on_invalid_offset: bool = False
    limit_to_partitions_with_lag: bool = False
    ensure_even_distribution_of_partitions: bool = False
    full_metadata: bool = True

    @property
    def partitions(self) -> tuple[int, ...] | None:
        """The partitions that count; None for all, as always without a topic."""
        if not self.topic or not self.partition_limitation:
            return None
        return partition_limitation(self.partition_limitation)


def parse(trigger: Trigger) -> KafkaMetadata:
    """Read and check a trigger's metadata.

    Raises:
        ScenarioError: names the value, the bound and the fix. Unknown names are refused too, which
            KEDA ignores.

    Source: kafkaMetadata.Validate, apacheKafkaMetadata.Validate, ScalerConfig.setValue.
    """
    given = {
        name: text.strip()
        for name, text in trigger.metadata.items()
        if text.strip() and name not in _CONNECTION
    }
    try:
        metadata = msgspec.convert(given, KafkaMetadata, strict=False)
    except msgspec.ValidationError as error:
        raise ScenarioError(f"metadata of a trigger {trigger.type!r}: {error}") from error
    _check(metadata, is_sarama=trigger.type == "kafka")
    return metadata


def _check(metadata: KafkaMetadata, *, is_sarama: bool) -> None:
    for name, value, low in (
        ("lagThreshold", metadata.lag_threshold, 1),
        ("activationLagThreshold", metadata.activation_lag_threshold, 0),
    ):
        if value < low:
            raise ScenarioError(f"{name}={value}: must be at least {low}")
    _ = metadata.partitions
    limit, even = "limitToPartitionsWithLag", "ensureEvenDistributionOfPartitions"
    limits_to_lag = metadata.limit_to_partitions_with_lag
    is_even = metadata.ensure_even_distribution_of_partitions and is_sarama
    for name, is_set in (("allowIdleConsumers", metadata.allow_idle_consumers), (even, is_even)):
        if limits_to_lag and is_set:
            raise ScenarioError(f"{name} and {limit} exclude each other: leave one out")
    lacks_metadata = is_sarama and not metadata.full_metadata
    for name, is_set in (
        (limit, limits_to_lag),
        (even, is_even),
        ("fullMetadata=false", lacks_metadata),
    ):
        if is_set and not metadata.topic:
            raise ScenarioError(f"{name} needs a topic: give one")


def partition_limitation(text: str) -> tuple[int, ...]:
    """Read a `partitionLimitation` such as `1-4,8,10-12`.

    Raises:
        ScenarioError: a part is neither a number nor a range.

    Source: parsePartitionLimitation.
    """
    partitions: list[int] = []
    for part in text.split(","):
        ends = [end.strip() for end in part.split("-")]
        if len(ends) > 2 or not all(end.isdecimal() for end in ends):  # noqa: PLR2004
            raise ScenarioError(
                f"partitionLimitation={part.strip()!r}: must be a partition, or a range like 1-4"
            )
        partitions.extend(range(int(ends[0]), int(ends[-1]) + 1))
    return tuple(partitions)


class Observation(Struct, frozen=True, kw_only=True):
    """The cluster at one instant, as a scaler's requests show it.

    Args:
        partitions: Every topic's partitions.
        committed: Committed offsets of the consumer group.
        end_offsets: High watermarks; a partition may be missing.
        member_count: Members of the group.
    """

    partitions: Mapping[str, Sequence[int]]
    committed: Mapping[TopicPartition, int]
    end_offsets: Mapping[TopicPartition, int]
    member_count: int = 0


class Lag(NamedTuple):
    """A lag in records: without partitions that are stuck, and with them."""

    lag: int
    with_persistent: int


class KafkaScaler:
    """The scaler of one trigger; its only memory is the table of `excludePersistentLag`.

    Args:
        trigger: The trigger.
    """

    def __init__(self, trigger: Trigger) -> None:
        self.metadata = metadata = parse(trigger)
        self._is_sarama = trigger.type == "kafka"
        topics = (metadata.topic,) if self._is_sarama else metadata.topic.split(",")
        self._topics = tuple(each.strip() for each in topics if each)
        self._allowed = metadata.partitions
        self._previous: dict[TopicPartition, int] = {}

    def active_partitions(self, observation: Observation) -> list[TopicPartition]:
        """Return the partitions whose lag counts, in order.

        Raises:
            ScalerError: a topic is unknown or has no such partition; of `apache-kafka` without a
                topic: the group has no members.

        Source: getTopicPartitions of both scalers.
        """
        topics: Sequence[str] = self._topics
        if not topics and self._is_sarama:
            topics = sorted({partition.topic for partition in observation.committed})
        elif not topics:
            # QUIRK: KEDA does not read the members' subscriptions; every topic counts.
            if not observation.member_count:
                raise ScalerError(f"no active members in group {self.metadata.consumer_group}")
            topics = sorted(observation.partitions)
        found: list[TopicPartition] = []
        for topic in topics:
            ids = [
                TopicPartition(topic, each)
                for each in observation.partitions.get(topic, ())
                if self._allowed is None or each in self._allowed
            ]
            if not ids and self._is_sarama:
                raise ScalerError(f"expected at least one active partition within topic {topic!r}")
            found.extend(ids)
        return found

    def lag_of(self, partition: TopicPartition, committed: int, end_offset: int | None) -> Lag:
        """Return the lag of one partition, and note its offset for `excludePersistentLag`.

        Args:
            partition: The partition.
            committed: Committed offset, or `INVALID_OFFSET`.
            end_offset: High watermark; None where the broker did not answer for it.

        Source: getLagForPartition of both scalers.
        """
        if committed == INVALID_OFFSET:
            if self.metadata.scale_to_zero_on_invalid_offset:
                return Lag(0, 0)
            lag = end_offset or 0 if self.metadata.offset_reset_policy == "earliest" else 1
            return Lag(lag, lag)
        if end_offset is None:
            return Lag(0, 0)
        lag = end_offset - committed
        if self.metadata.exclude_persistent_lag:
            is_stuck = self._previous.get(partition) == committed
            self._previous[partition] = committed
            return Lag(0 if is_stuck else lag, lag)
        return Lag(lag, lag)

    def total_lag(self, observation: Observation) -> Lag:
        """Return the lag that scales, after its bounds, and the lag that activates.

        Raises:
            ScalerError: as `active_partitions`.

        Source: getTotalLag.
        """
        lags = [
            self.lag_of(
                each,
                observation.committed.get(each, INVALID_OFFSET),
                observation.end_offsets[each],
            )
            for each in self.active_partitions(observation)
            if each in observation.end_offsets
        ]
        total, bound = sum(each.lag for each in lags), len(lags)
        metadata, threshold = self.metadata, self.metadata.lag_threshold
        limits_to_lag = metadata.limit_to_partitions_with_lag
        is_even = metadata.ensure_even_distribution_of_partitions
        if not metadata.allow_idle_consumers or limits_to_lag or is_even:
            if is_even:
                total = next_factor(total, bound, threshold) * threshold
            if limits_to_lag:
                bound = sum(each.lag > 0 for each in lags)
            # QUIRK: the remainder is not looked at, so up to one consumer more is asked for.
            if total // threshold > bound:
                total = bound * threshold
        return Lag(total, sum(each.with_persistent for each in lags))

    def is_active(self, lag: Lag) -> bool:
        """Whether the trigger is active. Source: GetMetricsAndActivity."""
        return lag.with_persistent > self.metadata.activation_lag_threshold


def next_factor(total_lag: int, partition_count: int, lag_threshold: int) -> int:
    """Return the fewest consumers that divide the partitions evenly and suffice for the lag.

    Source: getNextFactorThatBalancesConsumersToTopicPartitions.
    """
    factors = (each for each in range(1, partition_count + 1) if partition_count % each == 0)
    return next((each for each in factors if each * lag_threshold >= total_lag), partition_count)


class ScaledObject(Struct, frozen=True, kw_only=True, tag="keda", forbid_unknown_fields=True):
    """A ScaledObject of KEDA, for one workload.

    Args:
        polling_interval_s: `pollingInterval`; the HorizontalPodAutoscaler asks at its own pace.
        cooldown_period_s: `cooldownPeriod`, before a scale to `idle_replica_count` or 0.
        initial_cooldown_period_s: `initialCooldownPeriod`, while no trigger was active yet.
        min_replica_count: None is 0 for KEDA, and 1 for its HorizontalPodAutoscaler.
        behavior: `behavior` of the HorizontalPodAutoscaler that KEDA makes.
    """

    triggers: tuple[Trigger, ...]
    polling_interval_s: int = 30
    cooldown_period_s: int = 300
    initial_cooldown_period_s: int = 0
    idle_replica_count: int | None = None
    min_replica_count: int | None = None
    max_replica_count: int = 100
    behavior: Behavior | None = None

    def limits(self) -> Limits:
        """Return the limits of the HorizontalPodAutoscaler. Source: newHPAForScaledObject."""
        return Limits(
            min_replicas=self.min_replica_count or 1,
            max_replicas=self.max_replica_count,
            behavior=self.behavior,
        )


def check_scaled_object(scaled: ScaledObject) -> None:
    """Refuse a ScaledObject that KEDA's admission refuses.

    Raises:
        ScenarioError: names the value, the bound and the fix.

    Source: CheckReplicaCountBoundsAreValid, validation of scaledobject_types.go.
    """
    if not scaled.triggers:
        raise ScenarioError("triggers=[]: give a ScaledObject at least one trigger")
    for trigger in scaled.triggers:
        parse(trigger)
    for name, low in (
        ("polling_interval_s", 1),
        ("cooldown_period_s", 0),
        ("initial_cooldown_period_s", 0),
    ):
        if getattr(scaled, name) < low:
            raise ScenarioError(f"{name}={getattr(scaled, name)}: must be at least {low}")
    check_limits(scaled.limits())
    lowest = 0 if scaled.min_replica_count is None else scaled.limits().min_replicas
    idle = scaled.idle_replica_count
    if idle is not None and not 0 <= idle < lowest:
        raise ScenarioError(
            f"idle_replica_count={idle}: must be from 0, and less than min_replica_count={lowest}"
        )


class ScaleRequest(NamedTuple):
    """What the operator does after a poll.

    Args:
        replicas: Replicas to set; None changes nothing.
        last_active_ms: `status.lastActiveTime` from now on.
        reason: Why, in the words of KEDA's conditions and events.
    """

    replicas: int | None
    last_active_ms: int | None
    reason: str


class Poll(NamedTuple):
    """What the operator knows at a poll.

    Args:
        current: `spec.replicas` of the workload.
        is_active: Whether some trigger is active.
        is_error: Whether some trigger failed.
        last_active_ms: `status.lastActiveTime`; None before any.
        now_ms, created_ms: Instants of this poll, and of the ScaledObject's creation.
    """

    current: int
    is_active: bool
    is_error: bool = False
    last_active_ms: int | None = None
    now_ms: int = 0
    created_ms: int = 0


def request_scale(scaled: ScaledObject, poll: Poll) -> ScaleRequest:
    """Decide between 0 (or idle) and the minimum; what is between is the HPA's.

    Source: scaleExecutor.RequestScale, without `fallback`.
    """
    lowest, idle = scaled.min_replica_count or 0, scaled.idle_replica_count
    current, last_active_ms = poll.current, poll.last_active_ms
    if poll.is_active:
        if (idle is not None and current < lowest) or current == 0:
            return ScaleRequest(max(lowest, 1), poll.now_ms, "KEDAScaleTargetActivated")
        reason = "PartialTriggerError" if poll.is_error else "ScalerActive"
        return ScaleRequest(None, last_active_ms if poll.is_error else poll.now_ms, reason)
    if poll.is_error:
        return ScaleRequest(None, last_active_ms, "TriggerError")
    if (idle is not None and current > idle) or (current > 0 and lowest == 0):
        return _scale_to_zero_or_idle(scaled, poll)
    if idle is None and current < lowest:
        return ScaleRequest(lowest, last_active_ms, "MinReplicaCount")
    return ScaleRequest(None, last_active_ms, "ScalerNotActive")


def _scale_to_zero_or_idle(scaled: ScaledObject, poll: Poll) -> ScaleRequest:
    since_ms, period_s = poll.created_ms, scaled.initial_cooldown_period_s
    if poll.last_active_ms is not None:
        since_ms, period_s = poll.last_active_ms, scaled.cooldown_period_s
    if since_ms + period_s * _MS_PER_S >= poll.now_ms:
        return ScaleRequest(None, poll.last_active_ms, "ScalerCooldown")
    idle = scaled.idle_replica_count
    target = idle if idle is not None else scaled.min_replica_count or 0
    return ScaleRequest(target, poll.last_active_ms, "KEDAScaleTargetDeactivated")
