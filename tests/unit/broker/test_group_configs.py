"""Settings of groups: what is refused, in the words of each release."""

import json
from pathlib import Path
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
REFUSED = Path(__file__).with_name("refused_group_configs.jsonl")
"""Settings, and the message of a broker; empty where it takes them."""


def configs_of(profile: str) -> Configs:
    """The settings of a cluster with lower bounds than usual."""
    return Configs(PROFILES[profile], BOUNDS, MetadataImage())


def said(profile: str, **values: str) -> str:
    """The message of an error; empty for settings that are taken."""
    named = {name.replace("_", "."): value for name, value in values.items()}
    error = group_error(PROFILES[profile], configs_of(profile), "g", named)
    assert error.code in {ErrorCode.NONE, ErrorCode.INVALID_CONFIG}
    return error.message or ""


@pytest.mark.parametrize("line", REFUSED.read_text(encoding="utf-8").splitlines())
def test_refusals_are_those_of_a_real_4_4_0(line: str) -> None:
    """Its answers to the same requests, with the same bounds."""
    case = json.loads(line)
    assert said("4.4", **case["settings"]) == case["message"]


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
