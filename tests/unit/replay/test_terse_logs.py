"""What must have been although no line tells it: small logs of one group each."""

from coordinator_sim.replay.charges import charges_in, trace_of
from coordinator_sim.replay.cost_sums import storms_in
from coordinator_sim.replay.logs import replay_log
from coordinator_sim.replay.plan import Ending, GroupPlan
from coordinator_sim.replay.planner import plan_episode
from coordinator_sim.replay.report import GroupFidelity
from coordinator_sim.trace.events import Event, RebalanceReason, Source, TraceEvent
from coordinator_sim.trace.history import episodes_of
from tests.simulated import INGESTED

ROUNDS_MS = tuple(range(0, 54_000, 9_000))
Line = tuple[int, Event, dict[str, object]]


def log_of(*lines: Line) -> list[TraceEvent]:
    """The lines of the group `g`: milliseconds, event, columns."""
    return [
        TraceEvent(event=event, ts_us=at_ms * 1000, seq=seq, group_id="g", **columns)
        for seq, (at_ms, event, columns) in enumerate(lines)
    ]


def prepare(
    at_ms: int, generation: int, reason: str = "UNKNOWN", member: str | None = None
) -> Line:
    """The group leaves that generation."""
    columns = {"generation": generation, "reason": RebalanceReason[reason], "member_id": member}
    return at_ms, Event.PREPARE_REBALANCE, columns


def done(
    at_ms: int, generation: int, members: int | None = None, leader: str | None = None
) -> tuple[Line, Line]:
    """A join phase ends and the leader assigns a millisecond later."""
    sync = {"generation": generation, "leader_id": leader}
    return (
        (at_ms, Event.JOIN_COMPLETE, {"generation": generation, "members": members}),
        (at_ms + 1, Event.SYNC_LEADER, sync),
    )


def empty(at_ms: int, generation: int) -> Line:
    """Log that the group is empty."""
    return at_ms, Event.GROUP_EMPTY, {"generation": generation}


def gone(at_ms: int, event: Event, member: str) -> Line:
    """A member fails or is removed."""
    return at_ms, event, {"member_id": member}


def judged(events: list[TraceEvent]) -> tuple[GroupPlan, GroupFidelity]:
    """The plan of the log's one episode, and how faithful its replay is."""
    (episode,) = episodes_of("g", events)
    (fidelity,) = replay_log(events, INGESTED).report.groups
    return plan_episode(episode), fidelity


def test_assignment_that_fails_long_after_it_came_waits_for_replicas() -> None:
    """The append is held until the commit timeout that the lines tell, and that is said."""
    events = log_of(
        prepare(1000, 0, "MEMBER_JOINED", "a-1"),
        *done(4000, 1, 1, "a-1"),
        prepare(9001, 1, "STORE_ERROR"),
        *done(9002, 2, 1, "a-1"),
    )
    plan, fidelity = judged(events)
    assert plan.commit_timeout_ms == 5_000
    assert fidelity.is_reproduced
    assert any("offsets.commit.timeout.ms=5000" in text for text in fidelity.assumed)


def test_group_that_empties_at_once_without_a_reason_was_left() -> None:
    """Whoever had rejoined would be a member: so the members left, and did not rejoin."""
    events = log_of(
        prepare(1000, 0),
        *done(4000, 1),
        prepare(9000, 1),
        empty(9000, 2),
        prepare(20_000, 2),
        *done(23_000, 3),
    )
    plan, fidelity = judged(events)
    assert fidelity.is_reproduced
    assert [actor.ending for actor in plan.actors] == [Ending.LEFT, None]


def test_group_that_empties_later_without_a_reason_loses_two() -> None:
    """One began it by leaving, another was waited for until the join timer removed it."""
    plan, fidelity = judged(log_of(prepare(9000, 4), empty(19_000, 5)))
    assert fidelity.is_reproduced
    assert {actor.ending for actor in plan.actors} == {Ending.LEFT, Ending.KICKED}


def test_join_phase_that_all_known_members_fail_in_has_another() -> None:
    """A join phase ends with members, and one whose JoinGroup is parked does not fail."""
    events = log_of(
        prepare(1000, 0),
        *done(4000, 1),
        prepare(60_000, 1),
        gone(69_000, Event.MEMBER_FAILED, "a-1"),
        gone(69_000, Event.MEMBER_FAILED, "b-1"),
        *done(69_000, 2),
    )
    plan, fidelity = judged(events)
    assert fidelity.is_reproduced
    assert sum(actor.ending is None for actor in plan.actors) == 1


