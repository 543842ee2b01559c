"""One row of the table of log lines: how a line is recognised, and how it is written.

The tables themselves are in the modules beside this one.
"""

import re
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from coordinator_sim.errors import InvariantViolation
from coordinator_sim.logtext.wordings.fields import FIELDS, Field
from coordinator_sim.logtext.wordings.loggers import Voice
from coordinator_sim.logtext.wordings.releases import Release, releases
from coordinator_sim.logtext.wordings.texts import Pattern, kind_of, parse, searched, telling
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.rebalances import epoch_type

INFO: Final = "INFO"
WARN: Final = "WARN"
ERROR: Final = "ERROR"
_TRIES: Final = 3
_REACH: Final = 8_192
"""Characters of a message that are searched: Kafka's longest without a list has 2,000."""
_REACH_OF_LISTS: Final = 4_000_000


CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
ANY: Final = "any"

When = Callable[[TraceEvent, Release], bool]
"""Whether a release logs a line for an event."""


class Telling(Struct, frozen=True):
    """When a line is written.

    Args:
        voice: The logging class, in each release.
        level: Level as log4j prints it.
        of: Events that the line tells; empty for the event that it is read as.
        when: Which of these events; None for all.
        silent: Releases whose log has no such line, as `releases` reads them: they log it below
            INFO, or for none of these events.
        groups: Whose events: `CLASSIC`, `CONSUMER` (KIP-848), or `ANY`.
    """

    voice: Voice
    level: str = INFO
    of: tuple[Event, ...] = ()
    when: When | None = None
    silent: str = ""
    groups: str = CLASSIC

    def tells(self, event: TraceEvent, release: Release) -> bool:
        """Whether a release writes the line for this event."""
        if self.groups not in (ANY, epoch_type(event) or CLASSIC):
            return False
        return self.when is None or self.when(event, release)


def having(name: str, value: str | None = None) -> When:
    """Return whether an event has an entry in its `attrs`, or one of this value."""
    return lambda event, _: name in event.attrs and value in (None, event.attrs[name])


def lacking(name: str) -> When:
    """Return whether an event has no such entry in its `attrs`."""
    return lambda event, _: name not in event.attrs


def happening(voice: Voice, what: str, silent: str = "") -> Telling:
    """Return the telling of LIFECYCLE events with this reason."""
    return Telling(
        voice, of=(Event.LIFECYCLE,), when=lambda event, _: event.reason_text == what, silent=silent
    )


class Line(Struct, frozen=True):
    """A row without its text.

    Args:
        name: Name for counts.
        event: What the line is read as; None for a known one that the trace does not keep.
        releases: Set of releases that write it.
        telling: When it is written; None when it is only read.
        attrs: Fixed entries of the event's `attrs`.
    """

    name: str
    event: Event | None
    releases: int
    telling: Telling | None
    attrs: dict[str, str]

    def says(self, text: str) -> "Row":
        """Return the row with this text, in the language of `texts`."""
        nodes = searched(parse(text))
        if not nodes or not isinstance(nodes[0], str):
            raise InvariantViolation(f"the row {self.name!r} does not begin with literal text")
        pattern = Pattern(nodes).regex
        kinds = tuple((name, FIELDS[name]) for name in map(kind_of, pattern.groupindex))
        return Row(
            *(self.name, self.event, self.releases, self.telling, self.attrs, text),
            required=tuple(node for node in nodes if isinstance(node, str) and len(node) > 1),
            pattern=pattern,
            kinds=kinds,
            reach=_REACH_OF_LISTS if any(field.is_list for _, field in kinds) else _REACH,
        )


class Row(Line, frozen=True):
    """One log line.

    Args:
        text: Text in the language of `texts`.
        required: Literal texts that a message contains; the pattern begins with the first.
        pattern: Required words, with groups for the values.
        kinds: Names and kinds of the values, in the order of the pattern's groups.
        reach: Number of characters of a message that the pattern reads.
    """

    text: str
    required: tuple[str, ...]
    pattern: re.Pattern[str]
    kinds: tuple[tuple[str, Field], ...]
    reach: int

    def match(self, message: str, pattern: re.Pattern[str] | None = None) -> re.Match[str] | None:
        """Return the match at the first places of the first required text; None without one.

        A pattern is tried at few places and over a bounded length, so that no line takes long,
        however often it repeats a message's words.

        Args:
            message: Message, perhaps with other text before it.
            pattern: Pattern that begins like the row's own, to be used in its place.
        """
        lead = self.required[0]
        at = message.find(lead)
        for _ in range(_TRIES):
            if at < 0:
                return None
            match = (pattern or self.pattern).match(message, at, self.reach)
            if match is not None:
                return match
            at = message.find(lead, at + 1)
        return None

    def releases_of(self, message: str, *, is_whole: bool) -> int:
        """Return the set of releases that can have written a message of this row.

        Args:
            message: Message that matches.
            is_whole: Whether its end was not cut off.
        """
        pattern = telling(self.text, is_searched=True)
        match = self.match(message, pattern.regex)
        return self.releases & pattern.releases_of(match, is_whole=is_whole)


def row(
    name: str, event: Event | None, known: str, told: Telling | Voice | None = None, **attrs: str
) -> Line:
    """Return a row that lacks its text.

    Args:
        name: Name for counts.
        event: What the line is read as; None for a known one that the trace does not keep.
        known: Releases that write it, as `releases` reads them.
        told: When and by whom it is written, or only by whom; None when it is only read.
        **attrs: Fixed entries of the event's `attrs`.
    """
    written = Telling(told) if isinstance(told, tuple) else told
    return Line(name, event, releases(known), written, attrs)
