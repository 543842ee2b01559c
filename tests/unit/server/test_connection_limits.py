"""How many connections a broker takes."""

import pytest

from coordinator_sim.broker.configs.configs import Configs
from coordinator_sim.broker.metadata.image import MetadataImage
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.profiles import DEFAULT_PROFILE
from coordinator_sim.server.kafka_server import ConnectionLimits


def limits(**given: str) -> ConnectionLimits:
    """The limits of a broker with these settings, dots as underscores."""
    named = {name.replace("_", "."): value for name, value in given.items()}
    return ConnectionLimits(Configs(DEFAULT_PROFILE, named, MetadataImage()), 1)


def test_host_has_its_own_number_of_connections() -> None:
    """One more of the same host is too many, until one of them ends."""
    found = limits(max_connections_per_ip="1", max_connections_per_ip_overrides="10.0.0.1:2")
    found.opened("a", "10.0.0.2", "PLAINTEXT")
    found.opened("b", "10.0.0.1", "PLAINTEXT")

    assert found.refusal("10.0.0.2", "PLAINTEXT") == "more than 1 connections of 10.0.0.2"
    assert found.refusal("10.0.0.1", "PLAINTEXT") is None
    found.closed("a")
    assert found.refusal("10.0.0.2", "PLAINTEXT") is None


def test_broker_and_listener_have_limits() -> None:
    """The limits of a listener count for that listener alone."""
    found = limits(max_connections="2", listener_name_ssl_max_connections="1")
    found.opened("a", "h", "SSL")

    assert found.refusal("h", "SSL") == "more than 1 connections of listener SSL"
    assert found.refusal("h", "PLAINTEXT") is None
    found.opened("b", "h", "PLAINTEXT")
    assert found.refusal("h", "PLAINTEXT") == "more than 2 connections"


def test_override_without_a_count_is_refused() -> None:
    """The entry is named."""
    with pytest.raises(ConfigError, match=r"10\.0\.0\.1"):
        limits(max_connections_per_ip_overrides="10.0.0.1")


def test_idle_time_is_in_seconds_or_none() -> None:
    """-1 keeps connections for ever."""
    assert limits().idle_s == 600
    assert limits(connections_max_idle_ms="-1").idle_s is None
