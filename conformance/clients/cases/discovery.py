"""C-DISC: how a client finds its coordinator, and finds it again."""

from coordinator_sim_conformance.clients.case import on_the_wire
from coordinator_sim_conformance.clients.stage import Stage
from coordinator_sim_conformance.clients.wire import Exchange

BACKOFF_MS = 100
"""`retry.backoff.ms` of every client here."""


@on_the_wire("C-DISC-01")
async def one_lookup_at_a_time(stage: Stage) -> None:
    """While a FindCoordinator has no answer, the client sends no second one."""
    stage.delay_answer("FindCoordinator", 1_500)
    await stage.start()
    first = await stage.request("FindCoordinator")
    await stage.until(
        lambda: first.answered_ms or first.lost_ms or None, "the first lookup is answered"
    )
    end_ms = first.answered_ms or first.lost_ms
    early = [each for each in stage.all("FindCoordinator", after=first) if each.at_ms < end_ms]
    stage.expect_none(early, "no FindCoordinator before the first one is answered")


@on_the_wire("C-DISC-02")
async def lookups_back_off(stage: Stage) -> None:
    """FindCoordinator answered COORDINATOR_NOT_AVAILABLE: asked again after pauses."""
    refusals = 5
    stage.fail("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", times=refusals)
    await stage.start()
    await stage.answered("FindCoordinator", "NONE")
    lookups = stage.all("FindCoordinator")[: refusals + 1]
    stage.expect_pauses(lookups, BACKOFF_MS)


@on_the_wire("C-DISC-03")
async def unauthorized_is_final(stage: Stage) -> None:
    """FindCoordinator answered GROUP_AUTHORIZATION_FAILED: the application is told, no retry."""
    stage.fail("FindCoordinator", "GROUP_AUTHORIZATION_FAILED", times=None)
    driver = await stage.start("commands")
    refused = await stage.answered("FindCoordinator", "GROUP_AUTHORIZATION_FAILED")
    told = await stage.event("error", of=driver)
    await stage.pass_time(2)
    more = [each for each in stage.all(after=refused) if each.at_ms > told.at_ms + BACKOFF_MS]
    stage.expect_none(more, "nothing is sent about the group after the application was told")


@on_the_wire("C-DISC-08")
async def move_is_no_rebalance(stage: Stage) -> None:
    """A coordinator that moves costs no JoinGroup: heartbeats go on there, in the generation."""
    _, beat = await _after_a_move(stage)
    await stage.pass_time(1)
    stage.expect_none(stage.all("JoinGroup", after=beat), "no JoinGroup after the move")


@on_the_wire("C-DISC-08.2")
async def nothing_for_the_old_one(stage: Stage) -> None:
    """After NOT_COORDINATOR the client looks its coordinator up, and asks the old one no more."""
    refused, beat = await _after_a_move(stage)
    found = stage.all("FindCoordinator", after=refused)
    stage.expect(
        bool(found) and found[0].at_ms < beat.at_ms,
        "FindCoordinator after NOT_COORDINATOR",
        f"{len(found)} of them",
    )
    await stage.pass_time(1)
    late = [
        each
        for each in stage.all(after=found[0])
        if each.broker == refused.broker and each.api != "FindCoordinator"
    ]
    stage.expect_none(late, "no group request to the old coordinator after the lookup")


def _is_refused(each: Exchange) -> bool:
    return each.error == "NOT_COORDINATOR"


async def _after_a_move(stage: Stage) -> tuple[Exchange, Exchange]:
    """Move the coordinator; the refused request, and the first heartbeat of the new one."""
    await stage.start()
    sync = await stage.settled()
    await stage.answered("Heartbeat", "NONE", after=sync)
    stage.move_coordinator()
    refused = await stage.until(
        lambda: next(iter(stage.all(after=sync, where=_is_refused)), None),
        "a request is answered NOT_COORDINATOR",
    )
    beat = await stage.answered(
        "Heartbeat", "NONE", after=refused, where=lambda each: each.broker != refused.broker
    )
    stage.expect(
        (beat.member_id, beat.generation) == (sync.member_id, sync.generation),
        f"heartbeats of {sync.member_id} in generation {sync.generation}",
        str(beat),
    )
    stage.expect_none(stage.all("JoinGroup", after=refused), "no JoinGroup after the move")
    return refused, beat