def test_leader_that_another_succeeds_did_not_come_back() -> None:
    """By the counts one member is removed: it is the one that led, or it would lead still."""
    events = log_of(
        prepare(1000, 0, "MEMBER_JOINED", "a-1"),
        *done(4000, 1, 2, "a-1"),
        prepare(30_000, 1, "MEMBER_JOINED", "c-1"),
        *done(45_000, 2, 2, "c-1"),
    )
    plan, _ = judged(events)
    endings = {actor.name: actor.ending for actor in plan.actors}
    assert endings["a-1"] is Ending.KICKED
    assert endings["c-1"] is None


def test_new_member_that_leads_others_succeeds_one_that_was_never_seen() -> None:
    """The loaded generation had a leader, who did not come back while the others did."""
    events = log_of(prepare(30_000, 1, "MEMBER_JOINED", "c-1"), *done(45_000, 2, 2, "c-1"))
    plan, _ = judged(events)
    assert len(plan.loaded) == 2
    assert plan.actors[plan.loaded[0]].ending is Ending.KICKED


def test_lines_of_one_call_may_be_far_apart() -> None:
    """A broker that logs a failure, and 86 ms later what it led to, is reproduced."""
    for late_ms in (10, 86, 400):
        events = log_of(
            prepare(0, 0),
            *done(3_000, 1, 2, "a"),
            gone(20_000, Event.MEMBER_FAILED, "a"),
            prepare(20_000 + late_ms, 1, "MEMBER_FAILED", "a"),
            *done(21_000, 2, 1, "b"),
            gone(60_000, Event.MEMBER_FAILED, "b"),
            prepare(60_000 + late_ms, 2, "MEMBER_FAILED", "b"),
            empty(60_004 + late_ms, 3),
        )
        tallies = judged(events)[1].tallies
        for kind in ("rebalances", "generations", "transitions"):
            assert tallies[kind].first_difference == ""
            assert tallies[kind].reproduced == tallies[kind].in_source > 0


def test_line_long_after_the_call_that_wrote_it_is_not_reproduced() -> None:
    """A rebalance that begins later than another member failed is no jitter of one call."""
    events = log_of(
        prepare(0, 0),
        *done(3_000, 1, 2, "a"),
        gone(20_000, Event.MEMBER_FAILED, "a"),
        prepare(20_086, 1, "MEMBER_FAILED", "b"),
        *done(21_000, 2, 1, "c"),
    )
    assert judged(events)[1].tallies["transitions"].first_difference


def test_storm_whose_log_counts_no_members_has_no_count() -> None:
    """Logs up to 2.x say "is now empty", and never how many members there were before."""
    rounds = [(prepare(at, at // 9_000), *done(at + 3_000, at // 9_000 + 1)) for at in ROUNDS_MS]
    last_ms = ROUNDS_MS[-1] + 9_000
    leave = prepare(last_ms, len(rounds), "MEMBER_LEFT", "a")
    lines = [*(line for one in rounds for line in one), leave]
    nobody = {"generation": len(rounds) + 1, "members": 0}
    events = log_of(*lines, (last_ms + 600, Event.GROUP_EMPTY, nobody))
    charges = charges_in(trace_of(events, Source.BROKER_LOG))
    (storm,) = storms_in(charges)
    assert (storm.rebalances, storm.members) == (len(ROUNDS_MS) + 1, None)
    assert charges[-1].paused_us is None


def test_member_removed_before_the_first_seen_rebalance_left() -> None:
    """The length of its join phase is not told, so nothing but its going can have ended it."""
    events = log_of(gone(45_000, Event.MEMBER_KICKED, "a-1"), *done(45_000, 2, 2, "c-1"))
    plan, fidelity = judged(events)
    assert fidelity.tallies["generations"].reproduced == 1
    assert next(each for each in plan.actors if each.name == "a-1").ending is Ending.LEFT


def test_member_that_no_line_names_does_not_lead_before_one_that_is_named() -> None:
    """Whoever a line says leads comes before invented ids in the table that leaders come from."""
    for leader in ("c-1", "c-2", "c-3", "c-4", "c-5", "c-6"):
        events = log_of(prepare(30_000, 1, "MEMBER_JOINED", leader), *done(45_000, 2, 3, leader))
        assert judged(events)[1].is_reproduced
