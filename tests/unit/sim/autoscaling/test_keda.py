"""KEDA's Kafka scaler and its operator, on figures of KEDA's own tests.

Each row names the test of KEDA that it comes from; other rows say `own`.
"""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.errors import ScenarioError
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.sim.autoscaling.keda import (
    INVALID_OFFSET,
    KafkaScaler,
    Lag,
    Observation,
    Poll,
    ScaledObject,
    ScalerError,
    Trigger,
    check_scaled_object,
    next_factor,
    parse,
    partition_limitation,
    request_scale,
)

MIXED: Final = (1, 2, 3, 4, 8, 10, 11, 12)
GROUP: Final = "consumerGroup=g"
TOPIC: Final = "consumerGroup=g topic=t"
LIMIT: Final = "limitToPartitionsWithLag"
EVEN: Final = "ensureEvenDistributionOfPartitions"

SARAMA: Final[tuple[tuple[str, str, dict[str, object]], ...]] = (
    ("", "consumerGroup", {}),
    ("bootstrapServers=b", "consumerGroup", {}),
    (GROUP, "", {"topic": "", "offset_reset_policy": "latest"}),
    (f"{GROUP} partitionLimitation=1,2,3,4,5,6", "", {"partitions": None}),
    (f"{GROUP} partitionLimitation=", "", {"partitions": None}),
    (f"{TOPIC} lagThreshold=-1", "lagThreshold=-1", {}),
    (f"{TOPIC} lagThreshold=0", "lagThreshold=0", {}),
    (f"{TOPIC} lagThreshold=1000000 activationLagThreshold=0", "", {"lag_threshold": 1_000_000}),
    (f"{TOPIC} lagThreshold=10 activationLagThreshold=AA", "activationLagThreshold", {}),
    (f"{TOPIC} lagThreshold=10 activationLagThreshold=0", "", {"activation_lag_threshold": 0}),
    (TOPIC, "", {"topic": "t", "partitions": None, "lag_threshold": 10}),
    (f"{TOPIC} partitionLimitation=1,2,3,4", "", {"partitions": (1, 2, 3, 4)}),
    (f"{TOPIC} partitionLimitation=1-4", "", {"partitions": (1, 2, 3, 4)}),
    (f"{TOPIC} partitionLimitation=1-4,8,10-12", "", {"partitions": MIXED}),
    (f"{TOPIC} partitionLimitation=a,b,c,d", "partitionLimitation='a'", {}),
    (f"{TOPIC} bootstrapServers=a:1,b:1", "", {"consumer_group": "g"}),
    (f"{TOPIC} offsetResetPolicy=latest", "", {"offset_reset_policy": "latest"}),
    (f"{TOPIC} offsetResetPolicy=foo", "offsetResetPolicy", {}),
    (f"{TOPIC} offsetResetPolicy=earliest", "", {"offset_reset_policy": "earliest"}),
    (f"{TOPIC} allowIdleConsumers=notvalid", "allowIdleConsumers", {}),
    (f"{TOPIC} allowIdleConsumers=true", "", {"allow_idle_consumers": True}),
    (f"{TOPIC} excludePersistentLag=notvalid", "excludePersistentLag", {}),
    (f"{TOPIC} excludePersistentLag=true", "", {"exclude_persistent_lag": True}),
    (f"{TOPIC} allowIdleConsumers=true version=1.0.0", "", {"allow_idle_consumers": True}),
    (f"{TOPIC} {LIMIT}=true", "", {"limit_to_partitions_with_lag": True}),
    (f"{TOPIC} {LIMIT}=notvalid", LIMIT, {}),
    (f"{TOPIC} allowIdleConsumers=true {LIMIT}=true", "exclude each other", {}),
    (f"{TOPIC} allowIdleConsumers=true {LIMIT}=false", "", {"allow_idle_consumers": True}),
    (f"{GROUP} {LIMIT}=true", "needs a topic", {}),
    (f"{TOPIC} {EVEN}=true", "", {"ensure_even_distribution_of_partitions": True}),
    (f"{TOPIC} {EVEN}=true {LIMIT}=true", "exclude each other", {}),
    (f"{TOPIC} fullMetadata=true", "", {"full_metadata": True}),
    (f"{GROUP} fullMetadata=true", "", {"full_metadata": True}),
    (f"{TOPIC} fullMetadata=false", "", {"full_metadata": False}),
    (f"{GROUP} fullMetadata=false", "needs a topic", {}),
    (f"{TOPIC} fullMetadata=notabool", "fullMetadata", {}),
)
"""Metadata, a part of its refusal, and fields. Source: TestGetBrokers of kafka_scaler_test.go."""
KAFKA_GO: Final[tuple[tuple[str, str, dict[str, object]], ...]] = (
    ("bootstrapServers=b", "consumerGroup", {}),
    (GROUP, "", {"topic": ""}),
    (f"{GROUP} partitionLimitation=1,2,3,4,5,6", "", {"partitions": None}),
    (f"{GROUP} partitionLimitation=", "", {"partitions": None}),
    (f"{TOPIC} lagThreshold=-1", "lagThreshold=-1", {}),
    (f"{TOPIC} lagThreshold=0", "lagThreshold=0", {}),
    (f"{TOPIC} lagThreshold=1000000 activationLagThreshold=0", "", {"lag_threshold": 1_000_000}),
    (f"{TOPIC} lagThreshold=10 activationLagThreshold=0", "", {"lag_threshold": 10}),
    (TOPIC, "", {"topic": "t", "partitions": None}),
    (f"{TOPIC} partitionLimitation=1,2,3,4", "", {"partitions": (1, 2, 3, 4)}),
    (f"{TOPIC} partitionLimitation=1-4", "", {"partitions": (1, 2, 3, 4)}),
    (f"{TOPIC} partitionLimitation=1-4,8,10-12", "", {"partitions": MIXED}),
    (f"{TOPIC} partitionLimitation=a,b,c,d", "partitionLimitation='a'", {}),
    (f"{TOPIC} offsetResetPolicy=latest", "", {"offset_reset_policy": "latest"}),
    (f"{TOPIC} offsetResetPolicy=foo", "offsetResetPolicy", {}),
    (f"{TOPIC} offsetResetPolicy=earliest", "", {"offset_reset_policy": "earliest"}),
    (f"{TOPIC} allowIdleConsumers=notvalid", "allowIdleConsumers", {}),
    (f"{TOPIC} allowIdleConsumers=true", "", {"allow_idle_consumers": True}),
    (f"{TOPIC} excludePersistentLag=notvalid", "excludePersistentLag", {}),
    (f"{TOPIC} excludePersistentLag=true", "", {"exclude_persistent_lag": True}),
    (f"{TOPIC} {LIMIT}=true", "", {"limit_to_partitions_with_lag": True}),
    (f"{TOPIC} {LIMIT}=notvalid", LIMIT, {}),
    (f"{TOPIC} allowIdleConsumers=true {LIMIT}=true", "exclude each other", {}),
    (f"{TOPIC} allowIdleConsumers=true {LIMIT}=false", "", {"allow_idle_consumers": True}),
    (f"{GROUP} {LIMIT}=true", "needs a topic", {}),
    (f"{GROUP} {EVEN}=true", "", {"ensure_even_distribution_of_partitions": True}),
    (f"{GROUP} {EVEN}=true {LIMIT}=true", "needs a topic", {}),
)
"""The same of `apache-kafka`. Source: TestApacheKafkaGetBrokers of apache_kafka_scaler_test.go."""


