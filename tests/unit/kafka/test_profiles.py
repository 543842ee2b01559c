"""Profiles by name."""

import pytest

from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.profiles import DEFAULT_PROFILE, profile_named
from coordinator_sim.kafka.releases import RELEASES


def test_family_names_stand_for_their_newest() -> None:
    """An alias is the very profile it stands for."""
    assert profile_named("java-4.x") is profile_named(RELEASES[-1]) is DEFAULT_PROFILE
    assert profile_named("scala-3.x") is profile_named("3.9")
    assert profile_named("legacy-0.10.2") is profile_named("0.10.2")


def test_unknown_name_lists_the_known_ones() -> None:
    """The message says what may be used."""
    with pytest.raises(ConfigError, match=r"unknown profile '5\.0': use one of 0\.10\.2"):
        profile_named("5.0")
