"""Which profile replays a log: its version range, by wording, to the nearest Kafka we have."""

from typing import Final

from msgspec import Struct

from coordinator_sim.protocol.profiles import DEFAULT_PROFILE, Profile, profile_named

VERSION_ATTR: Final = "broker_version_range"
"""The attribute in which importers note the range; the last of a file is the narrowest."""


class ProfileChoice(Struct, frozen=True):
    """A profile for a range.

    Args:
        is_nearest: The range has versions that the profile does not behave like.
    """

    profile: Profile
    is_nearest: bool


def profile_for(version_range: str | None) -> ProfileChoice:
    """The profile for a range such as `2.5-2.7`, `3.9` or `4.x`; None is an unknown version."""
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
    """A release as two numbers; `4.x` is 4.0."""
    major, _, minor = version.partition(".")
    return int(major), int(minor) if minor.isdigit() else 0
