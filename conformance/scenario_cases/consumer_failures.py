"""Consumer groups whose members, coordinator, network or replication fail."""

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.trace.events import Event, RebalanceReason
from coordinator_sim_conformance.scenario_cases.case import shows
from coordinator_sim_conformance.scenario_cases.seen import Seen

POLL_TIMEOUT = "consumer poll timeout has expired."
"""What a consumer gives as its reason to leave when its application polls too slowly."""


def _ids_given(seen: Seen, member: str, after_ms: int) -> int:
    return len(seen.of(Event.MEMBER_ID_ASSIGNED, after_ms=after_ms, member=member))


@shows("member-crash")
def crashed_member_is_expired_one_session_after_its_last_heartbeat(seen: Seen) -> None:
    """The coordinator cannot know earlier."""
    (failed,) = seen.of(Event.MEMBER_FAILED)
    beats = [e for e in seen.of(Event.HEARTBEAT) if e.member_id == failed.member_id]
    waited_ms = failed.ts_us // 1_000 - beats[-1].ts_us // 1_000
    seen.expect("from the last heartbeat to the failure", waited_ms, 10_000)
    seen.expect("reasons", seen.reasons()[1:], [RebalanceReason.MEMBER_FAILED])


@shows("slow-processing")
def slow_consumer_leaves_by_itself_and_comes_back(seen: Seen) -> None:
    """The consumer's own heartbeat thread gives up, not the coordinator."""
    (leave,) = seen.of(Event.LEAVE_REQ)
    seen.expect("reason", leave.client_reason, POLL_TIMEOUT)
    wanted = [RebalanceReason.MEMBER_LEFT, RebalanceReason.MEMBER_JOINED]
    seen.expect("reasons", seen.reasons()[1:], wanted)
    seen.expect("failed", seen.of(Event.MEMBER_FAILED), [])


@shows("poison-record")
def poison_record_puts_out_each_owner(seen: Seen) -> None:
    """Each owner in turn leaves within the record, which none of them can commit."""
    leaves = seen.of(Event.LEAVE_REQ)
    reasons = {event.client_reason for event in leaves}
    seen.expect("reasons to leave", reasons, {POLL_TIMEOUT})
    first = {seen.name_of(event) for event in leaves[:3]}
    seen.expect("first to leave", first, {"consumer-1", "consumer-2", "consumer-3"})
    committed = [
        (entry.partition, entry.offset)
        for event in seen.of(Event.OFFSET_COMMIT)
        for entry in event.offsets
        if event.error_code is ErrorCode.NONE
    ]
    beyond = [each for each in committed if (2, 700) < each < (3, 0)]
    seen.expect("commits of orders-2 beyond the record", beyond, [])


@shows("poll-timeout-loop")
def slow_pollers_keep_the_group_rebalancing(seen: Seen) -> None:
    """Each of nine slow polls costs two rebalances: one to leave, one to come back."""
    leaves = [event.client_reason for event in seen.of(Event.LEAVE_REQ)]
    seen.expect("reasons to leave", leaves, [POLL_TIMEOUT] * 9)
    wanted = [RebalanceReason.MEMBER_LEFT, RebalanceReason.MEMBER_JOINED] * 9
    seen.expect("reasons", seen.reasons()[1:], wanted)
    seen.expect("failed", seen.of(Event.MEMBER_FAILED), [])


@shows("coordinator-failover")
def failover_brings_back_the_stored_generation(seen: Seen) -> None:
    """The new coordinator issues the number that the interrupted rebalance would have had."""
    (loaded,) = seen.of(Event.GROUP_LOADED)
    seen.expect("loaded", (loaded.generation, loaded.members), (1, 4))
    errors = {answer.error_code for answer in seen.of(Event.JOIN_RESP, after_ms=30_500)}
    seen.expect_that("the newcomer is unknown", ErrorCode.UNKNOWN_MEMBER_ID in errors, errors)
    completed = [e.generation for e in seen.of(Event.JOIN_COMPLETE, after_ms=30_500)]
    seen.expect("generations", completed, [2])


@shows("coordinator-lost-in-join")
def members_keep_their_ids_when_the_coordinator_dies(seen: Seen) -> None:
    """The old members ask the next coordinator with their ids, and nobody waits for ghosts."""
    for number in (1, 2, 3):
        seen.expect(f"ids of consumer-{number}", _ids_given(seen, f"consumer-{number}", 0), 1)
    seen.expect("failed or kicked", seen.of(Event.MEMBER_FAILED, Event.MEMBER_KICKED), [])
    (completed,) = seen.of(Event.JOIN_COMPLETE, after_ms=30_000)
    completed_ms = completed.ts_us // 1_000
    seen.expect_between("complete soon after the failover", completed_ms, 33_000, 35_000)
    seen.expect("members", completed.members, 4)


@shows("coordinator-unreachable")
def everyone_joins_anew_after_a_long_cut(seen: Seen) -> None:
    """All partitions are lost, not revoked; one generation takes everybody in again."""
    lost = {seen.name_of(event) for event in seen.of(Event.LOST)}
    seen.expect("who lost partitions", lost, {"consumer-1", "consumer-2", "consumer-3"})
    seen.expect("revoked", seen.of(Event.REVOKED), [])
    seen.expect("empty at", [e.generation for e in seen.of(Event.GROUP_EMPTY)], [2])
    completed = [(e.generation, e.members) for e in seen.of(Event.JOIN_COMPLETE, after_ms=30_000)]
    seen.expect("generations", completed, [(3, 3)])