def trigger(text: str, kind: str = "kafka") -> Trigger:
    """Return a trigger of `name=value` pairs."""
    metadata = dict(pair.split("=", 1) for pair in text.split())
    return Trigger(metadata=metadata, type="kafka" if kind == "kafka" else "apache-kafka")


@pytest.mark.parametrize(
    ("kind", "text", "refusal", "fields"),
    [
        *(pytest.param("kafka", *row, id=f"TestGetBrokers-{row[0]}") for row in SARAMA),
        *(
            pytest.param("apache-kafka", *row, id=f"TestApacheKafkaGetBrokers-{row[0]}")
            for row in KAFKA_GO
        ),
    ],
)
def test_metadata_is_read_or_refused(
    kind: str, text: str, refusal: str, fields: dict[str, object]
) -> None:
    """Metadata that KEDA's test accepts gives these fields; the rest is refused by name."""
    if refusal:
        with pytest.raises(ScenarioError, match=refusal):
            parse(trigger(text, kind))
    else:
        metadata = parse(trigger(text, kind))
        assert {name: getattr(metadata, name) for name in fields} == fields


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", (1,)),
        ("1,2,3,4", (1, 2, 3, 4)),
        (" 1 , 2 , 3 ", (1, 2, 3)),
        ("1-4", (1, 2, 3, 4)),
        ("3-3", (3,)),
        (" 1 - 4 ", (1, 2, 3, 4)),
        ("1-4,8,10-12", MIXED),
        ("a,b,c", None),
        ("1-2-3", None),
        ("a-3", None),
        ("1-b", None),
    ],
)
def test_partition_limitation_is_read(text: str, expected: tuple[int, ...] | None) -> None:
    """Source: TestKafkaParsePartitionLimitation."""
    if expected is None:
        with pytest.raises(ScenarioError, match="must be a partition, or a range"):
            partition_limitation(text)
    else:
        assert partition_limitation(text) == expected


