"""The releases of Kafka's coordinators whose log lines differ, and sets of them.

Releases 3.7 to 3.9 have both coordinators, so that a line of theirs is the Scala one's or the Java
one's. A set of releases is an int with one bit for each release of each coordinator.
"""

from functools import cache
from typing import Final

from msgspec import Struct

from coordinator_sim.kafka.log_words import LogWords
from coordinator_sim.kafka.profiles import Profile

SCALA: Final = (
    *("0.9", "0.10", "0.11", "1.0", "1.1", "2.0", "2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "2.7"),
    *("2.8", "3.0", "3.1", "3.2", "3.3", "3.4", "3.5", "3.6", "3.7", "3.8", "3.9"),
)
JAVA: Final = ("3.7", "3.8", "3.9", "4.x")
VERSIONS: Final = (*SCALA, JAVA[-1])
"""Releases whose wording differs, oldest first; all of 4 counts as one."""
_ORDER: Final = (*SCALA, *JAVA)
ALL: Final = (1 << len(_ORDER)) - 1
_OF_WORDS: Final = {
    LogWords.RESTABILIZE: "0.10",
    LogWords.DEPARTURES_FIRST: "2.8",
    LogWords.CLIENT_REASONS: "3.9",
    LogWords.JAVA: "4.x",
}


@cache
def releases(text: str) -> int:
    """Return the set that a text names.

    Args:
        text: One or more of `2.8` (one release), `2.5-2.8`, `-2.8` and `2.8-` (ranges; the last
            one includes both coordinators) and `java` (every release of the Java coordinator).
            The numbers 3.7 to 3.9 mean the Scala coordinator.
    """
    found = 0
    for part in text.split():
        first, is_range, last = part.partition("-")
        if part == "java":
            low, high = len(SCALA), len(_ORDER) - 1
        else:
            low = _place(first) if first else 0
            high = (_place(last) if last else len(_ORDER) - 1) if is_range else low
        found |= (2 << high) - (1 << low)
    return found


def _place(release: str) -> int:
    return _ORDER.index(release)


@cache
def version_range(found: int) -> tuple[int, int]:
    """Return the places in VERSIONS of the oldest and the newest release of a set."""
    names = [name for place, name in enumerate(_ORDER) if found >> place & 1]
    places = [VERSIONS.index(name) for name in names]
    return min(places), max(places)


class Release(Struct, frozen=True):
    """The release in whose words lines are written.

    Args:
        bit: Set of this release alone.
        awaiting_sync_name: Name of the state between join and sync.
    """

    bit: int
    awaiting_sync_name: str

    def is_in(self, text: str) -> bool:
        """Whether the release is in the set that a text names."""
        return bool(self.bit & releases(text))

    def shown(self, text: str) -> str:
        """Return a text with the state's name as this release shows it."""
        return text.replace("AwaitingSync", self.awaiting_sync_name)


def release_of(profile: Profile) -> Release:
    """Return the release whose words a profile's coordinator uses."""
    return Release(releases(_OF_WORDS[profile.log_words]), profile.awaiting_sync_name)
