"""Exhibits as switches of a user's process: which of them fit it, and putting them in early.

Nothing of the library but its errors may be imported here: a module that is imported before its
fault was put in would be whole.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import Final

from coordinator_sim.errors import ConfigError
from coordinator_sim_conformance.museum.breaking import broken_sources, install, installed
from coordinator_sim_conformance.museum.exhibit import Exhibit
from coordinator_sim_conformance.museum.exhibits import EXHIBITS

_OPTION: Final = "--bug"
_SERVED: Final = (
    "coordinator_sim.broker.",
    "coordinator_sim.coordinator.",
    "coordinator_sim.kafka.",
)


class Place(StrEnum):
    """What a bug is put into.

    A served cluster is brokers alone; a simulated run has clients, Connect and assignors too.
    """

    SERVER = "served coordinator"
    RUN = "simulated run"


def bugs_of(place: Place) -> dict[str, Exhibit]:
    """The exhibits that change something there, by id, in the museum's order."""
    return {
        each.exhibit_id: each
        for each in EXHIBITS
        if place is Place.RUN or each.module.startswith(_SERVED)
    }


def bugs_named(ids: Sequence[str], place: Place) -> tuple[Exhibit, ...]:
    """The exhibits of these ids, each once, in the order given.

    Raises:
        ConfigError: an id is unknown or fits elsewhere; the message names those that fit. Or two
            exhibits change one line.
    """
    bugs = bugs_of(place)
    for bug_id in ids:
        if bug_id not in bugs:
            raise ConfigError(f"no bug {bug_id!r} of a {place}; there are {', '.join(bugs)}")
    found = tuple(bugs[bug_id] for bug_id in dict.fromkeys(ids))
    broken_sources(found)
    return found


def install_early(arguments: Sequence[str], place: Place) -> None:
    """Put in what a command line asks for with `--bug`, before its command is imported.

    What is wrong with the option is not told here: the command calls `bugs_in_force`, which
    raises the same error where a user sees it.
    """
    with suppress(ConfigError):
        install(*bugs_named(list(_asked(arguments)), place))


def _asked(arguments: Sequence[str]) -> Iterator[str]:
    for index, argument in enumerate(arguments):
        if argument == "--":
            return
        name, equals, value = argument.partition("=")
        if name == _OPTION and equals:
            yield value
        elif name == _OPTION:
            yield from arguments[index + 1 : index + 2]


def bugs_in_force(ids: Sequence[str], place: Place) -> tuple[Exhibit, ...]:
    """The exhibits of these ids, which this process was started with.

    Raises:
        ConfigError: an id does not fit, two exhibits change one line, or the process imported the
            code before the bugs could be put in.
    """
    wanted = bugs_named(ids, place)
    if wanted and installed() != wanted:
        install(*wanted)
    return wanted


def warning_of(exhibit: Exhibit) -> str:
    """The line that says that what follows is broken on purpose."""
    return f"broken on purpose, no evidence of how Kafka behaves: {exhibit.exhibit_id}: " + (
        exhibit.story
    )