@pytest.mark.parametrize(
    ("total_lag", "partitions", "expected", "source"),
    [
        *((10 * each, 10, each, "TestFindFactors") for each in (1, 2, 5, 10)),
        *((10 * each, 13, each, "TestFindFactors") for each in (1, 13)),
        *((10 * each, 17, each, "TestFindFactors") for each in (1, 17)),
        *((10 * each, 25, each, "TestFindFactors") for each in (1, 5, 25)),
        *((10 * each, 50, each, "TestFindFactors") for each in (1, 2, 5, 10, 25, 50)),
        *((10 * each, 100, each, "TestFindFactors") for each in (1, 2, 4, 5, 10, 20, 25, 50, 100)),
        (10, 100, 1, "TestGetNextFactor"),
        (20, 100, 2, "TestGetNextFactor"),
        (40, 100, 4, "TestGetNextFactor"),
        (50, 100, 5, "TestGetNextFactor"),
        (99, 100, 10, "TestGetNextFactor"),
        (100, 100, 10, "TestGetNextFactor"),
        (101, 100, 20, "TestGetNextFactor"),
        (10_000, 100, 100, "own"),
    ],
)
def test_consumers_divide_partitions_evenly(
    total_lag: int, partitions: int, expected: int, source: str
) -> None:
    """A lag of ten records for each consumer of a factor gives that factor."""
    assert next_factor(total_lag, partitions, 10) == expected, source


PARTITION: Final = TopicPartition("t", 0)


@pytest.mark.parametrize(
    ("committed", "end_offset", "settings", "expected"),
    [
        (INVALID_OFFSET, None, "offsetResetPolicy=earliest scaleToZeroOnInvalidOffset=true", 0),
        (INVALID_OFFSET, None, "offsetResetPolicy=earliest", 0),
        (100, None, "offsetResetPolicy=earliest", 0),
        (100, 150, "offsetResetPolicy=earliest", 50),
        (INVALID_OFFSET, 150, "scaleToZeroOnInvalidOffset=true", 0),
        (INVALID_OFFSET, 150, "", 1),
        (INVALID_OFFSET, 150, "offsetResetPolicy=earliest", 150),
    ],
)
def test_lag_of_partition(
    committed: int, end_offset: int | None, settings: str, expected: int
) -> None:
    """Source: TestGetLagForPartition_MissingPartition, scenarios and controls; two rows own."""
    scaler = KafkaScaler(trigger(f"{TOPIC} {settings}"))
    assert scaler.lag_of(PARTITION, committed, end_offset) == Lag(expected, expected)


@pytest.mark.parametrize(
    ("limitation", "ids", "expected"),
    [
        ("1,2", (1, 2), [1, 2]),
        ("1,2,3", (1, 2, 3, 4, 5, 6), [1, 2, 3]),
        ("", (1, 2, 3, 4, 5, 6), [1, 2, 3, 4, 5, 6]),
    ],
)
def test_active_partitions(limitation: str, ids: tuple[int, ...], expected: list[int]) -> None:
    """Source: TestGetTopicPartitions."""
    scaler = KafkaScaler(trigger(f"{TOPIC} partitionLimitation={limitation}"))
    seen = Observation(partitions={"t": ids, "other": (0,)}, committed={}, end_offsets={})
    assert scaler.active_partitions(seen) == [TopicPartition("t", each) for each in expected]


