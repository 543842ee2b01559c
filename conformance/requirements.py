"""Requirements on coordinators, members and Trogdor: one value each, with the Kafkas it covers.

The cases are in `conformance/cases`, `wire_cases`, `client_cases` and `trogdor_cases`;
`conformance/registry.py` joins them.
"""

from enum import StrEnum, unique
from typing import Final

from msgspec import Struct

from coordinator_sim.kafka.api_versions import recorded_versions
from coordinator_sim.kafka.profiles import PROFILES

FAMILIES: Final[dict[str, str]] = {
    "L": "legacy-0.10.2",
    "S": "scala-3.x",
    "J": "java-4.x",
}
"""Letter of a family in a case's header -> the profile that represents it."""

RELEASES: Final = {
    name: recorded_versions(profile).kafka_version for name, profile in PROFILES.items()
}
"""Profile -> the release of Apache Kafka that it behaves like; oldest first."""

TROGDOR: Final = "TROGDOR"
"""How the areas and ids of requirements on Trogdor begin."""

_LETTERS: Final = {"0.10.2": "L", "2.8": "S", "3.9": "S"}


def family_of(profile: str) -> str:
    """Return the letter of a profile's family."""
    return _LETTERS.get(profile, "J")


@unique
class Level(StrEnum):
    """Means that are needed to see that a requirement is broken."""

    MUST = "must"
    """Requests, replies and waiting are enough: it runs over the wire."""
    MODEL = "model"
    """Exact time, a fault of the log, a failover or internal state is needed."""


class Requirement(Struct, frozen=True, kw_only=True):
    """One required behaviour.

    Args:
        requirement_id: Permanent id: never reused nor renumbered.
        area: The part of the protocol it belongs to.
        families: Letters out of `FAMILIES`, oldest first; empty for a requirement on clients or
            on Trogdor.
        since: First release of Kafka with this behaviour; empty for the whole family.
        until: Last release with it; empty when the newest of the family still has it.
        sources: Places in Kafka: file, class or test, and method.
        switches: Switches of the profile to set by hand: the releases it covers have no profile,
            and it is checked as the last older one with these switches on.
        verified_on: Releases of real brokers that showed the behaviour, oldest first.
        is_quirk: Whether Kafka behaves oddly here, so that others may do better and break nobody.
    """

    requirement_id: str
    title: str
    area: str
    families: str
    level: Level
    sources: tuple[str, ...]
    since: str = ""
    until: str = ""
    switches: tuple[str, ...] = ()
    verified_on: tuple[str, ...] = ()
    is_quirk: bool = False

    @property
    def weight(self) -> str:
        """The level in words, and whether Kafka behaves oddly here."""
        return f"{self.level.value}, quirk" if self.is_quirk else self.level.value

    @property
    def is_of_clients(self) -> bool:
        """Whether it is a requirement on members of a group, not on a coordinator's profile."""
        return not self.families and not self.is_of_trogdor

    @property
    def is_of_trogdor(self) -> bool:
        """Whether it is a requirement on Trogdor's coordinator or agents."""
        return self.area.startswith(f"{TROGDOR}-")

    @property
    def profiles(self) -> tuple[str, ...]:
        """The profiles that must behave so, oldest first; empty for requirements on clients."""
        if self.switches:
            since = _numbers(self.since)
            older = [name for name, release in RELEASES.items() if _numbers(release) < since]
            return tuple(older[-1:])
        return tuple(profile for profile in RELEASES if self._is_about(profile))

    def _is_about(self, profile: str) -> bool:
        if family_of(profile) not in self.families:
            return False
        release = _numbers(RELEASES[profile])
        if self.since and release < _numbers(self.since):
            return False
        until = _numbers(self.until)
        return not until or release[: len(until)] <= until


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split(".") if part.isdigit())
