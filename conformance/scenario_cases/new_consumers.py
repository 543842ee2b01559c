"""Groups of the consumer protocol (KIP-848): deploys, failures, slow members, expressions."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final

from coordinator_sim.trace.events import Event
from coordinator_sim_conformance.scenario_cases.case import shows
from coordinator_sim_conformance.scenario_cases.consumers import given_up
from coordinator_sim_conformance.scenario_cases.seen import FOREVER_MS, Seen

_CLOSING_US: Final = 50_000
"""More than closing takes after its callback."""


@dataclass(slots=True)
class _Gap:
    """The longest time that partitions were without an owner, after their first owner."""

    since_ms: dict[str, int] = field(default_factory=dict)
    longest_ms: int = 0


def owned_at(seen: Seen, at_ms: int = FOREVER_MS) -> dict[str, list[str]]:
    """Return the partitions of each member at an instant, as `topic-number`, sorted."""
    owned: dict[str, list[str]] = {}
    kinds = (Event.ASSIGNED, Event.REVOKED, Event.LOST, Event.LIFECYCLE)
    for event in seen.of(*kinds, before_ms=at_ms):
        member = seen.name_of(event) or ""
        if event.event is Event.ASSIGNED:
            owned[member] = sorted(seen.partitions_of(event))
        elif event.event is Event.LIFECYCLE:
            if event.reason_text == "gone":
                owned.pop(member, None)
        else:
            gone = [name.removeprefix("p:") for name in event.attrs["resources"].split()]
            owned[member] = [name for name in owned.get(member, []) if name not in gone]
    return {member: names for member, names in sorted(owned.items()) if names}


def loads(seen: Seen, at_ms: int = FOREVER_MS) -> list[int]:
    """Return the members' numbers of partitions at an instant, sorted; those without are absent."""
    return sorted(len(names) for names in owned_at(seen, at_ms).values())


def longest_gap_ms(seen: Seen, after_ms: int) -> int:
    """Return the longest time that a partition was without an owner between two of them."""
    gap = _Gap()
    has: dict[str, dict[str, None]] = defaultdict(dict)
    for event in seen.of(Event.ASSIGNED, Event.REVOKED, Event.LOST):
        at_ms, member = event.ts_us // 1_000, event.member_id or ""
        if event.event is Event.ASSIGNED:
            for name in seen.partitions_of(event):
                since_ms = gap.since_ms.pop(name, None)
                if since_ms is not None and since_ms >= after_ms:
                    gap.longest_ms = max(gap.longest_ms, at_ms - since_ms)
                has[member][name] = None
        else:
            for resource in event.attrs["resources"].split():
                gap.since_ms[resource.removeprefix("p:")] = at_ms
    return gap.longest_ms


@shows("new-rolling-deploy")
def deploy_moves_little_and_stops_nobody(seen: Seen) -> None:
    """Those who stay give up three partitions a restart or so; gaps last two heartbeats at most."""
    leaving = [e for e in seen.of(Event.REVOKED, after_ms=60_000) if _is_stopping(seen, e.ts_us)]
    moved = [e for e in seen.of(Event.REVOKED, after_ms=60_000) if e not in leaving]
    count = sum(len(each.attrs["resources"].split()) for each in moved)
    seen.expect("restarts", len(leaving), 8)
    seen.expect_between("given up by those that stay", count, 8, 40)
    seen.expect("lost", seen.of(Event.LOST), [])
    seen.expect("loads at the end", loads(seen), [4] * 8)
    seen.expect_between("longest gap in ms", longest_gap_ms(seen, 60_000), 1, 10_000)


def _is_stopping(seen: Seen, at_us: int) -> bool:
    """Whether a process is gone within 50 ms of an instant: what it gave up, it gave up closing."""
    gone = (e.ts_us for e in seen.of(Event.LIFECYCLE) if e.reason_text == "gone")
    return any(0 <= end_us - at_us <= _CLOSING_US for end_us in gone)


