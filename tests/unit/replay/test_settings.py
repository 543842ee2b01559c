"""Settings on the command line, and profiles by version."""

import pytest

from coordinator_sim.errors import ConfigError
from coordinator_sim.replay.settings import Settings, parse_settings
from coordinator_sim.replay.versions import profile_for


def test_settings_go_by_their_kafka_names() -> None:
    """A consumer's `max.poll.interval.ms` is its rebalance timeout; the last value wins."""
    settings = parse_settings(
        ["session.timeout.ms=9", "session.timeout.ms = 10000", "max.poll.interval.ms=300000"]
    )
    assert settings == Settings(session_timeout_ms=10_000, rebalance_timeout_ms=300_000)
    assert settings.given == {"session.timeout.ms": 10_000, "rebalance.timeout.ms": 300_000}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("session.timeout.ms=-1", "session.timeout.ms=-1: must be from 1 to 2147483647"),
        ("session.timeout.ms=soon", "give a whole number from 1"),
        ("sesion.timeout.ms=1", "give key=value with one of session.timeout.ms"),
        ("session.timeout.ms", "give key=value"),
    ],
)
def test_bad_setting_names_value_and_bound(text: str, words: str) -> None:
    """A setting that cannot be is refused in one line that says what can."""
    with pytest.raises(ConfigError, match=words):
        parse_settings([text])


def test_initial_delay_may_be_zero() -> None:
    """Kafka's own server.properties sets it so."""
    settings = parse_settings(["group.initial.rebalance.delay.ms=0"])
    assert settings.group_initial_rebalance_delay_ms == 0
    assert not settings.is_empty


@pytest.mark.parametrize(
    ("version_range", "profile", "is_nearest"),
    [
        ("0.9-0.10", "0.10.2", True),
        ("0.11-2.0", "2.8", True),
        ("2.8", "2.8", False),
        ("3.2-3.9", "3.9", True),
        ("3.7-4.x", "4.4", True),
        ("4.x", "4.4", False),
        (None, "4.4", True),
    ],
)
def test_version_range_picks_the_nearest_profile(
    version_range: str | None, profile: str, is_nearest: bool
) -> None:
    """Every age of Kafka has a profile that is its own or the nearest, and says which."""
    choice = profile_for(version_range)
    assert (choice.profile.name, choice.is_nearest) == (profile, is_nearest)
