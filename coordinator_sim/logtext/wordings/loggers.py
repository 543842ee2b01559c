"""The classes that log for a coordinator: their names and the prefixes of their messages.

The messages themselves are in the tables of rows.
"""

import re
from typing import Final

from msgspec import Struct

from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC
from coordinator_sim.logtext.wordings.releases import Release, releases


class Logger(Struct, frozen=True):
    """One logging class in some releases.

    Args:
        known: Releases, as `releases` reads them.
        name: Name of the class with its package.
        prefix: Text before its messages, in the language of `texts`.
    """

    known: str
    name: str
    prefix: str = ""


Voice = tuple[Logger, ...]
"""The classes that log the same thing, one for each release."""

_EARLY: Final = "kafka.coordinator"
_SCALA: Final = "kafka.coordinator.group"
_JAVA: Final = "org.apache.kafka.coordinator"
_NUMBER: Final = "[GroupCoordinator {broker_id}]: "
_ON_BROKER: Final = "[Group Metadata Manager on Broker {broker_id}]: "
_BROKER: Final = "[GroupCoordinator id={broker_id}] "
_SHARD: Final = (
    f"[GroupCoordinator id={{broker_id}} topic={OFFSETS_TOPIC} partition={{offsets_partition}}] "
)

_SCALA_COORDINATOR: Final = (
    Logger("-0.10", f"{_EARLY}.GroupCoordinator", _NUMBER),
    Logger("0.11-3.9", f"{_SCALA}.GroupCoordinator", _NUMBER),
)
_CLASSIC_GROUP: Final = Logger("java", f"{_JAVA}.group.classic.ClassicGroup", _SHARD)

COORDINATOR: Final = (
    *_SCALA_COORDINATOR,
    Logger("java", f"{_JAVA}.group.GroupMetadataManager", _SHARD),
)
FENCING: Final = (*_SCALA_COORDINATOR, _CLASSIC_GROUP)
DELETION: Final = (
    *_SCALA_COORDINATOR,
    Logger("java", f"{_JAVA}.group.GroupCoordinatorShard", _SHARD),
)
COMMITS: Final = (Logger("java", f"{_JAVA}.group.OffsetMetadataManager", _SHARD),)
PARTITIONS: Final = (
    Logger("-0.10", f"{_EARLY}.GroupMetadataManager", _ON_BROKER),
    Logger("0.11", f"{_SCALA}.GroupMetadataManager", _ON_BROKER),
    Logger(
        "1.0-3.9", f"{_SCALA}.GroupMetadataManager", "[GroupMetadataManager brokerId={broker_id}] "
    ),
    Logger("java", f"{_JAVA}.common.runtime.CoordinatorRuntime", _BROKER),
)
GROUP: Final = (Logger("0.11-3.9", f"{_SCALA}.GroupMetadata"), _CLASSIC_GROUP)
COMPANION: Final = (Logger("2.8-3.9", f"{_SCALA}.GroupMetadata$"),)
"""The object beside Scala's class of a group."""


def logger_of(voice: Voice, release: Release) -> Logger:
    """Return the class that logs in a release."""
    return next(logger for logger in voice if release.is_in(logger.known))


def releases_of(text: str) -> list[int]:
    """Return the sets of releases that the logging class and the prefix of a message tell.

    Args:
        text: Message with its prefix, behind the name of its logger.
    """
    return [told for pattern, told in _EVIDENCE if pattern.search(text)]


def _evidence() -> list[tuple[re.Pattern[str], int]]:
    found: dict[str, int] = {}
    for logger in (*COORDINATOR, *PARTITIONS):
        package, _, _ = logger.name.rpartition(".")
        lead, _, _ = logger.prefix.partition("{broker_id}")
        for pattern in (rf"(?<![\w.]){re.escape(package)}\.[A-Z]", rf"{re.escape(lead)}\d"):
            found[pattern] = found.get(pattern, 0) | releases(logger.known)
    return [(re.compile(pattern), told) for pattern, told in found.items()]


_EVIDENCE: Final = _evidence()
