"""Kafka versions that can have written a log, judged by its wording.

Each line narrows the range of versions: by its logging class, its prefix and its row. A line that
contradicts the range so far starts a new one: the broker was upgraded, or the file holds the lines
of two brokers.
"""

import re
from typing import Final

from coordinator_sim.logtext.reading.messages import find
from coordinator_sim.logtext.wordings import loggers, reasons
from coordinator_sim.logtext.wordings.releases import ALL, VERSIONS, version_range

_REASON_END: Final = re.compile(r"\)\.?$")
ENOUGH: Final = 1_024
"""Characters of a message that are searched; version evidence stands before."""


class Fingerprint:
    """The range of one log, narrowed line by line."""

    def __init__(self) -> None:
        self._low = 0
        self._high = len(VERSIONS) - 1
        self._informed = False
        self._earlier: list[str] = []

    def observe(self, message: str, logger: str, *, whole: bool) -> bool:
        """Take one message into account; return whether the range changed.

        Args:
            message: Text of the coordinator, with its bracketed prefix.
            logger: Name of the logger; empty when not known.
            whole: Whether the message was not cut off.
        """
        told = message[:ENOUGH]
        before = (self._low, self._high, self._informed)
        for releases in _evidence(told, logger, is_whole=whole and told == message):
            self._narrow(*version_range(releases))
        return (self._low, self._high, self._informed) != before

    def _narrow(self, first: int, last: int) -> None:
        low, high = max(self._low, first), min(self._high, last)
        if low > high:
            current = self.current
            if current is not None and current not in self._earlier:
                self._earlier.append(current)
            low, high = first, last
        self._low, self._high, self._informed = low, high, True

    @property
    def current(self) -> str | None:
        """Range of the latest evidence, such as `2.5-2.7`; None without any."""
        if not self._informed:
            return None
        low, high = VERSIONS[self._low], VERSIONS[self._high]
        return low if low == high else f"{low}-{high}"

    @property
    def ranges(self) -> tuple[str, ...]:
        """Every range seen, in order; more than one when the wording contradicts itself."""
        current = self.current
        if current is None:
            return ()
        return (*(earlier for earlier in self._earlier if earlier != current), current)


def _evidence(message: str, logger: str, *, is_whole: bool) -> list[int]:
    """Return the sets of releases that a line tells, those that tell nothing left out.

    One line is one coordinator's, so that what it says is judged together; a contradiction inside
    a line is judged like two lines.
    """
    told = []
    found = find(message)
    if found is not None:
        row, match = found
        told.append(row.releases_of(message, is_whole=is_whole))
        text = match.groupdict().get("reason")
        if text is not None:
            text = _REASON_END.sub("", text) if is_whole else text
            told.append(reasons.releases_of(text, is_whole=is_whole))
    told += loggers.releases_of(f"{logger} {message}")
    together = ALL
    for releases in told:
        together &= releases
    return [releases for releases in ([together] if together else told) if releases not in (0, ALL)]
