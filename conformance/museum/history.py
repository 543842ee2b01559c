"""The bugs of Kafka's history that the museum is to have, and where each is to be found.

A bug is an exhibit here, or there is a reason why no line of this code can have it.
"""

import tomllib
from importlib.resources import files

from msgspec import Struct, convert

from coordinator_sim_conformance.museum.exhibits import EXHIBITS


class Historical(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One bug, or several that one scenario shows.

    Args:
        ids: Numbers in the trackers of Kafka and of others.
        level: Who can show it: W over the wire, T with time, F with faults, C a client, A an
            assignor, X Connect; several letters for what needs several.
        title: What had to hold, or went wrong, in a few words.
        absent: Why no exhibit shows those ids that have none; empty where all have one.
    """

    ids: tuple[str, ...]
    level: str
    title: str
    absent: str = ""

    @property
    def shown_as(self) -> tuple[str, ...]:
        """The ids of the exhibits that are these bugs, in the museum's order."""
        wanted = {each.removesuffix("-client"): None for each in self.ids}
        return tuple(
            exhibit.exhibit_id
            for exhibit in EXHIBITS
            if exhibit.exhibit_id.removesuffix("-client") in wanted
        )

    @property
    def missing(self) -> tuple[str, ...]:
        """The ids without an exhibit; `absent` says why."""
        return tuple(bug_id for bug_id in self.ids if bug_id not in self.shown_as)


def history() -> tuple[Historical, ...]:
    """Every bug, in the order of the file.

    Raises:
        ValidationError: an entry of `history.toml` lacks a field, or has one too many.
    """
    folder = files("coordinator_sim_conformance").joinpath("museum")
    text = folder.joinpath("history.toml").read_text(encoding="utf-8")
    return convert(tuple(tomllib.loads(text)["bug"]), tuple[Historical, ...])
