"""C-JOIN: JoinGroup on the wire."""

from coordinator_sim_conformance.clients.case import on_the_wire
from coordinator_sim_conformance.clients.stage import Stage
from coordinator_sim_conformance.clients.wire import Exchange

AT_ONCE_S = 2.0
"""How long `at once` may take."""


@on_the_wire("C-JOIN-01")
async def id_is_taken_over(stage: Stage) -> None:
    """JoinGroup answered MEMBER_ID_REQUIRED: JoinGroup again at once, with the id it was given."""
    await stage.start()
    first = await stage.request("JoinGroup")
    if first.version < 4:
        stage.lacks("JoinGroup of version 4 or later, which alone is asked for an id")
    refused = await stage.answered("JoinGroup", "MEMBER_ID_REQUIRED")
    stage.expect(refused.member_id == "", "a first JoinGroup with an empty member id", str(refused))
    join = await stage.request("JoinGroup", after=refused)
    wanted = refused.response.member_id
    stage.expect(join.member_id == wanted, f"JoinGroup with member id {wanted}", str(join))
    _at_once(stage, refused, join)


@on_the_wire("C-JOIN-02")
async def join_outlives_other_requests(stage: Stage) -> None:
    """JoinGroup may take as long as the rebalance: it is not given up after request.timeout.ms."""
    stage.delay_answer("JoinGroup", 5_000, times=None)
    await stage.start(
        "request.timeout.ms",
        request_timeout_ms="3000",
        session_timeout_ms="2500",
        max_poll_interval_ms="20000",
    )
    join = await stage.request("JoinGroup")
    await _is_waited_for(stage, join, 5)


@on_the_wire("C-JOIN-03")
async def join_waits_for_other_requests_long(stage: Stage) -> None:
    """JoinGroup has request.timeout.ms at least, however short the rebalance timeout is."""
    # Longer than the 5 s that Java's client adds to the rebalance timeout.
    stage.delay_answer("JoinGroup", 9_500, times=None)
    await stage.start(
        "request.timeout.ms",
        request_timeout_ms="30000",
        session_timeout_ms="2500",
        max_poll_interval_ms="3000",
    )
    join = await stage.request("JoinGroup")
    await _is_waited_for(stage, join, 9.5)


async def _is_waited_for(stage: Stage, join: Exchange, seconds: float) -> None:
    """Expect that the answer to a JoinGroup is waited for."""
    await stage.until(
        lambda: join.answered_ms or join.lost_ms or None, "the answer leaves", 2 * seconds
    )
    stage.expect(
        join.response is not None,
        f"the connection kept for the {seconds:g} s until the answer",
        f"closed after {(join.lost_ms - join.at_ms) / 1_000:.1f} s",
    )
    again = [each for each in stage.all("JoinGroup", after=join) if each.at_ms < join.answered_ms]
    stage.expect_none(again, f"no other JoinGroup in the {seconds:g} s before the answer")
    await stage.request(
        "JoinGroup" if join.error == "MEMBER_ID_REQUIRED" else "SyncGroup",
        after=join,
        where=lambda each: each.member_id == join.response.member_id,
        expecting="the answer is used",
    )


@on_the_wire("C-JOIN-05")
async def full_is_final(stage: Stage) -> None:
    """JoinGroup answered GROUP_MAX_SIZE_REACHED: the application is told, and it is not retried."""
    stage.fail("JoinGroup", "GROUP_MAX_SIZE_REACHED", times=None)
    driver = await stage.start("commands")
    refused = await stage.answered("JoinGroup", "GROUP_MAX_SIZE_REACHED")
    await stage.event("error", of=driver)
    await stage.pass_time(2)
    stage.expect_none(stage.all("JoinGroup", after=refused), "no JoinGroup after the refusal")


@on_the_wire("C-JOIN-09")
async def rebalance_on_join(stage: Stage) -> None:
    """JoinGroup answered REBALANCE_IN_PROGRESS: JoinGroup again, with the same member id."""
    await stage.start()
    sync = await stage.settled()
    stage.fail("Heartbeat", "REBALANCE_IN_PROGRESS")
    stage.fail("JoinGroup", "REBALANCE_IN_PROGRESS")
    refused = await stage.answered("JoinGroup", "REBALANCE_IN_PROGRESS", after=sync)
    join = await stage.request("JoinGroup", after=refused)
    stage.expect(
        join.member_id == sync.member_id, f"JoinGroup with member id {sync.member_id}", str(join)
    )
    _at_once(stage, refused, join)


@on_the_wire("C-JOIN-10")
async def disconnected_join_keeps_its_id(stage: Stage) -> None:
    """A connection closed while JoinGroup waits: JoinGroup again, with the same member id."""
    await stage.start()
    sync = await stage.settled()
    stage.close_connection("JoinGroup")
    stage.fail("Heartbeat", "REBALANCE_IN_PROGRESS")
    lost = await stage.request("JoinGroup", after=sync)
    join = await stage.request("JoinGroup", after=lost)
    stage.expect(
        join.member_id == sync.member_id, f"JoinGroup with member id {sync.member_id}", str(join)
    )


@on_the_wire("C-JOIN-13")
async def loading_is_waited_for(stage: Stage) -> None:
    """JoinGroup answered COORDINATOR_LOAD_IN_PROGRESS: asked again after a pause, no lookup."""
    stage.fail("JoinGroup", "COORDINATOR_LOAD_IN_PROGRESS", times=6)
    await stage.start()
    sync = await stage.settled()
    joins = stage.all("JoinGroup", where=lambda each: each.error == "COORDINATOR_LOAD_IN_PROGRESS")
    lookups = [
        each for each in stage.all("FindCoordinator", after=joins[0]) if each.at_ms < sync.at_ms
    ]
    stage.expect_none(lookups, "no FindCoordinator between the refusals and the answer")
    stage.expect_pauses(joins, 100)


def _at_once(stage: Stage, refused: Exchange, join: Exchange) -> None:
    took_ms = join.at_ms - refused.answered_ms
    stage.expect(
        took_ms < 1_000 * AT_ONCE_S * stage.margins,
        f"JoinGroup within {AT_ONCE_S} s of the refusal",
        f"{took_ms:.0f} ms",
        on_time=True,
    )
