"""The inputs of a rehearsal's figures: from the trace, from the user, assumed, or unknown."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct

from coordinator_sim.assignors.registry import CONSUMER_ASSIGNORS
from coordinator_sim.clients.settings_advice import SERVER_ASSIGNORS
from coordinator_sim.kafka.profiles import DEFAULT_PROFILE
from coordinator_sim.replay.charges import Charge
from coordinator_sim.replay.work import KnownGroups
from coordinator_sim.sim.scenario.topology import RECORDS_PER_S
from coordinator_sim.sim.scenario.upgrade import UpgradePlan
from coordinator_sim.sim.scenario.variety import Variety
from coordinator_sim.trace.events import RunInfo, TraceEvent
from coordinator_sim.trace.group_shape import SeenDeploys, SeenGroup

Basis = Literal["trace", "given", "assumed", "unknown"]
"""Where a fact comes from; what is unknown is in no figure."""
DEFAULT_ASSIGNOR: Final = "range"
COOPERATIVE: Final = "cooperative-sticky"
_PACE_MS: Final = 30_000
_DOWN_MS: Final = 8_000
_SESSION_MS: Final = 45_000
_HEARTBEAT_MS: Final = 3_000
_POLL_MS: Final = 300_000
_US_PER_MS: Final = 1_000
_SHOWN: Final = 5


class Fact(Struct, frozen=True, kw_only=True):
    """One thing that the figures rest on.

    Args:
        basis: `trace` is told by the trace, `given` by the command line, `assumed` by nobody.
        note: What that means; may be empty.
    """

    name: str
    value: str
    basis: Basis
    note: str = ""


class Wishes(Struct, frozen=True, kw_only=True):
    """Options of a rehearsal that do not come from the trace.

    Args:
        assignors: Assignor by group id; the empty id is every group.
        pace_ms: From one stop of a deploy to the next; None takes the trace's.
        down_ms: Time without a process; None takes the trace's.
        remote_assignor: `group.remote.assignor` of the members of the consumer protocol.
        profile: Kafka release of the brokers where the trace's has no consumer protocol.
        top: Most groups to rehearse, those with most rebalances.
    """

    assignors: Mapping[str, str] = {}
    pace_ms: int | None = None
    down_ms: int | None = None
    remote_assignor: str = SERVER_ASSIGNORS[0]
    profile: str = DEFAULT_PROFILE.name
    top: int = 5


class Told(Struct, frozen=True, kw_only=True):
    """A trace, and what is known of its groups.

    Args:
        where: Name of the trace in messages.
        events: All events, in order.
        info: Its manifest's facts.
        known: Partitions and heartbeats of its groups.
        charges: What their rebalances cost.
    """

    where: str
    events: Sequence[TraceEvent]
    info: RunInfo
    known: KnownGroups
    charges: Sequence[Charge] = ()


class Facts:
    """What a group's figures rest on, as it is found out."""

    def __init__(self, seen: SeenGroup, deploys: SeenDeploys, told: Told, wishes: Wishes) -> None:
        self.found: list[Fact] = []
        self._seen = seen
        self._deploys = deploys
        self._told = told
        self._wishes = wishes
        static = sum(instance_id is not None for instance_id in seen.members.values())
        self._say(
            "members",
            f"{len(seen.members):,}, {'all' if static == len(seen.members) else static or 'none'} "
            "of them static",
            "trace",
            "over all their processes; whoever joins takes the place of the one of its client id "
            "that has been away longest",
        )

    def topics(self, topics: Mapping[str, int], *, is_given: bool) -> None:
        """Say what the group reads."""
        if not topics:
            return
        named = [f"{name}={count}" for name, count in topics.items()]
        more = f" and {len(named) - _SHOWN} more" if len(named) > _SHOWN else ""
        self._say(
            "partitions",
            f"{sum(topics.values()):,} in {', '.join(named[:_SHOWN])}{more}",
            "given" if is_given else "trace",
            "" if is_given else "as many as were ever assigned",
        )

    def subscriptions(self, told: Iterable[Sequence[str]]) -> None:
        """Say what members subscribe to, and what they are taken to."""
        kinds = {frozenset(topics) for topics in told}
        if len(kinds) > 1:
            self._say(
                "subscriptions",
                f"{len(kinds)} different ones; in deploys every member reads all topics",
                "assumed",
                "the history is replayed with those that the trace tells",
            )
        else:
            note = "the trace tells no others" if kinds else "the trace tells none"
            self._say(
                "subscriptions",
                "all members read all topics",
                "trace" if kinds else "assumed",
                note,
            )

    def assignor(self, of_work: str | None, follow_ups: int) -> str:
        """Return the classic assignor, and say where it comes from."""
        asked = self._wishes.assignors
        given = asked.get(self._seen.group_id) or asked.get("")
        recorded = self._seen.assignor or of_work
        basis: Basis = "assumed"
        if given is not None:
            name, basis, note = given, "given", ""
        elif recorded in CONSUMER_ASSIGNORS and recorded:
            name, basis, note = recorded, "trace", ""
        elif recorded:
            name = DEFAULT_ASSIGNOR
            note = f"the trace's {recorded} is not known here; --assignor says what comes near"
        elif follow_ups:
            name = COOPERATIVE
            note = (
                f"the trace names none, but has {follow_ups} follow-up rebalances, as cooperative "
                "assignors ask for; --assignor says another"
            )
        else:
            name = DEFAULT_ASSIGNOR
            note = "the trace names none; Java's default comes to this; --assignor says another"
        self._say("assignor today", name, basis, note)
        return name

    def pace_ms(self) -> int:
        """Return the time from one stop of a deploy to the next."""
        pace_us = self._deploys.pace_us
        if self._wishes.pace_ms is not None:
            return self._length("from one restart to the next", self._wishes.pace_ms, "given")
        if pace_us is not None:
            return self._length(
                "from one restart to the next",
                pace_us // _US_PER_MS,
                "trace",
                f"the usual one of {self._counted()}",
            )
        return self._length(
            "from one restart to the next", _PACE_MS, "assumed", "no deploy is recorded; --pace"
        )

    def down_ms(self) -> int:
        """Return the time without a process."""
        down_us = self._deploys.down_us
        if self._wishes.down_ms is not None:
            return self._length("a restart takes", self._wishes.down_ms, "given")
        if down_us is not None:
            return self._length(
                "a restart takes",
                down_us // _US_PER_MS,
                "trace",
                "usual time from a member's leave to the first word of its next process",
            )
        note = "no broker tells how long a static member was away" if self._is_static() else ""
        return self._length(
            "a restart takes", _DOWN_MS, "assumed", f"{note or 'no restart is recorded'}; --down"
        )

    def classic_settings(self) -> dict[str, str]:
        """Return the settings of classic members that the trace tells."""
        settings: dict[str, str] = {}
        session_ms = self._seen.session_timeout_ms
        heartbeat_ms = self._told.known.heartbeats_ms.get(self._seen.group_id)
        self._setting("session.timeout.ms", session_ms, _SESSION_MS, settings)
        if heartbeat_ms is not None and heartbeat_ms < (session_ms or _SESSION_MS):
            heartbeat_ms = round(heartbeat_ms, -2) or heartbeat_ms
        else:
            heartbeat_ms = None
        self._setting("heartbeat.interval.ms", heartbeat_ms, _HEARTBEAT_MS, settings)
        self._setting("max.poll.interval.ms", self._seen.rebalance_timeout_ms, _POLL_MS, settings)
        return settings

    def consumer_settings(self) -> dict[str, str]:
        """Return the settings of the members of the consumer protocol."""
        remote = self._wishes.remote_assignor
        poll_ms = self._seen.rebalance_timeout_ms
        self._say(
            "after the upgrade",
            f"group.remote.assignor={remote}, brokers' group.consumer.* at Kafka's defaults",
            "assumed" if remote == SERVER_ASSIGNORS[0] else "given",
            "heartbeats every 5 s, a session of 45 s",
        )
        polls = {} if poll_ms is None else {"max.poll.interval.ms": str(poll_ms)}
        return {"group.remote.assignor": remote, **polls}

    def brokers(self, version: str | None, plan: UpgradePlan | None) -> None:
        """Say which releases are simulated."""
        if plan is None:
            return
        simulated = (
            f"simulated as {plan.profile}"
            if plan.today == plan.profile
            else f"a usual deploy simulated as {plan.today}, the others as {plan.profile}"
        )
        self._say(
            "brokers",
            f"{version or 'not told'}; {simulated}",
            "trace" if version else "assumed",
        )

    def unknown(self) -> None:
        """Say what no trace tells, and what the drawn worlds do instead."""
        low_ms, high_ms = Variety().processing_ms
        self._say(
            "time from one poll to the next",
            f"{low_ms} to {high_ms} ms typically, drawn for each member",
            "assumed",
            "with starts, pauses, latency and down times: each seed draws a world of them",
        )
        self._say(
            "records",
            f"{RECORDS_PER_S} a second in each partition",
            "assumed",
            "records read again grow with that number; the other figures do not",
        )
        self._say(
            "what the brokers allow",
            "policy, group.version, timeouts for this group",
            "unknown",
            "kafka-configs.sh and kafka-features.sh tell",
        )
        self._say(
            "what the application does in its callbacks",
            "nothing that takes time, here",
            "unknown",
            "a slow revocation is longer with either protocol",
        )

    def _counted(self) -> str:
        count = self._deploys.count
        return f"{count} recorded deploy{'' if count == 1 else 's'}"

    def _is_static(self) -> bool:
        return any(instance_id is not None for instance_id in self._seen.members.values())

    def _setting(self, name: str, told: int | None, default: int, settings: dict[str, str]) -> None:
        if told is not None:
            settings[name] = str(told)
        note = "" if told is not None else "Kafka's default; the trace does not tell"
        basis: Basis = "assumed" if told is None else "trace"
        self._say(name, str(default if told is None else told), basis, note)

    def _length(self, name: str, length_ms: int, basis: Basis, note: str = "") -> int:
        self._say(name, f"{length_ms / 1000:g} s", basis, note)
        return length_ms

    def _say(self, name: str, value: str, basis: Basis, note: str = "") -> None:
        self.found.append(Fact(name=name, value=value, basis=basis, note=note))
