"""The checkers of share groups' records, judged by histories whose verdict is known."""

import pytest
from msgspec.structs import replace

from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim_conformance.broken.share_histories import BROKEN_SHARES, share_history
from coordinator_sim_conformance.checkers import SHARE_CHECKERS, Verdict, check_all, slice_lines

INVARIANTS = ("I11", "I12", "I13")


def test_a_correct_history_passes_every_checker() -> None:
    """Every invariant is judged, and none is broken."""
    report = check_all(share_history())

    assert report.violations == ()
    assert report.having(Verdict.PASS) == INVARIANTS


@pytest.mark.parametrize("name", BROKEN_SHARES)
def test_a_broken_history_is_found_by_exactly_its_checker(name: str) -> None:
    """One thing is wrong, one checker fails, and the smallest history shows it."""
    events = share_history(name)
    report = check_all(events)

    assert report.having(Verdict.FAIL) == (BROKEN_SHARES[name][0],)
    assert slice_lines(events, report.violations[0])


@pytest.mark.parametrize(("since_s", "is_blamed"), [(1, False), (89, False), (91, True)])
def test_a_record_fetched_before_a_fault_may_be_late(since_s: int, is_blamed: bool) -> None:
    """It was locked for its member by a leader that is gone: others may have had it since."""
    events = share_history("two members have one acquisition")
    late = next(each for each in events if each.ts_us == 5_000_000)
    fault = TraceEvent(event=Event.FAULT, ts_us=late.ts_us - since_s * 1_000_000, seq=99)
    report = check_all([fault, *(replace(each, seq=each.seq + 100) for each in events)])

    assert [each.invariant for each in report.violations] == ["I11"] * is_blamed


@pytest.mark.parametrize(("member", "is_blamed"), [("a", False), ("b", True)])
def test_a_member_may_settle_what_it_has_fetched_again(member: str, is_blamed: bool) -> None:
    """Its lock ran out, it has the record again, and acknowledges the first delivery of it.

    Brokers look at the member alone, so that the second delivery comes behind the acceptance.
    """
    history = share_history("an accepted record is delivered again")
    first = history[0]
    lost = replace(first, event=Event.LOCK_TIMED_OUT, ts_us=first.ts_us + 1)
    events = [
        replace(each, client_id=member)
        if each.attrs.get("deliveries") == "2" and each.position == 1
        else each
        for each in [first, lost, *history[1:]]
    ]
    report = check_all([replace(each, seq=seq) for seq, each in enumerate(events)])

    assert [each.invariant for each in report.violations] == ["I11"] * is_blamed


def test_every_invariant_has_a_broken_history() -> None:
    """No checker goes untested."""
    assert {invariant for invariant, _ in BROKEN_SHARES.values()} == set(INVARIANTS)
    assert tuple(checker.invariant for checker in SHARE_CHECKERS) == INVARIANTS


def test_a_trace_without_share_groups_is_not_judged_by_them() -> None:
    """The report ends with I10."""
    assert check_all([]).results[-1].invariant == "I10"
