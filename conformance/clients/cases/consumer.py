"""C-CONS: subscriptions, revocations and assignments, on the wire and at the application."""

from coordinator_sim.messages.embedded.consumer_protocol import decode_subscription
from coordinator_sim.messages.embedded.contents import Subscription
from coordinator_sim_conformance.clients.case import on_the_wire
from coordinator_sim_conformance.clients.stage import Stage
from coordinator_sim_conformance.clients.wire import Exchange

COOPERATIVE = "cooperative-sticky"


def _subscription(join: Exchange, protocol: str) -> Subscription:
    """The subscription that a JoinGroup offers for a protocol."""
    found = {each.name: each.metadata for each in join.request.protocols}
    return decode_subscription(found[protocol])


@on_the_wire("C-CONS-01")
async def eager_if_any_assignor_is(stage: Stage) -> None:
    """With range and cooperative-sticky both are offered, and partitions are all given up."""
    driver = await stage.start(
        "mixed", "revoked", partition_assignment_strategy=f"range,{COOPERATIVE}"
    )
    sync = await stage.settled()
    await stage.event("assigned", of=driver)
    stage.fail("Heartbeat", "REBALANCE_IN_PROGRESS")
    join = await stage.request("JoinGroup", after=sync)
    names = [each.name for each in join.request.protocols]
    stage.expect(names == ["range", COOPERATIVE], f"protocols range, {COOPERATIVE}", f"{names}")
    owned = _subscription(join, "range").owned_partitions
    stage.expect(not owned, "no owned partitions in JoinGroup", f"{owned}")


@on_the_wire("C-CONS-01.2")
async def cooperative_alone_keeps_partitions(stage: Stage) -> None:
    """With cooperative-sticky alone JoinGroup tells the partitions, and none is revoked before."""
    driver = await stage.start("cooperative", partition_assignment_strategy=COOPERATIVE)
    sync = await stage.settled()
    assigned = await stage.event("assigned", of=driver)
    stage.fail("Heartbeat", "REBALANCE_IN_PROGRESS")
    join = await stage.request("JoinGroup", after=sync)
    owned = sorted(
        f"{each.topic}-{each.partition}"
        for each in _subscription(join, COOPERATIVE).owned_partitions
    )
    stage.expect(
        tuple(owned) == assigned.partitions, f"owned partitions {assigned.partitions}", f"{owned}"
    )
    await stage.stable(after=join)
    gone = [each for each in driver.events if each.kind in {"revoked", "lost"} and each.partitions]
    stage.expect(not gone, "nothing revoked in the rebalance", str(gone[0]) if gone else "")


@on_the_wire("C-CONS-02")
async def eager_revokes_before_it_joins(stage: Stage) -> None:
    """An eager consumer revokes all it has before its JoinGroup."""
    driver = await stage.start("revoked")
    sync = await stage.settled()
    assigned = await stage.event("assigned", of=driver)
    stage.fail("Heartbeat", "REBALANCE_IN_PROGRESS")
    join = await stage.request("JoinGroup", after=sync)
    revoked = await stage.event("revoked", of=driver, after=assigned.at_ms)
    stage.expect(
        revoked.partitions == assigned.partitions,
        f"revoked: {assigned.partitions}",
        f"{revoked.partitions}",
    )
    early_ms = join.at_ms - revoked.at_ms
    stage.expect(
        early_ms > -5,
        "the revocation before JoinGroup",
        f"{-early_ms:.0f} ms after it",
        on_time=True,
    )
    again = await stage.event("assigned", of=driver, after=revoked.at_ms)
    stage.expect(
        again.partitions == assigned.partitions,
        f"assigned again: {assigned.partitions}",
        f"{again.partitions}",
    )


@on_the_wire("C-CONS-04")
async def dropped_out_loses(stage: Stage) -> None:
    """Heartbeat answered UNKNOWN_MEMBER_ID: partitions are lost, not revoked, before JoinGroup."""
    driver = await stage.start("lost")
    sync = await stage.settled()
    assigned = await stage.event("assigned", of=driver)
    stage.fail("Heartbeat", "UNKNOWN_MEMBER_ID")
    refused = await stage.answered("Heartbeat", "UNKNOWN_MEMBER_ID", after=sync)
    join = await stage.request("JoinGroup", after=refused)
    lost = await stage.event("lost", of=driver, after=refused.answered_ms - 1)
    stage.expect(
        lost.partitions == assigned.partitions,
        f"lost: {assigned.partitions}",
        f"{lost.partitions}",
    )
    late_ms = lost.at_ms - join.at_ms
    stage.expect(late_ms < 5, "the loss before JoinGroup", f"{late_ms:.0f} ms after it")


@on_the_wire("C-CONS-05")
async def another_subscription_is_told(stage: Stage) -> None:
    """A subscription that changes while SyncGroup waits is told in another JoinGroup."""
    more = f"{stage.topic}-more"
    stage.create_topic(more)
    stage.delay_answer("SyncGroup", 2_000)
    driver = await stage.start("subscribe")
    sync = await stage.request("SyncGroup")
    stage.note(f"the application subscribes to {more} instead")
    driver.send(f"subscribe {more}")
    join = await stage.request(
        "JoinGroup",
        after=sync,
        where=lambda each: _subscription(each, "range").topics == (more,),
        expecting=f"a JoinGroup that subscribes to {more}",
    )
    await stage.stable(after=join)
    await stage.until(
        lambda: next(
            (
                each
                for each in driver.events
                if each.kind == "assigned"
                and any(part.startswith(more) for part in each.partitions)
            ),
            None,
        ),
        f"partitions of {more} are assigned",
    )


@on_the_wire("C-CONS-07")
async def unanswered_commit_does_not_hold_the_join(stage: Stage) -> None:
    """A commit before JoinGroup that is refused for ever does not keep the member from joining."""
    await stage.start(
        "max.poll.interval.ms",
        enable_auto_commit="true",
        auto_commit_interval_ms="60000",
        session_timeout_ms="5000",
        max_poll_interval_ms="5500",
    )
    sync = await stage.settled()
    await stage.answered("OffsetFetch", "NONE")
    await stage.pass_time(1)
    stage.fail("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS", times=None)
    stage.fail("Heartbeat", "REBALANCE_IN_PROGRESS")
    refused = await stage.answered("Heartbeat", "REBALANCE_IN_PROGRESS", after=sync)
    join = await stage.request("JoinGroup", after=refused, within_s=12)
    commits = stage.all("OffsetCommit", after=refused)
    if not any(each.at_ms <= join.at_ms for each in commits):
        stage.lacks("commit before JoinGroup when no record was read")


@on_the_wire("C-CONS-09")
async def leader_sees_new_partitions(stage: Stage) -> None:
    """A leader that sees new partitions joins again, and they are assigned."""
    driver = await stage.start("settings", metadata_max_age_ms="1000")
    sync = await stage.settled()
    await stage.event("assigned", of=driver)
    stage.add_partitions()
    join = await stage.request("JoinGroup", after=sync)
    stage.expect(
        join.member_id == sync.member_id, f"JoinGroup with member id {sync.member_id}", str(join)
    )
    await stage.until(
        lambda: next((e for e in driver.events if len(e.partitions) > 4), None),
        "eight partitions are assigned",
    )