def test_trigger_without_topic_reads_committed_topics_or_all_of_the_cluster() -> None:
    """Sarama's scaler lists the group's offsets; kafka-go's takes every topic, given a member."""
    seen = Observation(
        partitions={"a": (0,), "b": (0, 1)}, committed={TopicPartition("b", 0): 5}, end_offsets={}
    )
    only_committed = KafkaScaler(trigger(GROUP)).active_partitions(seen)
    assert only_committed == [TopicPartition("b", 0), TopicPartition("b", 1)]
    kafka_go = KafkaScaler(trigger(GROUP, "apache-kafka"))
    with pytest.raises(ScalerError, match="no active members"):
        kafka_go.active_partitions(seen)
    with pytest.raises(ScalerError, match="at least one active partition within topic 't'"):
        KafkaScaler(trigger(TOPIC)).active_partitions(seen)


def test_lag_that_does_not_move_stops_scaling_but_keeps_a_consumer() -> None:
    """A partition whose offset is the same at two readings counts for activation alone."""
    scaler = KafkaScaler(trigger(f"{TOPIC} excludePersistentLag=true"))
    assert scaler.lag_of(PARTITION, 10, 50) == Lag(40, 40)
    assert scaler.lag_of(PARTITION, 10, 60) == Lag(0, 50)
    assert scaler.lag_of(PARTITION, 20, 60) == Lag(40, 40)
    assert scaler.is_active(Lag(0, 1))
    assert not scaler.is_active(Lag(0, 0))


def seen_with(lags: tuple[int, ...]) -> Observation:
    """Return a topic with these lags."""
    partitions = [TopicPartition("t", index) for index in range(len(lags))]
    return Observation(
        partitions={"t": tuple(range(len(lags)))},
        committed=dict.fromkeys(partitions, 7),
        end_offsets={each: 7 + lag for each, lag in zip(partitions, lags, strict=True)},
    )


@pytest.mark.parametrize(
    ("lags", "settings", "expected"),
    [
        ((50, 0, 0), "lagThreshold=10", 30),
        ((39, 0, 0), "lagThreshold=10", 39),  # as many consumers as partitions, with a fraction
        ((50, 0, 0), "lagThreshold=10 allowIdleConsumers=true", 50),
        ((50, 0, 0), f"lagThreshold=10 {LIMIT}=true", 10),
        ((50, 5, 0), f"lagThreshold=10 {LIMIT}=true", 20),
        ((25, 0, 0, 0), f"lagThreshold=10 {EVEN}=true", 40),
        ((0, 0, 0, 0), f"lagThreshold=10 {EVEN}=true", 10),
        ((50, 0, 0, 0), f"lagThreshold=10 {EVEN}=true allowIdleConsumers=true", 40),
    ],
)
def test_total_lag_is_bounded_by_partitions(
    lags: tuple[int, ...], settings: str, expected: int
) -> None:
    """The metric never asks for more consumers than there are partitions of use. Own rows."""
    assert KafkaScaler(trigger(f"{TOPIC} {settings}")).total_lag(seen_with(lags)).lag == expected


