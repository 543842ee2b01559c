"""What a row of the table `switches` is, and the few ways in which a switch goes by release."""

from collections.abc import Mapping
from math import inf
from typing import Final

from msgspec import Struct

from coordinator_sim.kafka.log_words import LogWords
from coordinator_sim.kafka.orders.iteration_order import HashOrder
from coordinator_sim.kafka.orders.offset_maps import OffsetMaps

Value = bool | int | str | LogWords | OffsetMaps | HashOrder
"""What a switch may be set to."""


def _is_reached(change: str, profile: str) -> bool:
    """Whether a profile is of that release or later; 2.8 stands for the last of its line, 2.8.2."""
    newest = (*(int(part) for part in profile.split(".")), inf)
    return tuple(int(part) for part in change.split(".")) <= newest


class Whose(Struct, frozen=True):
    """The coordinators, or Kafkas, whose question a switch answers.

    Args:
        said: How the table says so.
        first: The first release to which the question makes sense.
        gone: The first one to which it makes none any more; None while it does.
    """

    said: str
    first: str = "0"
    gone: str | None = None


BOTH: Final = Whose("both")
"""The code asks it of Kafka's Scala coordinator and of its Java coordinator."""
JAVA: Final = Whose("Java", first="4.0")
SCALA: Final = Whose("Scala", gone="4.0")
ZOOKEEPER: Final = Whose("with ZooKeeper", gone="3.9")
"""Releases up to 3.9 know ZooKeeper; a 3.9 is run without."""
KRAFT: Final = Whose("without ZooKeeper", first="3.9")
STATIC_MEMBERS: Final = Whose("with static members", first="2.3")
GIVEN_IDS: Final = Whose("with given member ids", first="2.2")
"""Where a JoinGroup without an id is first given one, so that there are pending ids."""
SIZE_LIMITS: Final = Whose("with group.max.size", first="2.2")
SYNC_TIMEOUTS: Final = Whose("with timeouts of SyncGroup", first="2.8.1")


class Switch(Struct, frozen=True):
    """One thing that Kafkas do differently: a row of the table.

    Args:
        name: The attribute of `Profile`.
        values: By the release that brought each, oldest first. Where that release is not known,
            the first profile that has the value stands for it.
        sentence: What it does, or where it is set.
        source: Where Kafka says so.
        whose: Whose question it is. Others hold a value that nobody asks for.
        is_by_hand: Whether no profile has it, and only a test sets it.
    """

    name: str
    values: Mapping[str, Value]
    sentence: str
    source: str
    whose: Whose = BOTH
    is_by_hand: bool = False

    def value_in(self, profile: str) -> Value:
        """The value in a profile: the newest that is not newer than the profile."""
        return [value for change, value in self.values.items() if _is_reached(change, profile)][-1]

    def is_asked_in(self, profile: str) -> bool:
        """Whether the question makes sense to a profile."""
        gone = self.whose.gone
        return _is_reached(self.whose.first, profile) and not (
            gone is not None and _is_reached(gone, profile)
        )


def by_release(
    values: Mapping[str, Value], name: str, sentence: str, source: str, *, whose: Whose = BOTH
) -> Switch:
    """Another value from each of these releases on."""
    return Switch(name, values, sentence, source, whose)


def since(release: str, name: str, sentence: str, source: str, *, whose: Whose = BOTH) -> Switch:
    """Yes since that release, no before."""
    return Switch(name, {"0": False, release: True}, sentence, source, whose)


def before(release: str, name: str, sentence: str, source: str, *, whose: Whose = BOTH) -> Switch:
    """Yes before that release, no since."""
    return Switch(name, {"0": True, release: False}, sentence, source, whose)


def within(
    first: str, gone: str, name: str, sentence: str, source: str, *, whose: Whose = BOTH
) -> Switch:
    """Yes since one release and before another."""
    return Switch(name, {"0": False, first: True, gone: False}, sentence, source, whose)


def in_java(name: str, sentence: str, source: str, *, whose: Whose = BOTH) -> Switch:
    """Yes of the Java coordinator, no of the Scala coordinator."""
    return since("4.0", name, sentence, source, whose=whose)


def in_scala(name: str, sentence: str, source: str, *, whose: Whose = BOTH) -> Switch:
    """Yes of the Scala coordinator, no of the Java coordinator."""
    return before("4.0", name, sentence, source, whose=whose)


def by_hand(name: str, sentence: str, source: str) -> Switch:
    """No in every profile; a test may set it."""
    return Switch(name, {"0": False}, sentence, source, is_by_hand=True)
