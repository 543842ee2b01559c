"""Suites of Kafka's own test classes, by release: which classes, and how long each takes."""

import heapq
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from msgspec import Struct

from coordinator_sim.errors import ConfigError

HERE: Final = Path(__file__).parent
_CLASSES: Final = HERE / "classes"
_UNMEASURED_S: Final = 30
_JARS: Final = {"groups": "clients", "brokers": "clients"}
"""Suite -> profile of `pom.xml` with its jars, where that is not of its own name."""


class TestClass(Struct, frozen=True):
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
    classes: tuple[TestClass, ...]

    @property
    def full_name(self) -> str:
        """Name of its file and of its results, as `groups-4.3.1`."""
        return f"{self.name}-{self.release}"

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


def suite_named(full_name: str) -> Suite:
    """Return a suite.

    Raises:
        ConfigError: there is none of this name.
    """
    for suite in suites():
        if suite.full_name == full_name:
            return suite
    names = ", ".join(suite.full_name for suite in suites())
    raise ConfigError(f"--suite {full_name}: unknown; use one of {names}")


def part_of(classes: Iterable[TestClass], number: int, count: int) -> tuple[TestClass, ...]:
    """Return one of several parts that take about equally long, the longest classes dealt first.

    Args:
        classes: All of them.
        number: Of the part, from 1.
        count: Of parts.
    """
    parts = [(0, each, list[TestClass]()) for each in range(1, count + 1)]
    for each in sorted(classes, key=lambda item: (-item.seconds, item.name)):
        seconds, part, chosen = heapq.heappop(parts)
        chosen.append(each)
        heapq.heappush(parts, (seconds + each.seconds, part, chosen))
    return next(tuple(chosen) for _, part, chosen in parts if part == number)


def _read(path: Path) -> Suite:
    name, _, release = path.stem.rpartition("-")
    lines = path.read_text(encoding="utf-8").splitlines()
    return Suite(name, release, tuple(_class(line.split()) for line in lines if line.strip()))


def _class(words: list[str]) -> TestClass:
    return TestClass(words[0], int(words[1])) if len(words) > 1 else TestClass(words[0])
