"""Suites of Kafka's own test classes, by release: which classes, and how long each takes."""

import heapq
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from coordinator_sim.errors import ConfigError

HERE: Final = Path(__file__).parent
_CLASSES: Final = HERE / "classes"
_UNMEASURED_S: Final = 30
_DOOR: Final = "door"
_JARS: Final = {"groups": "clients", "brokers": "clients", "requests": "core", "tools": "streams"}
"""Suite -> profile of `pom.xml` with its jars, where that is not of its own name."""


class JavaClass(Struct, frozen=True):
    """A test class of Kafka.

    Args:
        name: Full name, as `kafka.server.JoinGroupRequestTest`.
        seconds: How long it took when it was last measured, on 2 cores.
    """

    name: str
    seconds: int = _UNMEASURED_S


class Suite(Struct, frozen=True):
    """Classes of one release that run on one class path.

    Args:
        name: As `groups`.
        release: Release of Kafka whose tests they are.
        classes: In the order in which they run.
    """

    name: str
    release: str
    classes: tuple[JavaClass, ...]

    @property
    def full_name(self) -> str:
        """Name of its file and of its results, as `groups-4.3.1`."""
        return f"{self.name}-{self.release}"

    def only(self, wanted: Callable[[JavaClass], bool]) -> "Suite":
        """The suite with some of its classes."""
        return Suite(self.name, self.release, tuple(filter(wanted, self.classes)))

    @property
    def is_door(self) -> bool:
        """Whether its tests ask `coordinator-sim lines`, not a served cluster."""
        return self.name == _DOOR

    @property
    def jars(self) -> str:
        """Profile of `pom.xml` that resolves its jars."""
        return _JARS.get(self.name, self.name)

    @property
    def profile(self) -> str:
        """Profile of `serve` that behaves as its release."""
        return self.release.rpartition(".")[0]


def suites() -> tuple[Suite, ...]:
    """Every suite, by its file in `classes`: a class and its seconds a line."""
    return tuple(map(_read, sorted(_CLASSES.glob("*.txt"))))


def suites_named(name: str) -> tuple[Suite, ...]:
    """Return a suite by its full name, all suites of a release, or `all`.

    Raises:
        ConfigError: there is none of this name.
    """
    found = tuple(each for each in suites() if name in (each.full_name, each.release, "all"))
    if not found:
        names = ", ".join(suite.full_name for suite in suites())
        raise ConfigError(f"--suite {name}: unknown; use all, a release, or one of {names}")
    return found


def part_of(wanted: Sequence[Suite], number: int, count: int) -> tuple[Suite, ...]:
    """Return one of several parts of suites, which take about equally long.

    Args:
        wanted: Suites; their longest classes are dealt first.
        number: Of the part, from 1.
        count: Of parts.
    """
    dealt = [(0, part, set[JavaClass]()) for part in range(1, count + 1)]
    classes = {each for suite in wanted for each in suite.classes}
    for each in sorted(classes, key=lambda item: (-item.seconds, item.name)):
        seconds, part, chosen = heapq.heappop(dealt)
        heapq.heappush(dealt, (seconds + each.seconds, part, chosen | {each}))
    mine = next(chosen for _, part, chosen in dealt if part == number)
    return tuple(suite.only(mine.__contains__) for suite in wanted)


def _read(path: Path) -> Suite:
    name, _, release = path.stem.rpartition("-")
    lines = path.read_text(encoding="utf-8").splitlines()
    return Suite(name, release, tuple(_class(line.split()) for line in lines if line.strip()))


def _class(words: list[str]) -> JavaClass:
    return JavaClass(words[0], int(words[1])) if len(words) > 1 else JavaClass(words[0])
