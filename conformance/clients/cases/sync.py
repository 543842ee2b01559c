"""C-SYNC: SyncGroup on the wire."""

from coordinator_sim_conformance.clients.case import on_the_wire
from coordinator_sim_conformance.clients.stage import Stage

AT_ONCE_S = 2.0
"""How long `at once` may take; beside a rebalance timeout it is nothing."""


@on_the_wire("C-SYNC-01")
async def follower_brings_nothing(stage: Stage) -> None:
    """A follower's SyncGroup has no assignments, and comes at once."""
    await stage.start()
    await stage.stable()
    await stage.start()
    join = await stage.answered(
        "JoinGroup", "NONE", where=lambda each: each.response.leader != each.response.member_id
    )
    sync = await stage.request(
        "SyncGroup", after=join, where=lambda each: each.member_id == join.response.member_id
    )
    stage.expect(
        not sync.request.assignments, "a follower's SyncGroup has no assignments", str(sync)
    )
    took_ms = sync.at_ms - join.answered_ms
    stage.expect(
        took_ms < 1_000 * AT_ONCE_S * stage.margins,
        f"SyncGroup comes within {AT_ONCE_S} s of the answer to JoinGroup",
        f"{took_ms:.0f} ms",
        on_time=True,
    )


@on_the_wire("C-SYNC-02")
async def leader_assigns_to_each(stage: Stage) -> None:
    """A leader's SyncGroup has one assignment for each member, by its id."""
    await stage.start()
    await stage.stable()
    await stage.start()
    join = await stage.answered(
        "JoinGroup", "NONE", where=lambda each: len(each.response.members) > 1
    )
    sync = await stage.request(
        "SyncGroup", after=join, where=lambda each: each.member_id == join.response.member_id
    )
    members = sorted(each.member_id for each in join.response.members)
    assigned = sorted(each.member_id for each in sync.request.assignments)
    stage.expect(members == assigned, f"assignments for {members}", f"for {assigned}")


@on_the_wire("C-SYNC-04")
async def rebalance_on_sync(stage: Stage) -> None:
    """SyncGroup answered REBALANCE_IN_PROGRESS: JoinGroup at once, with the same member id."""
    await _rejoins(stage, "REBALANCE_IN_PROGRESS", keeps_id=True)


@on_the_wire("C-SYNC-05")
async def illegal_generation_on_sync(stage: Stage) -> None:
    """SyncGroup answered ILLEGAL_GENERATION: JoinGroup at once, with the same member id."""
    await _rejoins(stage, "ILLEGAL_GENERATION", keeps_id=True)


@on_the_wire("C-SYNC-06")
async def unknown_member_on_sync(stage: Stage) -> None:
    """SyncGroup answered UNKNOWN_MEMBER_ID: JoinGroup at once, with an empty member id."""
    await _rejoins(stage, "UNKNOWN_MEMBER_ID", keeps_id=False)


async def _rejoins(stage: Stage, error: str, *, keeps_id: bool) -> None:
    stage.fail("SyncGroup", error)
    await stage.start()
    refused = await stage.answered("SyncGroup", error)
    join = await stage.request("JoinGroup", after=refused)
    wanted = refused.member_id if keeps_id else ""
    stage.expect(
        join.member_id == wanted, f"JoinGroup with member id {wanted or '(empty)'}", str(join)
    )
    took_ms = join.at_ms - refused.answered_ms
    stage.expect(
        took_ms < 1_000 * AT_ONCE_S * stage.margins,
        f"JoinGroup within {AT_ONCE_S} s of the refusal",
        f"{took_ms:.0f} ms",
        on_time=True,
    )
    if keeps_id:
        await stage.stable(after=join)


@on_the_wire("C-SYNC-07", is_quirk=True)
async def loading_on_sync(stage: Stage) -> None:
    """SyncGroup answered COORDINATOR_LOAD_IN_PROGRESS: the application is told of an error."""
    stage.fail("SyncGroup", "COORDINATOR_LOAD_IN_PROGRESS")
    driver = await stage.start("commands")
    await stage.answered("SyncGroup", "COORDINATOR_LOAD_IN_PROGRESS")
    await stage.event("error", of=driver)


@on_the_wire("C-SYNC-10")
async def fenced_on_sync(stage: Stage) -> None:
    """SyncGroup answered FENCED_INSTANCE_ID: the application is told, and nobody joins again."""
    stage.fail("SyncGroup", "FENCED_INSTANCE_ID")
    driver = await stage.start("static", group_instance_id="one")
    refused = await stage.answered("SyncGroup", "FENCED_INSTANCE_ID")
    await stage.event("error", of=driver)
    await stage.pass_time(2)
    stage.expect_none(stage.all("JoinGroup", after=refused), "no JoinGroup after the fencing")
