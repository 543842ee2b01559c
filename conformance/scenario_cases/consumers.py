"""Consumer groups that start, grow, are deployed, upgraded and get more topics."""

from coordinator_sim.trace.events import Event, RebalanceReason
from coordinator_sim_conformance.scenario_cases.case import shows
from coordinator_sim_conformance.scenario_cases.seen import Seen


def given_up(seen: Seen, after_ms: int, before_ms: int) -> list[str]:
    """Return the partitions that members gave up in an interval, by revocation or loss."""
    events = seen.of(Event.REVOKED, Event.LOST, after_ms=after_ms, before_ms=before_ms)
    return sorted(name for event in events for name in event.attrs["resources"].split())


@shows("startup-storm")
def storm_ends_in_one_generation(seen: Seen) -> None:
    """The initial delay gathers all twenty."""
    seen.expect("members", [e.members for e in seen.of(Event.JOIN_COMPLETE)], [20])


@shows("scale-out")
def newcomers_share_one_rebalance(seen: Seen) -> None:
    """Everyone who comes before the old members notice is taken up at once."""
    seen.expect("loads", seen.loads(), [[4, 4, 4], [2] * 6])
    seen.expect("reasons", seen.reasons()[1:], [RebalanceReason.MEMBER_JOINED])


@shows("static-rolling-bounce")
def static_bounce_causes_no_rebalance(seen: Seen) -> None:
    """Six restarts, six replacements, one generation."""
    seen.expect("replaced", len(seen.of(Event.STATIC_REPLACED)), 6)
    seen.expect("rebalances", len(seen.of(Event.PREPARE_REBALANCE)), 1)


@shows("rolling-bounce")
def dynamic_bounce_costs_rebalances(seen: Seen) -> None:
    """Closing means leaving, and coming back means joining."""
    found = set(seen.reasons()[1:])
    wanted = {RebalanceReason.MEMBER_LEFT, RebalanceReason.MEMBER_JOINED}
    seen.expect_that("members leave and join", wanted <= found, found)


@shows("consumer-rolling-deploy")
def deploy_costs_rebalances(seen: Seen) -> None:
    """Closing means leaving, and coming back means joining."""
    dynamic_bounce_costs_rebalances(seen)


@shows("partitions-added")
def added_partitions_are_found_by_the_leader(seen: Seen) -> None:
    """Until its metadata is refreshed nobody reads them."""
    seen.expect("reasons", seen.reasons()[1:], [RebalanceReason.LEADER_REJOIN])
    seen.expect("partitions read", [sum(loads) for loads in seen.loads()], [6, 10])


@shows("pattern-storm")
def new_topic_is_one_rebalance(seen: Seen) -> None:
    """Twenty consumers find the topic in one rebalance, and read it then."""
    seen.expect("rebalances", len(seen.reasons(after_ms=60_000)), 1)
    seen.expect("loads at the end", list(seen.generations[-1].loads), [1] * 20)


@shows("static-leader-restart")
def restarted_static_leader_watches_its_topics(seen: Seen) -> None:
    """No rebalance at the restart, and one by the leader after the topic has grown."""
    seen.expect("reasons", seen.reasons()[1:], [RebalanceReason.LEADER_REJOIN])
    seen.expect("replaced", len(seen.of(Event.STATIC_REPLACED)), 1)
    (rejoined,) = seen.of(Event.PREPARE_REBALANCE, after_ms=30_000)
    rejoined_ms = rejoined.ts_us // 1_000
    seen.expect_between("noticed within its metadata's age", rejoined_ms, 60_001, 90_500)
    seen.expect("partitions read", [sum(loads) for loads in seen.loads()], [6, 9])


@shows("cooperative-upgrade")
def upgrade_ends_cooperative(seen: Seen) -> None:
    """Everything stops while the group is eager; afterwards only what moves does."""
    protocols = [event.protocol_name for event in seen.of(Event.JOIN_COMPLETE)]
    changed = protocols.index("cooperative-sticky")
    seen.expect("protocols of the first bounce", set(protocols[:changed]), {"range"})
    seen.expect("protocols after it", set(protocols[changed:]), {"cooperative-sticky"})
    eager = given_up(seen, 32_000, 34_100)
    seen.expect("given up by those that stay, eager", len(eager), 6)
    leaving = given_up(seen, 200_000, 200_500)
    moved = given_up(seen, 200_500, 240_000)
    seen.expect("given up, cooperative", (len(leaving), len(moved)), (3, 3))
    seen.expect("lost", seen.of(Event.LOST), [])


