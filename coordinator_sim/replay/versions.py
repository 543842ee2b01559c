"""Chooses the profile that replays a log: the available Kafka nearest to its version range."""

from typing import Final

from msgspec import Struct

from coordinator_sim.kafka.profiles import DEFAULT_PROFILE, Profile, profile_named

VERSION_ATTR: Final = "broker_version_range"
"""Attribute in which importers note the range; the last of a file is the narrowest."""


class ProfileChoice(Struct, frozen=True):
    """Profile chosen for a range.

    Args:
        is_nearest: Whether the range has versions that the profile does not behave like.
    """

    profile: Profile
    is_nearest: bool


def profile_for(version_range: str | None) -> ProfileChoice:
    """Return the profile for a range such as `2.5-2.7`, `3.9` or `4.x`; None is unknown."""
    if version_range is None:
        return ProfileChoice(DEFAULT_PROFILE, is_nearest=True)
    low, _, high = version_range.partition("-")
    oldest, newest = _number(low), _number(high or low)
    if oldest >= (3, 7) and newest >= (4, 0):
        return ProfileChoice(DEFAULT_PROFILE, is_nearest=oldest < (4, 0))
    if newest >= (3, 0):
        return ProfileChoice(profile_named("3.9"), is_nearest=oldest < (3, 3))
    if newest >= (0, 11):
        return ProfileChoice(profile_named("2.8"), is_nearest=oldest < (2, 8))
    return ProfileChoice(profile_named("0.10.2"), is_nearest=oldest < (0, 10))


def _number(version: str) -> tuple[int, int]:
    """Parse a release as two numbers; `4.x` is 4.0."""
    major, _, minor = version.partition(".")
    return int(major), int(minor) if minor.isdigit() else 0
