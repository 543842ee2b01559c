"""Groups whose members are different clients."""

from coordinator_sim.trace.events import Event, RebalanceReason
from coordinator_sim_conformance.scenario_cases.case import shows
from coordinator_sim_conformance.scenario_cases.seen import Seen

_LEADER_STOPS_MS = 45_000


@shows("mixed-clients")
def each_client_leaves_in_its_own_way(seen: Seen) -> None:
    """Leaving, librdkafka says nothing; Java and franz-go give their reasons."""
    leaves = [(seen.name_of(event), event.client_reason) for event in seen.of(Event.LEAVE_REQ)]
    seen.expect(
        "leaves",
        leaves,
        [
            ("on-librdkafka", None),
            ("on-java", "consumer poll timeout has expired."),
            ("on-librdkafka", None),
            ("on-franz-go", "client leaving group per normal operation"),
        ],
    )
    seen.expect("failed", seen.of(Event.MEMBER_FAILED), [])


@shows("mixed-clients.2")
def librdkafka_leaves_by_a_clock_of_half_seconds(seen: Seen) -> None:
    """Java leaves within a processing time of its last poll, librdkafka up to 500 ms later."""
    first, second = seen.of(Event.LEAVE_REQ)[:2]
    seen.expect_between("librdkafka leaves", first.ts_us // 1_000, 48_000, 49_000)
    seen.expect_between("Java leaves", second.ts_us // 1_000, 73_000, 73_700)


@shows("mixed-clients-cooperative")
def nobody_gives_up_what_it_keeps(seen: Seen) -> None:
    """In three handovers no partition is revoked that its owner is given again."""
    owned: dict[str | None, list[str]] = {}
    for event in seen.of(Event.ASSIGNED, Event.REVOKED, before_ms=_LEADER_STOPS_MS):
        name = seen.name_of(event)
        if event.event is Event.ASSIGNED:
            owned[name] = seen.partitions_of(event)
            continue
        given_up = [resource.partition(":")[2] for resource in event.attrs["resources"].split()]
        kept = [partition for partition in given_up if partition in owned[name]]
        seen.expect(f"revoked by {name} and kept", kept, [])
    seen.expect("loads at the end", seen.loads()[-1], [4, 4, 4])
    seen.expect("failed", seen.of(Event.MEMBER_FAILED), [])


@shows("mixed-clients-cooperative.2")
def who_gave_something_up_asks_for_the_second_rebalance(seen: Seen) -> None:
    """Not only the leader: librdkafka and franz-go rejoin at once after they revoked."""
    reasons = seen.reasons()
    wanted = [RebalanceReason.MEMBER_JOINED, RebalanceReason.LEADER_REJOIN]
    seen.expect("when librdkafka joined", reasons[1:3], wanted)
    seen.expect("joins complete", seen.completed(), 8)