@shows("subscription-reverted")
def reverted_subscription_still_joins(seen: Seen) -> None:
    """The consumer gave its partitions up once, asks again, and everything is owned at the end."""
    own = seen.of(Event.REVOKED, after_ms=30_000, member="consumer-1")
    seen.expect("revocations", len(own), 1)
    asked = seen.of(Event.JOIN_REQ, after_ms=30_500, member="consumer-1")
    seen.expect("JoinGroups after the lost one", len(asked), 1)
    last = seen.generations[-1]
    seen.expect("loads at the end", sorted(last.loads), [2, 2, 2])
    seen.expect("lost", seen.of(Event.LOST), [])


@shows("slow-leader")
def followers_wait_for_a_slow_leader(seen: Seen) -> None:
    """No member commits or fails until the leader has assigned, and none is told to rejoin."""
    completed = seen.of(Event.JOIN_COMPLETE, after_ms=30_000)
    assigned = seen.of(Event.SYNC_LEADER, after_ms=30_000)
    start_ms, end_ms = completed[0].ts_us // 1_000 + 1, assigned[0].ts_us // 1_000
    seen.expect_between("waiting", end_ms - start_ms, 7_900, 8_200)
    followers = ("consumer-2", "consumer-3", "consumer-4")
    beats = [
        e
        for e in seen.of(Event.HEARTBEAT, after_ms=end_ms, before_ms=end_ms + 100)
        if seen.name_of(e) in followers
    ]
    seen.expect_between("heartbeats held up by SyncGroup", len(beats), 6, 12)
    seen.expect("refused heartbeats", [e.error_code for e in beats if e.error_code], [])
    seen.expect("failed", seen.of(Event.MEMBER_FAILED), [])
    commits = seen.of(Event.OFFSET_COMMIT, after_ms=start_ms, before_ms=end_ms)
    seen.expect("commits", commits, [])
    seen.expect("generations", len(completed), 2)


@shows("missed-cooperative-round")
def stale_claim_gives_no_partition_two_owners(seen: Seen) -> None:
    """The member that missed a round rejoins with an old claim; no partition has two owners."""
    (refused,) = (e for e in seen.of(Event.SYNC_RESP, after_ms=30_000) if e.error_code)
    seen.expect("who missed the round", seen.name_of(refused), "consumer-2")
    expect_single_owners(seen)
    seen.expect("loads at the end", sorted(seen.generations[-1].loads), [2, 2, 2, 2])


@shows("slow-follower-sync")
def follow_up_rounds_end(seen: Seen) -> None:
    """A slow follower misses a round, and the group is balanced after a few more."""
    refused = [e for e in seen.of(Event.SYNC_RESP, after_ms=30_000) if e.error_code]
    seen.expect_that("a round missed", bool(refused))
    count = seen.completed(after_ms=30_000)
    seen.expect_between("generations", count, 2, 4)
    expect_single_owners(seen)
    seen.expect("loads at the end", sorted(seen.generations[-1].loads), [2, 2, 2])


def expect_single_owners(seen: Seen) -> None:
    """Check that a partition is assigned only after its previous owner has given it up."""
    owners: dict[str, str] = {}
    for event in seen.of(Event.ASSIGNED, Event.REVOKED, Event.LOST, Event.LIFECYCLE):
        name = seen.name_of(event) or ""
        if event.event is Event.LIFECYCLE:
            if event.reason_text == "gone":
                owners = {owned: owner for owned, owner in owners.items() if owner != name}
            continue
        if event.event is not Event.ASSIGNED:
            for gone in event.attrs["resources"].split():
                owners.pop(gone.partition(":")[2], None)
            continue
        for partition in seen.partitions_of(event):
            holder = owners.setdefault(partition, name)
            seen.expect(f"owner of {partition} when given to {name}", holder, name)