def test_lag_just_below_the_bound_asks_for_one_consumer_more_than_partitions() -> None:
    """KEDA compares whole multiples of the threshold: more lag may then ask for less."""
    scaler = KafkaScaler(trigger(f"{TOPIC} lagThreshold=10"))
    asked = [-(-scaler.total_lag(seen_with((lag, 0, 0))).lag // 10) for lag in (30, 39, 40)]
    assert asked == [3, 4, 3]


@given(
    lags=st.lists(st.integers(0, 10_000), min_size=1, max_size=12),
    more=st.integers(0, 10_000),
    threshold=st.integers(1, 500),
    setting=st.sampled_from(["", "allowIdleConsumers=true", f"{LIMIT}=true", f"{EVEN}=true"]),
)
def test_total_lag_stays_below_its_bound_and_grows_where_it_has_none(
    lags: list[int], more: int, threshold: int, setting: str
) -> None:
    """Partitions bound the metric; where they do not cut it, more lag never makes it smaller."""
    scaler = KafkaScaler(trigger(f"{TOPIC} lagThreshold={threshold} {setting}"))
    before = scaler.total_lag(seen_with(tuple(lags))).lag
    after = scaler.total_lag(seen_with((lags[0] + more, *lags[1:]))).lag
    if setting in ("allowIdleConsumers=true", f"{EVEN}=true"):
        assert before <= after
    if setting != "allowIdleConsumers=true":
        assert after // threshold <= len(lags)


SCALED: Final = ScaledObject(triggers=(trigger(TOPIC),))
ACTIVATED: Final = "KEDAScaleTargetActivated"
DEACTIVATED: Final = "KEDAScaleTargetDeactivated"


@pytest.mark.parametrize(
    ("source", "counts", "poll", "expected"),
    [
        ("TestScaleToMinReplicasWhenNotActive", {"min": 0}, "10", (0, DEACTIVATED)),
        ("TestScaleToMinReplicasFromLowerInitialReplicaCount", {"min": 5}, "1", (5, "Min")),
        ("TestScaleFromMinReplicasWhenActive", {"min": 0}, "0 active", (1, ACTIVATED)),
        ("TestScaleToIdleReplicasWhenNotActive", {"idle": 0, "min": 5}, "10", (0, DEACTIVATED)),
        ("TestScaleFromIdleToMinReplicasWhenActive", {"idle": 0, "min": 5}, "0 active", (5, "")),
        ("TestEventWitTriggerInfo", {"idle": 0, "min": 5}, "2 active", (5, ACTIVATED)),
        ("TestRequestScale_AllHealthy_HPAHealthy", {"min": 1}, "1 active", (None, "ScalerActive")),
        ("TestRequestScale_ScalerError_HPAHealthy", {"min": 1}, "1 error", (None, "TriggerError")),
        (
            "TestRequestScale_PartialError_HPAHealthy",
            {"min": 1},
            "1 active error",
            (None, "PartialTriggerError"),
        ),
        ("own: above the minimum the HPA scales down", {"min": 1}, "4", (None, "NotActive")),
    ],
)
def test_operator_scales_to_and_from_zero(
    source: str, counts: dict[str, int], poll: str, expected: tuple[int | None, str]
) -> None:
    """KEDA's operator on one poll: replicas to set, and why."""
    names = {name: f"{name}_replica_count" for name in ("idle", "min", "max")}
    fields = {names.get(name, name): value for name, value in counts.items()}
    scaled = ScaledObject(triggers=SCALED.triggers, **fields)  # type: ignore[arg-type] # by name
    current, *words = poll.split()
    asked = request_scale(
        scaled,
        Poll(int(current), is_active="active" in words, is_error="error" in words, now_ms=1),
    )
    assert asked.replicas == expected[0], source
    assert expected[1] in asked.reason


@pytest.mark.parametrize(
    ("last_active_ms", "now_ms", "expected"),
    [
        (None, 60_000, None),
        (None, 60_001, 0),
        (100_000, 400_000, None),
        (100_000, 400_001, 0),
    ],
)
def test_scale_to_zero_waits_for_its_cooldown(
    last_active_ms: int | None, now_ms: int, expected: int | None
) -> None:
    """`cooldownPeriod` after the last activity, `initialCooldownPeriod` before any. Own rows."""
    scaled = ScaledObject(triggers=SCALED.triggers, initial_cooldown_period_s=60)
    poll = Poll(2, is_active=False, last_active_ms=last_active_ms, now_ms=now_ms)
    assert request_scale(scaled, poll).replicas == expected


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"triggers": ()}, "at least one trigger"),
        ({"polling_interval_s": 0}, "polling_interval_s=0: must be at least 1"),
        ({"min_replica_count": 5, "max_replica_count": 4}, "min_replicas=5, max_replicas=4"),
        ({"idle_replica_count": 0}, "idle_replica_count=0"),
        ({"idle_replica_count": 2, "min_replica_count": 2}, "idle_replica_count=2"),
        ({"triggers": (trigger(f"{TOPIC} lagTreshold=5"),)}, "lagTreshold"),
    ],
)
def test_impossible_scaled_object_is_refused(fields: dict[str, object], refusal: str) -> None:
    """Each refusal names the value and its bound."""
    values = {"triggers": SCALED.triggers, **fields}
    with pytest.raises(ScenarioError, match=refusal):
        check_scaled_object(ScaledObject(**values))  # type: ignore[arg-type] # by name
    check_scaled_object(SCALED)
