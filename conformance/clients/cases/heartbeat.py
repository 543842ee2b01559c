"""C-HB: Heartbeat on the wire."""

from itertools import pairwise
from statistics import median

from coordinator_sim_conformance.clients.case import on_the_wire
from coordinator_sim_conformance.clients.stage import Stage


@on_the_wire("C-HB-02")
async def rebalance_is_joined(stage: Stage) -> None:
    """Heartbeat answered REBALANCE_IN_PROGRESS: JoinGroup with the same member id."""
    await stage.start()
    sync = await stage.settled()
    stage.fail("Heartbeat", "REBALANCE_IN_PROGRESS")
    refused = await stage.answered("Heartbeat", "REBALANCE_IN_PROGRESS", after=sync)
    join = await stage.request("JoinGroup", after=refused)
    stage.expect(
        join.member_id == sync.member_id, f"JoinGroup with member id {sync.member_id}", str(join)
    )
    again = await stage.stable(after=join)
    stage.expect(
        again.generation > sync.generation, "a SyncGroup in the new generation", str(again)
    )
    stage.expect_none(stage.all("LeaveGroup"), "no LeaveGroup")


@on_the_wire("C-HB-04")
async def illegal_generation_keeps_the_id(stage: Stage) -> None:
    """Heartbeat answered ILLEGAL_GENERATION: JoinGroup with the same member id."""
    await stage.start()
    sync = await stage.settled()
    stage.fail("Heartbeat", "ILLEGAL_GENERATION")
    refused = await stage.answered("Heartbeat", "ILLEGAL_GENERATION", after=sync)
    join = await stage.request("JoinGroup", after=refused)
    stage.expect(
        join.member_id == sync.member_id, f"JoinGroup with member id {sync.member_id}", str(join)
    )


@on_the_wire("C-HB-06")
async def fenced_is_final(stage: Stage) -> None:
    """Heartbeat answered FENCED_INSTANCE_ID: the application is told, nothing is sent again."""
    driver = await stage.start("static", group_instance_id="one")
    sync = await stage.settled()
    stage.fail("Heartbeat", "FENCED_INSTANCE_ID")
    refused = await stage.answered("Heartbeat", "FENCED_INSTANCE_ID", after=sync)
    await stage.event("error", of=driver)
    await stage.pass_time(2)
    stage.expect_none(stage.all("JoinGroup", after=refused), "no JoinGroup after the fencing")
    stage.expect_none(stage.all("LeaveGroup", after=refused), "no LeaveGroup after the fencing")


@on_the_wire("C-HB-07")
async def silent_coordinator_is_looked_for(stage: Stage) -> None:
    """A session without an answer to heartbeats: FindCoordinator; no LeaveGroup, no JoinGroup."""
    await stage.start(
        "settings",
        session_timeout_ms="4000",
        heartbeat_interval_ms="1000",
        max_poll_interval_ms="60000",
    )
    deeds = {"FindCoordinator", "JoinGroup", "LeaveGroup"}
    sync = await stage.settled()
    beat = await stage.answered("Heartbeat", "NONE", after=sync)
    stage.drop("Heartbeat")
    lost = await stage.request("Heartbeat", after=beat)
    lookup = await stage.until(
        lambda: next((e for e in stage.all(after=lost) if e.api in deeds), None),
        "a FindCoordinator",
    )
    stage.expect(lookup.api == "FindCoordinator", "first of all a FindCoordinator", str(lookup))
    then = await stage.until(
        lambda: next(
            (e for e in stage.all(after=lookup) if e.api in {"Heartbeat", "JoinGroup"}), None
        ),
        "a Heartbeat after the lookup",
    )
    stage.expect(
        (then.api, then.member_id, then.generation)
        == ("Heartbeat", sync.member_id, sync.generation),
        "a Heartbeat of the same member in its generation after the lookup",
        str(then),
    )


@on_the_wire("C-HB-08")
async def interval_is_from_send_to_send(stage: Stage) -> None:
    """Heartbeats are an interval apart from send to send, however late their answers are."""
    interval_ms, late_ms = 1_000, 700
    await stage.start("settings", heartbeat_interval_ms=str(interval_ms))
    sync = await stage.settled()
    stage.delay_answer("Heartbeat", late_ms, times=None)
    await stage.pass_time(1 + 6 * interval_ms / 1_000)
    beats = stage.all("Heartbeat", after=sync)
    pauses = [round(later.at_ms - earlier.at_ms) for earlier, later in pairwise(beats)][1:]
    stage.expect(len(pauses) > 1, "several heartbeats in seven intervals", f"{len(beats)}")
    stage.expect(
        abs(median(pauses) - interval_ms) < late_ms / 2,
        f"one Heartbeat in {interval_ms} ms, though answers take {late_ms} ms",
        f"pauses of {pauses} ms",
        on_time=True,
    )


@on_the_wire("C-HB-09")
async def failed_heartbeat_is_repeated_soon(stage: Stage) -> None:
    """A Heartbeat that failed is repeated before the interval is over, and not at once."""
    interval_ms = 3_000
    await stage.start("settings", heartbeat_interval_ms=str(interval_ms))
    sync = await stage.settled()
    await stage.answered("Heartbeat", "NONE", after=sync)
    stage.fail("Heartbeat", "COORDINATOR_NOT_AVAILABLE")
    refused = await stage.answered("Heartbeat", "COORDINATOR_NOT_AVAILABLE", after=sync)
    again = await stage.request("Heartbeat", after=refused)
    pause_ms = again.at_ms - refused.answered_ms
    stage.expect(
        pause_ms < interval_ms * 0.8,
        f"a Heartbeat before {interval_ms} ms are over",
        f"after {pause_ms:.0f} ms",
        on_time=True,
    )


@on_the_wire("C-HB-10")
async def who_does_not_poll_leaves(stage: Stage) -> None:
    """After max.poll.interval.ms without a poll: LeaveGroup, and no Heartbeat behind it."""
    await stage.start(
        "max.poll.interval.ms", session_timeout_ms="3000", max_poll_interval_ms="3500"
    )
    driver = stage.drivers[0]
    sync = await stage.settled()
    await stage.answered("Heartbeat", "NONE", after=sync)
    stage.note("the application does not poll any more")
    driver.send("pause")
    leave = await stage.request("LeaveGroup", after=sync)
    stage.expect(leave.member_id == sync.member_id, f"LeaveGroup of {sync.member_id}", str(leave))
    await stage.pass_time(1.5)
    stage.expect_none(stage.all("Heartbeat", after=leave), "no Heartbeat after LeaveGroup")


@on_the_wire("C-HB-11")
async def static_member_does_not_leave(stage: Stage) -> None:
    """A static member that does not poll sends no LeaveGroup; its heartbeats stop."""
    await stage.start(
        "max.poll.interval.ms",
        "static",
        group_instance_id="one",
        session_timeout_ms="3000",
        max_poll_interval_ms="3500",
    )
    driver = stage.drivers[0]
    sync = await stage.settled()
    await stage.answered("Heartbeat", "NONE", after=sync)
    stage.note("the application does not poll any more")
    driver.send("pause")
    await stage.pass_time(6 * stage.margins)
    stage.expect_none(stage.all("LeaveGroup"), "no LeaveGroup of a static member")
    last = stage.all("Heartbeat")[-1]
    await stage.pass_time(1.5)
    stage.expect_none(
        stage.all("Heartbeat", after=last), "no Heartbeat long after max.poll.interval.ms"
    )
