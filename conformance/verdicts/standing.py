"""How an ending counts: with the known gaps of a baseline, and strictly or not."""

from enum import StrEnum, unique
from typing import Final

from coordinator_sim_conformance.running import NOT_PASSED, Ending, Verdict


@unique
class Standing(StrEnum):
    """What an ending counts as."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    UNKNOWN = "unknown"
    CRASHED = "crashed"
    HUNG = "hung"
    KNOWN_GAP = "known gap"
    """It did not pass, and the baseline says why."""
    KNOWN_CRASH = "known crash"
    KNOWN_HANG = "known hang"
    GAP_CLOSED = "gap closed"
    """It passed, though the baseline says that it does not."""
    QUIRK = "quirk"
    """It failed where Kafka behaves oddly, in a run that is not strict."""


ALWAYS_SHOWN: Final = (Standing.PASSED, Standing.FAILED, Standing.SKIPPED, Standing.UNKNOWN)
"""Standings that a table of counts has, even without an ending."""
RED: Final = frozenset(
    {
        Standing.FAILED,
        Standing.UNKNOWN,
        Standing.CRASHED,
        Standing.HUNG,
        Standing.GAP_CLOSED,
    }
)
"""Standings with which a run has problems: exit code 1."""
EXCUSED: Final = frozenset({Standing.KNOWN_GAP, Standing.KNOWN_CRASH, Standing.KNOWN_HANG})
"""Standings of cases that did not pass, as the baseline says."""

_PLAIN: Final = {
    Verdict.PASSED: Standing.PASSED,
    Verdict.FAILED: Standing.FAILED,
    Verdict.SKIPPED: Standing.SKIPPED,
    Verdict.UNKNOWN: Standing.UNKNOWN,
    Verdict.CRASHED: Standing.CRASHED,
    Verdict.HUNG: Standing.HUNG,
}
_KNOWN: Final = {Verdict.CRASHED: Standing.KNOWN_CRASH, Verdict.HUNG: Standing.KNOWN_HANG}


def standing_of(ending: Ending, *, is_strict: bool) -> Standing:
    """Return what an ending counts as.

    Args:
        ending: Ending, with the reason of the baseline if it has one.
        is_strict: Whether a break of a quirk of Kafka's counts as a failure.
    """
    if ending.known_gap:
        if ending.verdict is Verdict.PASSED:
            return Standing.GAP_CLOSED
        if ending.verdict in NOT_PASSED:
            return _KNOWN.get(ending.verdict, Standing.KNOWN_GAP)
    if ending.verdict is Verdict.FAILED and ending.is_quirk and not is_strict:
        return Standing.QUIRK
    return _PLAIN[ending.verdict]
