"""C-WIRE: what the cases on our own ports do not name apart, and the wire of any client shows."""

from coordinator_sim_conformance.clients.case import on_the_wire
from coordinator_sim_conformance.clients.stage import Stage


@on_the_wire("C-WIRE-01", "AbstractCoordinator.JoinGroupResponseHandler")
async def forgets_an_id_that_is_unknown(stage: Stage) -> None:
    """JoinGroup answered UNKNOWN_MEMBER_ID: the next one has another id, or none."""
    await stage.start()
    sync = await stage.settled()
    stage.fail("Heartbeat", "REBALANCE_IN_PROGRESS")
    stage.fail("JoinGroup", "UNKNOWN_MEMBER_ID")
    refused = await stage.answered("JoinGroup", "UNKNOWN_MEMBER_ID", after=sync)
    join = await stage.request("JoinGroup", after=refused)
    stage.expect(join.member_id == "", "JoinGroup with an empty member id", str(join))


@on_the_wire("C-WIRE-02", "AbstractCoordinator.HeartbeatResponseHandler")
async def forgets_an_id_that_heartbeats_lost(stage: Stage) -> None:
    """Heartbeat answered UNKNOWN_MEMBER_ID: JoinGroup with an empty member id."""
    await stage.start()
    sync = await stage.settled()
    stage.fail("Heartbeat", "UNKNOWN_MEMBER_ID")
    refused = await stage.answered("Heartbeat", "UNKNOWN_MEMBER_ID", after=sync)
    join = await stage.request("JoinGroup", after=refused)
    stage.expect(join.member_id == "", "JoinGroup with an empty member id", str(join))
    again = await stage.stable(after=join)
    old = [
        each
        for each in stage.all(after=again)
        if each.api in {"Heartbeat", "OffsetCommit"} and each.member_id == sync.member_id
    ]
    stage.expect_none(old, f"nothing more of {sync.member_id}")


@on_the_wire("C-WIRE-03", "ConsumerCoordinator.OffsetCommitResponseHandler")
async def illegal_generation_is_not_repeated(stage: Stage) -> None:
    """OffsetCommit answered ILLEGAL_GENERATION: it is not sent again in that generation."""
    driver = await stage.start("commit")
    sync = await stage.settled()
    await stage.event("assigned", of=driver)
    stage.fail("OffsetCommit", "ILLEGAL_GENERATION")
    stage.note("the application commits")
    driver.send("commit")
    refused = await stage.answered("OffsetCommit", "ILLEGAL_GENERATION")
    await stage.pass_time(2)
    old = [
        each
        for each in stage.all("OffsetCommit", after=refused)
        if each.generation == sync.generation
    ]
    stage.expect_none(old, f"no OffsetCommit in generation {sync.generation} any more")


@on_the_wire("C-WIRE-04", "AbstractCoordinator.HeartbeatThread.run")
async def heartbeats_are_of_the_new_generation(stage: Stage) -> None:
    """After a rebalance every Heartbeat is of the new generation."""
    await stage.start()
    first = await stage.settled()
    stage.fail("Heartbeat", "REBALANCE_IN_PROGRESS")
    second = await stage.stable(after=first)
    stage.expect(second.generation > first.generation, "a new generation", str(second))
    await stage.answered("Heartbeat", "NONE", after=second)
    await stage.pass_time(1)
    old = [
        each
        for each in stage.all("Heartbeat", after=second)
        if each.generation != second.generation and each.at_ms > second.answered_ms
    ]
    stage.expect_none(old, f"heartbeats of generation {second.generation} alone")


@on_the_wire("C-WIRE-05", "AbstractCoordinator.sendJoinGroupRequest")
async def restarted_static_member_has_its_instance(stage: Stage) -> None:
    """A static member that is started again joins with its instance id and no member id."""
    first = await stage.start("static", group_instance_id="one")
    sync = await stage.settled()
    stage.note("the application closes its client, and starts it again")
    stage.close_client(first)
    await stage.event("closed", of=first)
    await stage.start("static", group_instance_id="one")
    join = await stage.request("JoinGroup", after=sync)
    stage.expect(
        (join.member_id, join.request.group_instance_id) == ("", "one"),
        "JoinGroup with an empty member id and instance one",
        str(join),
    )
    again = await stage.answered("SyncGroup", "NONE", after=join)
    stage.expect(
        again.generation == sync.generation,
        f"SyncGroup in the same generation, {sync.generation}",
        str(again),
    )