@shows("zombie-after-pause")
def zombie_is_refused_when_it_goes_on(seen: Seen) -> None:
    """Neither its heartbeat nor its commit counts any more."""
    refused = [
        event.event.value
        for event in seen.of(Event.HEARTBEAT, Event.OFFSET_COMMIT, after_ms=55_000)
        if event.error_code is ErrorCode.UNKNOWN_MEMBER_ID
    ]
    seen.expect("refused", sorted(refused), ["HEARTBEAT", "OFFSET_COMMIT"])
    seen.expect("losses", len(seen.of(Event.LOST)), 1)


@shows("frozen-while-joining")
def member_frozen_in_a_join_comes_back(seen: Seen) -> None:
    """The member joins under one new id, without an error and without what it never looked at."""
    seen.expect("failed", [seen.name_of(e) for e in seen.of(Event.MEMBER_FAILED)], ["consumer-2"])
    given = seen.of(Event.ASSIGNED, after_ms=30_000, member="consumer-2")
    seen.expect("assignments", len(given), 2)
    seen.expect("new ids", _ids_given(seen, "consumer-2", 60_000), 1)
    raised = [e for e in seen.of(Event.LIFECYCLE) if "raised" in (e.reason_text or "")]
    seen.expect("applications that ended", raised, [])
    seen.expect("loads at the end", sorted(seen.generations[-1].loads), [2, 2, 2])


@shows("late-heartbeat-answer")
def late_answers_change_no_newer_generation(seen: Seen) -> None:
    """Two answers of the old generation cost one loss and one JoinGroup."""
    stale = [
        event
        for event in seen.of(Event.HEARTBEAT, after_ms=45_000, member="consumer-2")
        if event.error_code is ErrorCode.UNKNOWN_MEMBER_ID
    ]
    seen.expect("refused heartbeats", len(stale), 2)
    seen.expect("losses", len(seen.of(Event.LOST)), 1)
    asked = seen.of(Event.JOIN_REQ, after_ms=45_000, before_ms=53_000, member="consumer-2")
    seen.expect("JoinGroups", len(asked), 1)


@shows("stuck-commit")
def wait_for_a_commit_has_an_end(seen: Seen) -> None:
    """The member is removed at the rebalance timeout, and has rejoined a few seconds later."""
    (kicked,) = seen.of(Event.MEMBER_KICKED)
    seen.expect("who was removed", seen.name_of(kicked), "consumer-1")
    lost = seen.of(Event.LOST, member="consumer-1")
    lost_ms = lost[0].ts_us // 1_000
    seen.expect_between("a wait of the rebalance timeout", lost_ms, 48_000, 48_500)
    (joined,) = seen.of(Event.MEMBER_ADDED, after_ms=40_000, member="consumer-1")
    seen.expect_between("rejoined at once", joined.ts_us // 1_000 - lost_ms, 0, 500)
    seen.expect("loads at the end", sorted(seen.generations[-1].loads), [2, 2, 2])


@shows("replication-stalls")
def stalled_replication_is_retried(seen: Seen) -> None:
    """All three are told REBALANCE_IN_PROGRESS, rejoin, and are stable when it is back."""
    refused = [e for e in seen.of(Event.SYNC_RESP, after_ms=30_000) if e.error_code]
    seen.expect("errors", [e.error_code for e in refused], [ErrorCode.REBALANCE_IN_PROGRESS] * 3)
    seen.expect("stores that failed", len(seen.of(Event.STORE_FAILED)), 1)
    stable = [e.ts_us // 1_000 for e in seen.of(Event.GROUP_STABLE, after_ms=30_000)]
    seen.expect("stable at", stable, [42_500])
    seen.expect("failed", seen.of(Event.MEMBER_FAILED, Event.LOST), [])


@shows("mass-restart")
def dead_members_are_waited_for_once(seen: Seen) -> None:
    """One rebalance takes all newcomers in, when the sessions of the dead are over."""
    failed = {event.ts_us // 1_000 for event in seen.of(Event.MEMBER_FAILED)}
    added = [e.ts_us // 1_000 for e in seen.of(Event.MEMBER_ADDED, after_ms=60_000)]
    (completed,) = seen.of(Event.JOIN_COMPLETE, after_ms=60_000)
    seen.expect_that("newcomers before the dead fail", max(added) < min(failed))
    seen.expect("members", (completed.members, len(added)), (12, 12))
    seen.expect("complete when the last one fails", completed.ts_us // 1_000, max(failed))


@shows("removed-while-joining")
def removed_member_gives_up_before_it_joins_anew(seen: Seen) -> None:
    """A removed member loses its partitions before its next JoinGroup; none is read twice."""
    lost = seen.of(Event.LOST, member="consumer-2")
    held = sorted(name for event in lost for name in event.attrs["resources"].split())
    seen.expect("lost", held, ["p:orders-1", "p:orders-3", "p:orders-5"])
    asked = seen.of(Event.JOIN_REQ, after_ms=50_000, member="consumer-2")
    seen.expect_that("lost before the next JoinGroup", lost[0].ts_us < asked[0].ts_us)
    seen.expect("loads at the end", sorted(seen.generations[-1].loads), [2, 2, 2])