@shows("online-upgrade")
def group_is_converted_and_back_without_a_stop(seen: Seen) -> None:
    """The first member of the protocol converts the group, the last one that leaves it back."""
    converted = [e for e in seen.of(Event.LIFECYCLE) if e.reason_text == "group converted"]
    seen.expect("becomes", [e.attrs["to_type"] for e in converted], ["consumer", "classic"])
    seen.expect_between("converted at", converted[0].ts_us // 1_000, 68_000, 69_000)
    seen.expect_between("and back at", converted[1].ts_us // 1_000, 570_000, 571_000)
    epochs = seen.of(Event.PREPARE_REBALANCE, after_ms=69_000, before_ms=570_000)
    seen.expect("classic rebalances between", len(epochs), 0)
    seen.expect("lost", seen.of(Event.LOST), [])
    seen.expect("loads between", loads(seen, 350_000), [4] * 8)
    seen.expect("loads at the end", loads(seen), [4] * 8)


@shows("new-rack-lost")
def survivors_keep_everything(seen: Seen) -> None:
    """The new coordinator hands out what the dead had, 45 s after it has loaded the group."""
    seen.expect("given up in the outage", given_up(seen, 30_000, 120_000), [])
    taken = seen.of(Event.ASSIGNED, after_ms=30_000, before_ms=120_000)
    first_ms = min(event.ts_us for event in taken) // 1_000
    seen.expect_between("handed out at", first_ms, 32_000 + 45_000, 32_000 + 45_000 + 10_000)
    seen.expect("loads in the outage", loads(seen, 115_000), [3] * 4)
    seen.expect("loads at the end", loads(seen), [2] * 6)


@shows("new-slow-revocation")
def only_owners_to_be_wait(seen: Seen) -> None:
    """What the quick member gives up is read 15 s before what the slow one does."""
    (slow,) = seen.of(Event.REVOKED, after_ms=60_000, member="slow")
    freed = slow.attrs["resources"].split()
    newcomers = ("newcomer-1", "newcomer-2")
    got = [e for name in newcomers for e in seen.of(Event.ASSIGNED, member=name)]
    early = [e for e in got if not any(r in e.attrs["resources"].split() for r in freed)]
    late = [e for e in got if e not in early]
    seen.expect_between("got early", len(early), 2, 4)
    wait_ms = min(e.ts_us for e in late) // 1_000 - max(e.ts_us for e in early) // 1_000
    seen.expect_between("waited in ms", wait_ms, 15_000, 30_000)
    seen.expect("loads at the end", loads(seen), [3] * 4)


@shows("new-member-fenced")
def fenced_member_loses_all_and_rejoins(seen: Seen) -> None:
    """A member that nobody knows any more loses all, and is back under the id that it had."""
    (lost,) = seen.of(Event.LOST)
    seen.expect("lost", len(lost.attrs["resources"].split()), 3)
    seen.expect("revoked by it", seen.of(Event.REVOKED, after_ms=30_000, member="consumer-2"), [])
    ids = {event.member_id for event in seen.of(Event.ASSIGNED, member="consumer-2")}
    seen.expect("its ids", ids, {lost.member_id})
    seen.expect("loads while it is away", loads(seen, 50_000)[-2:], [4, 5])
    seen.expect("loads at the end", loads(seen), [3] * 3)


@shows("new-coordinator-moved")
def reconciliation_survives_the_move(seen: Seen) -> None:
    """Partitions revoked before the move are assigned after it, and no member loses any."""
    seen.expect("lost", seen.of(Event.LOST), [])
    seen.expect("given up after the move", given_up(seen, 31_500, FOREVER_MS), [])
    (got,) = seen.of(Event.ASSIGNED, member="newcomer")
    seen.expect("given up, and got", given_up(seen, 30_000, 31_500), _resources(seen, got.seq))
    seen.expect("loads at the end", loads(seen), [4] * 3)


def _resources(seen: Seen, seq: int) -> list[str]:
    return sorted(next(e for e in seen.events if e.seq == seq).attrs["resources"].split())


@shows("new-regex")
def topics_are_found_by_the_coordinator(seen: Seen) -> None:
    """All members read each new topic within two heartbeats, and give nothing up for it."""
    for created_ms in (30_000, 60_000):
        got = seen.of(Event.ASSIGNED, after_ms=created_ms, before_ms=created_ms + 10_000)
        seen.expect("members that get a partition", len({e.member_id for e in got}), 4)
    seen.expect("given up", given_up(seen, 30_000, FOREVER_MS), [])
    names = {name.rpartition("-")[0] for names in owned_at(seen).values() for name in names}
    seen.expect("topics", names, {"orders-eu", "orders-us", "orders-asia"})
    seen.expect("loads at the end", loads(seen), [3] * 4)
