"""Inputs and results of checkers.

The invariants themselves are in the modules of their subjects.
"""

from collections.abc import Callable, Sequence
from enum import IntEnum, unique

from msgspec import Struct

from coordinator_sim.trace.events import TraceEvent
from coordinator_sim_conformance.checkers.history import History


@unique
class Verdict(IntEnum):
    """The outcome of a check; of several outcomes the highest counts."""

    PASS = 0
    UNKNOWN = 1
    FAIL = 2


class Violation(Struct, frozen=True, kw_only=True):
    """One proof that an invariant does not hold.

    Args:
        invariant: Identifier of the invariant, `I1` to `I10`.
        at_us: Time of the event that completes the proof.
        evidence: `seq` of the events to look at, in trace order.
    """

    invariant: str
    at_us: int
    group_id: str | None
    message: str
    evidence: tuple[int, ...] = ()


class Findings(Struct, frozen=True):
    """Findings of a checker in one history.

    Args:
        judged: Number of instances of the invariant that could be judged; 0 means that the history
            lacks the evidence, and the verdict is UNKNOWN.
        violations: Violations in trace order.
    """

    judged: int
    violations: tuple[Violation, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """FAIL with any violation, UNKNOWN if nothing could be judged, else PASS."""
        if self.violations:
            return Verdict.FAIL
        return Verdict.PASS if self.judged else Verdict.UNKNOWN


class Checker(Struct, frozen=True, kw_only=True):
    """A named invariant over a history.

    Args:
        invariant: Stable identifier, `I1` to `I10`.
        name: Stable name, as in `docs/invariants.md`.
        title: A few words for people.
        judge: Finds violations; pure.
    """

    invariant: str
    name: str
    title: str
    judge: Callable[[History], Findings]

    def check(self, events: Sequence[TraceEvent]) -> list[Violation]:
        """Return the violations of this invariant alone, in trace order."""
        return list(self.judge(History(events)).violations)


class CheckResult(Struct, frozen=True, kw_only=True):
    """One checker's line in a report."""

    invariant: str
    name: str
    title: str
    verdict: Verdict
    judged: int
    violations: tuple[Violation, ...]


class Report(Struct, frozen=True):
    """Results of all checkers for one history, in the order of the invariants."""

    results: tuple[CheckResult, ...]

    @property
    def verdict(self) -> Verdict:
        """The highest verdict of all checkers: FAIL over UNKNOWN over PASS."""
        return max(result.verdict for result in self.results)

    @property
    def violations(self) -> tuple[Violation, ...]:
        """Every violation, by invariant, then in trace order."""
        return tuple(found for result in self.results for found in result.violations)

    def of(self, invariant: str) -> CheckResult:
        """Return the result of one invariant.

        Raises:
            KeyError: no such invariant was checked.
        """
        for result in self.results:
            if result.invariant == invariant:
                return result
        raise KeyError(invariant)

    def having(self, verdict: Verdict) -> tuple[str, ...]:
        """Return the invariants with that verdict, in order."""
        return tuple(result.invariant for result in self.results if result.verdict == verdict)
