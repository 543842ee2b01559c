"""Settings of groups: what is refused, in the words of each release."""

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.broker.apis.group_configs import group_error
from coordinator_sim.broker.configs.configs import Configs
from coordinator_sim.broker.metadata.image import MetadataImage
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import PROFILES

SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
BOUNDS = {
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "500",
}
SHORTEST, LONGEST = {SESSION: 1_000, HEARTBEAT: 500}, {SESSION: 60_000, HEARTBEAT: 15_000}


def configs_of(profile: str) -> Configs:
    """The settings of a cluster with lower bounds than usual."""
    return Configs(PROFILES[profile], BOUNDS, MetadataImage())


def said(profile: str, **values: str) -> str:
    """The message of an error; empty for settings that are taken."""
    named = {name.replace("_", "."): value for name, value in values.items()}
    error = group_error(PROFILES[profile], configs_of(profile), "g", named)
    assert error.code in {ErrorCode.NONE, ErrorCode.INVALID_CONFIG}
    return error.message or ""


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"consumer_session_timeout_ms": "50000"}, ""),
        (
            {"consumer_heartbeat_interval_ms": "1"},
            "consumer.heartbeat.interval.ms must be in the range 500 to 15000 inclusive.",
        ),
        (
            {"consumer_heartbeat_interval_ms": "0"},
            (
                "Invalid value 0 for configuration consumer.heartbeat.interval.ms: "
                "Value must be at least 1"
            ),
        ),
        (
            {"consumer_assignment_interval_ms": "20000"},
            "consumer.assignment.interval.ms must be in the range 0 to 15000 inclusive.",
        ),
        ({"consumer_nonsense": "1"}, "Unknown group config name: consumer.nonsense"),
        (
            {"consumer_session_timeout_ms": "6000", "consumer_heartbeat_interval_ms": "7000"},
            "consumer.session.timeout.ms must be greater than consumer.heartbeat.interval.ms",
        ),
        (
            {"streams_num_standby_replicas": "100"},
            "streams.num.standby.replicas must be less than or equal to 2",
        ),
        (
            {"streams_num_warmup_replicas": "21"},
            "streams.num.warmup.replicas must be less than or equal to 20",
        ),
        ({"streams_rack_aware_assignment_tags": "a,b"}, ""),
        (
            {"streams_rack_aware_assignment_tags": "a , b,a"},
            "streams.rack.aware.assignment.tags must not contain duplicate tag keys.",
        ),
        ({"streams_assignor_name": "sticky"}, ""),
        (
            {"streams_assignor_name": " "},
            (
                "streams.assignor.name '' is not a registered task assignor. "
                "Registered assignors are: [sticky]."
            ),
        ),
        (
            {"share_session_timeout_ms": "2", "consumer_session_timeout_ms": "1"},
            "consumer.session.timeout.ms must be in the range 1000 to 60000 inclusive.",
        ),
        (
            {"consumer_session_timeout_ms": "1", "consumer_heartbeat_interval_ms": "1"},
            "consumer.heartbeat.interval.ms must be in the range 500 to 15000 inclusive.",
        ),
        (
            {"streams_heartbeat_interval_ms": "99999", "share_partition_max_record_locks": "9999"},
            "share.partition.max.record.locks must be in the range 100 to 4000 inclusive.",
        ),
        ({"errors_deadletterqueue_topic_name": "not a topic"}, ""),
        (
            {"errors_deadletterqueue_topic_name": "__letters"},
            "errors.deadletterqueue.topic.name: DLQ topic name must not start with '__'",
        ),
    ],
)
def test_refusals_are_those_of_a_real_4_4_0(values: dict[str, str], message: str) -> None:
    """Its answers to the same requests, with the same bounds."""
    assert said("4.4", **values) == message


def test_earlier_releases_name_the_bound() -> None:
    """As the classes of 4.3.1 say it."""
    assert said("4.3", consumer_heartbeat_interval_ms="1") == (
        "consumer.heartbeat.interval.ms must be greater than or equal to "
        "group.consumer.min.heartbeat.interval.ms"
    )


def test_list_with_much_white_space_is_read_in_no_time() -> None:
    """A text of 32 KB is the longest of a request; to find its end anew at each space took 2 s."""
    tags = f"a{' ' * 32_000}b,c"
    began_s = process_time()
    message = said("4.4", streams_rack_aware_assignment_tags=tags)
    assert process_time() - began_s < 0.5
    assert "duplicate" not in message


@pytest.mark.property
@given(st.integers(1, 70_000), st.integers(1, 20_000))
def test_what_is_taken_is_within_all_bounds(session_ms: int, heartbeat_ms: int) -> None:
    """And whatever is within them is taken."""
    values = {SESSION: session_ms, HEARTBEAT: heartbeat_ms}
    fits = all(SHORTEST[name] <= value <= LONGEST[name] for name, value in values.items())
    texts = {name: str(value) for name, value in values.items()}

    for profile in ("4.0", "4.4"):
        error = group_error(PROFILES[profile], configs_of(profile), "g", texts)
        assert error.is_failure != (fits and session_ms > heartbeat_ms)
