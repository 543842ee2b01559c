"""Reports of users about clients, as a table of data: a scenario, and what its run shows.

A report with a fault is shown by a broken model of a client, and does not come up with the healthy
one. The others are what a client or a broker of that release does.
"""

from functools import cache
from typing import Any, Final

import msgspec
from msgspec import Struct

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.releases import RELEASES
from coordinator_sim.sim.scenario import Scenario, scenario_from_json
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim_conformance.museum.report_bugs import report_rows
from coordinator_sim_conformance.scenario_cases.seen import FOREVER_MS, Seen

_DURATION_MS: Final = 90_000


class Shown(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many events of a kind the run has.

    Args:
        event: Kind of the events; empty to count resources that two workers ran at once.
        text: Part of their text.
        error: Name of their error.
        below: Only commits of an offset below this one.
        least, most: Bounds of the number, both included.
    """

    event: str = ""
    run_twice: bool = False
    member: str | None = None
    text: str = ""
    error: str | None = None
    after_ms: int = 0
    before_ms: int = FOREVER_MS
    below: int | None = None
    least: int = 0
    most: int = FOREVER_MS

    def count(self, seen: Seen) -> int:
        """The number of such events in a run."""
        if self.run_twice:
            return len(seen.run_twice())
        found = seen.of(
            Event[self.event],
            after_ms=self.after_ms,
            before_ms=self.before_ms,
            member=self.member,
        )
        return sum(map(self._matches, found))

    def _matches(self, event: TraceEvent) -> bool:
        error = None if self.error is None else ErrorCode[self.error]
        offsets = [entry.offset for entry in event.offsets or ()]
        return (
            self.text in (event.reason_text or "")
            and error in (None, event.error_code)
            and (self.below is None or any(each < self.below for each in offsets))
        )


class ClientReport(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One report.

    Args:
        error: The error, and the request that it answers.
        model: Client whose model shows it, and its protocol.
        shows: Holds for a run with the healthy model.
        fault: The report's fault in our model, a module of `clients` and a change of it; None where
            the client or the broker is as reported.
        pattern: Of topic names; else all topics are subscribed to.
        workers: Fields of a Connect cluster in place of a consumer group.
        brokers: Settings of brokers.
    """

    id: str
    address: str
    error: str
    model: str
    expected: str
    came: str
    shows: tuple[Shown, ...]
    fault: dict[str, str] | None = None
    settings: dict[str, str] = {}
    topics: dict[str, int] = msgspec.field(default_factory=lambda: {"orders": 4})
    pattern: str | None = None
    members: tuple[dict[str, Any], ...] = ({"name": "a"}, {"name": "b"})
    workers: dict[str, Any] = {}
    happenings: tuple[dict[str, Any], ...] = ()
    brokers: dict[str, str] = {}
    latency: dict[str, Any] = msgspec.field(default_factory=lambda: {"type": "constant"})
    profile: str = RELEASES[-1]

    def scenario(self) -> Scenario:
        """The scenario of the report."""
        data = {
            "name": self.id,
            "title": self.error,
            "story": f"{self.address}: {self.expected} {self.came}",
            "duration_ms": _DURATION_MS,
            "topics": [{"name": name, "partitions": n} for name, n in self.topics.items()],
            "groups": [self._group()],
            "happenings": self.happenings,
            "broker_settings": self.brokers,
            "network": {"latency": self.latency},
            "profile": self.profile,
        }
        return scenario_from_json(msgspec.json.encode(data), self.id)

    def _group(self) -> dict[str, Any]:
        if self.workers:
            own = {"group_id": "app", "type": "connect", "workers": self.members}
            return {**own, **self.workers}
        client = self.model.partition(",")[0]
        return {
            "group_id": "app",
            "type": "consumer",
            "topics": [] if self.pattern else list(self.topics),
            "pattern": self.pattern,
            "assignors": ["range" if client == "java" else "cooperative-sticky"],
            "settings": self.settings,
            "members": [{"client": client, **each} for each in self.members],
        }

    def play(self) -> None:
        """Run the scenario with seed 1, and check what it shows.

        Raises:
            CaseFailed: it shows something else.
        """
        seen = Seen(self.scenario())
        for shown in self.shows:
            name = f"number of {shown.event or 'resources run twice'} {shown.text}".strip()
            seen.expect_between(name, shown.count(seen), shown.least, shown.most)


@cache
def reports() -> tuple[ClientReport, ...]:
    """Every report, in the order of the file.

    Raises:
        ValidationError: an entry of `reports.toml` lacks a field, or has one too many.
    """
    return msgspec.convert(report_rows(), tuple[ClientReport, ...])
