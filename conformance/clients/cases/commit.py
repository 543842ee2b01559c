"""C-COMMIT: OffsetCommit on the wire."""

from coordinator_sim_conformance.clients.case import on_the_wire
from coordinator_sim_conformance.clients.stage import Stage


@on_the_wire("C-COMMIT-01", is_quirk=True)
async def no_commit_while_joining(stage: Stage) -> None:
    """While JoinGroup waits a commit fails, and is not sent."""
    driver = await stage.start("commit")
    sync = await stage.settled()
    await stage.event("assigned", of=driver)
    stage.delay_answer("JoinGroup", 3_000)
    stage.fail("Heartbeat", "REBALANCE_IN_PROGRESS")
    join = await stage.request("JoinGroup", after=sync)
    stage.note("the application commits")
    driver.send("commit")
    await stage.stable(after=join)
    early = [each for each in stage.all("OffsetCommit") if each.at_ms < join.answered_ms]
    stage.expect_none(early, "no OffsetCommit while JoinGroup waits")


@on_the_wire("C-COMMIT-02")
async def no_commit_after_eviction(stage: Stage) -> None:
    """A member that was evicted commits nothing in its old generation."""
    driver = await stage.start("commit")
    sync = await stage.settled()
    await stage.event("assigned", of=driver)
    stage.delay_answer("JoinGroup", 3_000)
    stage.fail("Heartbeat", "UNKNOWN_MEMBER_ID")
    refused = await stage.answered("Heartbeat", "UNKNOWN_MEMBER_ID", after=sync)
    await stage.request("JoinGroup", after=refused)
    stage.note("the application commits")
    driver.send("commit")
    await stage.pass_time(2)
    old = [
        each
        for each in stage.all("OffsetCommit", after=refused)
        if each.member_id == sync.member_id
    ]
    stage.expect_none(old, f"no OffsetCommit of {sync.member_id} after UNKNOWN_MEMBER_ID")


@on_the_wire("C-COMMIT-03")
async def rebalance_on_commit(stage: Stage) -> None:
    """OffsetCommit answered REBALANCE_IN_PROGRESS: JoinGroup with the same member id."""
    driver = await stage.start("commit")
    sync = await stage.settled()
    await stage.event("assigned", of=driver)
    stage.fail("OffsetCommit", "REBALANCE_IN_PROGRESS")
    stage.note("the application commits")
    driver.send("commit")
    refused = await stage.answered("OffsetCommit", "REBALANCE_IN_PROGRESS")
    stage.expect(
        (refused.member_id, refused.generation) == (sync.member_id, sync.generation),
        f"OffsetCommit of {sync.member_id} in generation {sync.generation}",
        str(refused),
    )
    join = await stage.request("JoinGroup", after=refused)
    stage.expect(
        join.member_id == sync.member_id, f"JoinGroup with member id {sync.member_id}", str(join)
    )


@on_the_wire("C-COMMIT-06")
async def retriable_commit_is_repeated(stage: Stage) -> None:
    """A synchronous OffsetCommit answered UNKNOWN_TOPIC_OR_PARTITION is sent again."""
    driver = await stage.start("commit")
    await stage.stable()
    await stage.event("assigned", of=driver)
    stage.fail("OffsetCommit", "UNKNOWN_TOPIC_OR_PARTITION")
    stage.note("the application commits")
    driver.send("commit")
    refused = await stage.answered("OffsetCommit", "UNKNOWN_TOPIC_OR_PARTITION")
    again = await stage.answered("OffsetCommit", "NONE", after=refused)
    stage.expect(
        again.request.topics == refused.request.topics, "the same offsets again", str(again)
    )
    await stage.event("committed", of=driver)


@on_the_wire("C-COMMIT-08")
async def assigned_by_hand_is_anonymous(stage: Stage) -> None:
    """Partitions assigned by hand are committed with an empty member id, in generation -1."""
    driver = await stage.start("assign", "commit", assign="0")
    stage.note("the application commits")
    driver.send("commit")
    commit = await stage.answered("OffsetCommit", "NONE")
    stage.expect(
        (commit.member_id, commit.generation) == ("", -1),
        "an empty member id and generation -1",
        str(commit),
    )
    stage.expect_none(stage.all("JoinGroup"), "no JoinGroup")
