"""Kafka versions that can have written a log, judged by its wording.

Each wording narrows the range of versions. A wording that contradicts the range so far starts a
new one: the broker was upgraded, or the file holds the lines of two brokers.
"""

import re
from typing import Final

from msgspec import Struct

VERSIONS: Final = (
    *("0.9", "0.10", "0.11", "1.0", "1.1", "2.0", "2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "2.7"),
    *("2.8", "3.0", "3.1", "3.2", "3.3", "3.4", "3.5", "3.6", "3.7", "3.8", "3.9", "4.x"),
)
"""Releases whose wording differs, oldest first; all of 4 counts as one."""


class Evidence(Struct, frozen=True):
    """A wording and the versions that use it.

    Args:
        pattern: Pattern searched in the message with its logger.
        first: Oldest version, by name.
        last: Newest version, by name.
        whole: Whether the end of the message must be seen, because a missing part is the evidence.
    """

    pattern: re.Pattern[str]
    first: str
    last: str
    whole: bool = False


def _e(pattern: str, first: str, last: str, *, whole: bool = False) -> Evidence:
    return Evidence(re.compile(pattern), first, last, whole)


EVIDENCE: Final = (
    _e(r"to restabilize group", "0.9", "0.10"),
    _e(r"(?<![\w.])kafka\.coordinator\.Group", "0.9", "0.10"),
    _e(r"(?<![\w.])kafka\.coordinator\.group\.", "0.11", "3.9"),
    _e(r"Group Metadata Manager on Broker", "0.9", "0.11"),
    _e(r"GroupMetadataManager brokerId=", "1.0", "3.9"),
    _e(r"\[GroupCoordinator \d+\]", "0.9", "3.9"),
    _e(r"\[GroupCoordinator id=", "3.7", "4.x"),
    _e(r"id=.*Pending dynamic member with id", "4.x", "4.x"),
    _e(r"to rebalance group .* with old generation \d+ \(__", "0.11", "3.9"),
    _e(r"to rebalance group (?:(?! in state ).)* with old generation \d+ \(__", "0.11", "2.0"),
    _e(r"to rebalance group .* in state ", "2.1", "4.x"),
    _e(r"\(reason: Adding new member \S+\)*$", "2.1", "2.2", whole=True),
    _e(r"with group instanceid", "2.3", "2.4"),
    _e(r"with group instance id", "2.5", "4.x"),
    _e(r"; client reason: ", "3.2", "4.x"),
    _e(r"reason: removing member .* on LeaveGroup", "2.1", "2.8"),
    _e(r"reason: Removing member .* on LeaveGroup", "3.0", "3.9"),
    _e(r"^\S+ \[?GroupCoordinator \d+\]: Stabilized group .*\(__consumer_offsets-\d+\)$",
       "0.11", "2.7", whole=True),
    _e(r"Stabilized group .* with \d+ members", "2.8", "4.x"),
    _e(r"from leader for group .*\. The group has", "2.8", "2.8"),
    _e(r"from leader \S.* for group .*\. The group has", "3.0", "4.x"),
    _e(r"from leader for group .* for generation \d+$", "0.9", "2.7", whole=True),
    _e(r"Member\[group\.instance\.id", "2.4", "2.8"),
    _e(r"Member (?!\[)[^(]* in group .* has left, removing", "0.11", "2.3"),
    _e(r"MemberMetadata.* through explicit `?LeaveGroup`? request$", "3.0", "3.1", whole=True),
    _e(r"Elected as the group coordinator .* in epoch", "2.8", "3.9"),
    _e(r"Finished loading .* milliseconds for epoch", "2.8", "3.9"),
    _e(r"Finished loading .* milliseconds, of which", "2.6", "2.7"),
    _e(r"cheduling loading of offsets and group metadata from \S+$", "1.0", "2.7", whole=True),
)  # fmt: skip


_ENOUGH: Final = 1_024
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
        text = f"{logger} {message[:_ENOUGH]}"
        whole = whole and len(message) <= _ENOUGH
        before = (self._low, self._high, self._informed)
        for evidence in EVIDENCE:
            if (whole or not evidence.whole) and evidence.pattern.search(text):
                self._narrow(VERSIONS.index(evidence.first), VERSIONS.index(evidence.last))
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
